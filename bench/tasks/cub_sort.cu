// A rival: CUB's radix sort.
#include "sorts.hpp"

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

#include <cub/device/device_radix_sort.cuh>

namespace esker::bench {
namespace {

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

}  // namespace

std::function<std::uint32_t*()> sort_by_cub(std::uint32_t* words, std::uint32_t* other, std::uint32_t n) {
  cub::DoubleBuffer<std::uint32_t> sizes(words, other);
  std::size_t bytes = 0;
  check(cub::DeviceRadixSort::SortKeys(nullptr, bytes, sizes, n), "what CUB's sort needs");
  void* at = nullptr;
  check(cudaMalloc(&at, bytes), "memory for CUB's sort");
  const std::shared_ptr<void> memory(at, [](void* freed) { (void)cudaFree(freed); });
  return [=]() mutable {
    cub::DoubleBuffer<std::uint32_t> keys(words, other);
    check(cub::DeviceRadixSort::SortKeys(memory.get(), bytes, keys, n), "CUB's sort");
    check(cudaDeviceSynchronize(), "CUB's sort");
    return keys.Current();
  };
}

}  // namespace esker::bench
