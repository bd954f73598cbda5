// Distances of vertices, and the lists of those whose distance has fallen.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include <esker/esker.hpp>
#include <esker/lane.hpp>

#include "../graph/edge_chunks.hpp"

namespace sssp {

/// Distances are doubles, or 32-bit integers where every sum of weights on a way is one.
template <class Distance>
inline constexpr Distance kFar = std::numeric_limits<Distance>::has_infinity
                                     ? std::numeric_limits<Distance>::infinity()
                                     : std::numeric_limits<Distance>::max();

/// A vertex of this PE, or what this PE has found of another's; a handler's target.
template <class Distance>
struct Vertex {
  using Marks = std::conditional_t<sizeof(Distance) == 8, std::uint64_t, std::uint32_t>;
  // Which lists it is in.
  static constexpr Marks kFallen = 1;  // of those whose distance has fallen
  static constexpr Marks kHeld = 2;    // of those that wait for a higher threshold
  static constexpr Marks kFar = 4;     // of those that wait for a higher horizon
  Distance distance;
  Marks marks;

  /// While others may lower it.
  ESKER_HD Distance distance_now() const {
    return reinterpret_cast<const esker::DeviceAtomic<Distance>&>(distance).load_relaxed();
  }
  /// Lowers it to `candidate`, if it is above. True if it was in no list of those that have fallen: it
  /// belongs there from now on. Any lanes and handlers at once.
  ESKER_HD bool falls_to(Distance candidate) {
    Distance seen = distance_now();
    while (candidate < seen) {
      if (reinterpret_cast<esker::DeviceAtomic<Distance>&>(distance).compare_exchange_relaxed(seen,
                                                                                              candidate))
        return is_new();
    }
    return false;
  }

 private:
  ESKER_HD bool is_new() {
    auto& word = reinterpret_cast<esker::DeviceAtomic<Marks>&>(marks);
    Marks seen = word.load_relaxed();
    while ((seen & kFallen) == 0) {
      if (word.compare_exchange_relaxed(seen, seen | kFallen)) return true;
    }
    return false;
  }
};

/// An edge as short as it gets.
template <class Distance>
struct Edge {
  std::uint32_t to;  // endpoint (graph::RemoteEndpoints)
  Distance weight;
};

/// The lists as lanes and handlers see them. A list's length is an atomic word, so that handlers on several
/// ownership blocks append at once; each vertex is in a list once.
template <class D>
struct Lists {
  /// Edges of vertices to relax, with the distances these had when they were taken.
  using Taken = graph::EdgeChunks<D>;
  enum Name : std::uint64_t { kFallen, kRemote, kTaken, kHeld, kFar, kStay, kLists };

  esker::SymmetricArray<Vertex<D>> vertices;  // this PE's, then what it has found of others'
  std::uint64_t first_remote;
  esker::SymmetricArray<std::uint32_t> fallen;  // of this PE
  esker::SymmetricArray<std::uint32_t> remote;  // fallen too, and not this PE's
  Taken taken;
  esker::SymmetricArray<std::uint64_t> lengths;  // kLists of them

  ESKER_HD std::uint64_t reserve(Name list, std::uint64_t count) const {
    return graph::reserve(lengths[list], count);
  }
  /// For a vertex of this PE. Any lanes and handlers at once.
  ESKER_HD void lower(Vertex<D>& vertex, D candidate) const {
    if (vertex.falls_to(candidate))
      fallen[reserve(kFallen, 1)] = static_cast<std::uint32_t>(&vertex - vertices.data());
  }
};

}  // namespace sssp
