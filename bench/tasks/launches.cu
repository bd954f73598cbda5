// A rival: CUDA's dynamic parallelism. Alone in a library, since it wants relocatable device code.
#include "launches.hpp"

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace esker::bench {
namespace {

struct Words {
  unsigned long long sum;
  int error;  // of a launch from a kernel
};

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

__global__ void fib_leaves(int n, Words* words) {
  if (n < 2) {
    atomicAdd(&words->sum, static_cast<unsigned long long>(n));
    return;
  }
  fib_leaves<<<1, 1, 0, cudaStreamFireAndForget>>>(n - 1, words);
  fib_leaves<<<1, 1, 0, cudaStreamFireAndForget>>>(n - 2, words);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) words->error = static_cast<int>(error);
}

}  // namespace

std::function<std::uint64_t()> fib_by_launches(int n) {
  // As many launches may wait as there are calls: more than the limit, 2048 by default, are an error.
  std::size_t calls = 1, before = 1;
  for (int i = 1; i < n; ++i) {
    const std::size_t next = calls + before + 1;
    before = calls;
    calls = next;
  }
  check(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, calls + 1),
        "the limit of pending launches");
  Words* words = nullptr;
  check(cudaMalloc(&words, sizeof(Words)), "memory for a sum");
  const std::shared_ptr<Words> memory(words, [](Words* at) { (void)cudaFree(at); });
  return [memory, n] {
    Words* const at = memory.get();
    check(cudaMemset(at, 0, sizeof(Words)), "a sum");
    fib_leaves<<<1, 1>>>(n, at);
    check(cudaGetLastError(), "the first launch");
    check(cudaDeviceSynchronize(), "launches from kernels");
    Words found{};
    check(cudaMemcpy(&found, at, sizeof found, cudaMemcpyDeviceToHost), "a sum");
    check(static_cast<cudaError_t>(found.error), "a launch from a kernel");
    return static_cast<std::uint64_t>(found.sum);
  };
}

}  // namespace esker::bench
