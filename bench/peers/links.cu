// bench-peers-links: what the links between the GPUs of a host take of single operations. Each GPU's lanes do
// random ones on the memory of all GPUs, and keep what they bring.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime.h>

namespace {

using Word = unsigned long long;  // what CUDA's atomics take

constexpr int kMostGpus = 8, kRepeats = 3;
constexpr unsigned kGroups = 8 * 132, kGroupLanes = 256;
constexpr Word kWords = Word{1} << 26, kOperations = Word{1} << 26;  // of each GPU

enum class Operation { kGet, kPut, kAdd, kFetchAdd, kCompareSwap };

void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(call) + ": " + cudaGetErrorString(error));
}

struct Tables {
  Word* of[kMostGpus];
  unsigned gpus;
};

__device__ Word mix(Word x) {
  x = (x ^ x >> 33) * 0xff51afd7ed558ccdULL;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ x >> 33;
}

template <Operation kOperation>
__global__ void operate(Tables tables, Word* results, Word seed) {
  const Word lanes = Word{gridDim.x} * blockDim.x;
  for (Word k = Word{blockIdx.x} * blockDim.x + threadIdx.x; k < kOperations; k += lanes) {
    const Word r = mix(seed + k);
    Word* const at = tables.of[(r & 0xffffffffULL) * tables.gpus >> 32] + (r >> 38);
    if constexpr (kOperation == Operation::kGet) results[k] = *static_cast<volatile Word*>(at);
    if constexpr (kOperation == Operation::kPut) *at = r;
    if constexpr (kOperation == Operation::kAdd)
      asm volatile("red.relaxed.sys.global.add.u64 [%0], %1;" ::"l"(at), "l"(r) : "memory");
    if constexpr (kOperation == Operation::kFetchAdd) results[k] = atomicAdd_system(at, r);
    if constexpr (kOperation == Operation::kCompareSwap) results[k] = atomicCAS_system(at, 0ULL, r);
  }
}
static_assert(kWords == Word{1} << (64 - 38));

struct Gpu {
  Word* results;
  cudaStream_t stream;
};

/// 10^9 operations a second and GPU, the median of kRepeats after one that warms up.
template <Operation kOperation>
double rate(const Tables& tables, const std::vector<Gpu>& gpus) {
  const auto on_each = [&](const auto& call) {
    for (std::size_t d = 0; d < gpus.size(); ++d) {
      check(cudaSetDevice(static_cast<int>(d)), "cudaSetDevice");
      call(d);
    }
  };
  std::vector<double> rates;
  for (int repeat = 0; repeat <= kRepeats; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    on_each([&](std::size_t d) {
      operate<kOperation>
          <<<kGroups, kGroupLanes, 0, gpus[d].stream>>>(tables, gpus[d].results, d * kOperations + 1);
      check(cudaGetLastError(), "a launch");
    });
    on_each([&](std::size_t d) { check(cudaStreamSynchronize(gpus[d].stream), "a kernel"); });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (repeat > 0) rates.push_back(static_cast<double>(kOperations) * 1e-9 / seconds.count());
  }
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

void run() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "cudaGetDeviceCount");
  count = std::min(count, kMostGpus);
  Tables tables{{}, static_cast<unsigned>(count)};
  std::vector<Gpu> gpus;
  for (int d = 0; d < count; ++d) {
    check(cudaSetDevice(d), "cudaSetDevice");
    for (int peer = 0; peer < count; ++peer) {
      if (peer != d) check(cudaDeviceEnablePeerAccess(peer, 0), "cudaDeviceEnablePeerAccess");
    }
    Gpu gpu{};
    check(cudaMalloc(&tables.of[d], kWords * sizeof(Word)), "cudaMalloc");
    check(cudaMemset(tables.of[d], 0, kWords * sizeof(Word)), "cudaMemset");
    check(cudaMalloc(&gpu.results, kOperations * sizeof(Word)), "cudaMalloc");
    check(cudaStreamCreate(&gpu.stream), "cudaStreamCreate");
    gpus.push_back(gpu);
  }
  std::printf("%d GPUs, 2^26 words and operations each, 10^9 a second and GPU:\n", count);
  std::printf("get %.2f, put %.2f, add %.2f, fetch_add %.2f, compare_swap %.2f\n",
              rate<Operation::kGet>(tables, gpus), rate<Operation::kPut>(tables, gpus),
              rate<Operation::kAdd>(tables, gpus), rate<Operation::kFetchAdd>(tables, gpus),
              rate<Operation::kCompareSwap>(tables, gpus));
}

}  // namespace

int main() try {
  run();
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "bench-peers-links: %s\n", error.what());
  return 1;
}
