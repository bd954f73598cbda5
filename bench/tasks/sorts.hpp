// Sides that sort, beside Esker's.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace esker::bench {

#if defined(ESKER_BENCH_CUB)
/// CUB's DeviceRadixSort on the current device. Each call sorts the n words at `words`, where `other` has
/// space for as many, and returns which of the two has them. Errors. std::runtime_error with CUDA's words.
std::function<std::uint32_t*()> sort_by_cub(std::uint32_t* words, std::uint32_t* other, std::uint32_t n);
#endif
#if defined(ESKER_BENCH_TBB)
namespace tbb_side {
/// parallel_sort().
void sort(std::vector<std::uint32_t>& words);
}  // namespace tbb_side
#endif

}  // namespace esker::bench
