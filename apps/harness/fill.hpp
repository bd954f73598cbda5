// Arrays on the heap that the host fills: no copy of a whole one stands beside it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <esker/esker.hpp>

namespace harness {

/// Local. Writes value_at(i) to elements i of `array`, in order, from 0 to `count` - 1.
template <class T, class ValueAt>
void fill(esker::Runtime& rt, esker::SymmetricArray<T> array, std::uint64_t count, ValueAt value_at) {
  constexpr std::uint64_t kChunk = std::uint64_t{1} << 16;
  std::vector<T> chunk;
  for (std::uint64_t first = 0; first < count; first += chunk.size()) {
    chunk.resize(std::min(kChunk, count - first));
    for (std::uint64_t i = 0; i < chunk.size(); ++i) chunk[i] = value_at(first + i);
    rt.heap().write(array, first, std::span<const T>(chunk));
  }
}

/// Local. Makes all of it zero.
template <class T>
void clear(esker::Runtime& rt, esker::SymmetricArray<T> array) {
  fill(rt, array, array.size(), [](std::uint64_t) { return T{}; });
}

}  // namespace harness
