// What an application has found for each vertex, as text.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>

#include <esker/esker.hpp>

#include "../harness/application.hpp"
#include "../inputs/graph/vertex_partition.hpp"

namespace graph {

/// Collective. Where --output asks for it, lines of a vertex and its value, a double or a 64-bit integer, in
/// order of the vertices' global ids. `mine` has this PE's, as `partition` numbers them.
template <class Value>
void write_values(esker::Runtime& rt, const harness::Options& options,
                  const inputs::VertexPartition& partition, std::span<const Value> mine) {
  options.write_output(
      rt, partition.vertices(),
      [&](std::uint64_t vertex) {
        if (partition.owner(vertex) != rt.pe()) return std::uint64_t{0};
        return std::bit_cast<std::uint64_t>(mine[partition.local_index(vertex)]);
      },
      [](std::string& text, std::uint64_t vertex, std::uint64_t word) {
        fmt::format_to(std::back_inserter(text), "{} {}\n", vertex, std::bit_cast<Value>(word));
      });
}

}  // namespace graph
