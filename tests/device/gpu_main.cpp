// main() of a test on a GPU: without one it is skipped, not passed.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#if defined(ESKER_TEST_CUDA)
#include <cuda_runtime_api.h>
#elif defined(ESKER_TEST_HIP)
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>
#endif

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;  // ctest's SKIP_RETURN_CODE
#if defined(ESKER_TEST_CUDA)
  // PEs as threads share one context: with fewer hardware queues than streams, one PE's progress kernel would
  // stand behind another PE's kernel, which waits for it.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
#endif
  ::testing::InitGoogleTest(&argc, argv);
  int devices = 0;
#if defined(ESKER_TEST_CUDA)
  const cudaError_t error = cudaGetDeviceCount(&devices);
  const char* what = cudaGetErrorString(error);
#elif defined(ESKER_TEST_HIP)
  const hipError_t error = hipGetDeviceCount(&devices);
  const char* what = hipGetErrorString(error);
#endif
  if (devices == 0) {
    std::fprintf(stderr, "skipped: no GPU (%s)\n", what);
    return kSkipped;
  }
  return RUN_ALL_TESTS();
}
