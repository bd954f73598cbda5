// An edge, and what is called for each one.
#pragma once

#include <cstdint>
#include <functional>

namespace inputs {

/// Vertices count from 0. The weight of an edge of a graph without weights is 1.
struct Edge {
  std::uint64_t from;
  std::uint64_t to;
  double weight;

  friend bool operator==(const Edge&, const Edge&) = default;
  friend auto operator<=>(const Edge&, const Edge&) = default;
};

/// Generators draw integer weights from 1 to this, as GAP does.
inline constexpr std::uint64_t kMaxWeight = 255;

/// Called once for each edge; what it throws reaches the caller of the stream.
using EdgeVisitor = std::function<void(const Edge&)>;

/// Shows its visitor the same edges in the same order at each call.
using EdgeStream = std::function<void(const EdgeVisitor&)>;

}  // namespace inputs
