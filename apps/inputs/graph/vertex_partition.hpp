// Which process owns which vertex.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "edge.hpp"
#include "permutation.hpp"

namespace inputs {

/// A bijection between vertices, 0 to vertices() - 1, and pairs (owner, index) with index < count(owner).
/// All processes build it alike; nothing is exchanged. Reading it is safe from any number of threads.
class VertexPartition {
 public:
  using Owner = std::uint32_t;

  /// Consecutive vertices, as range_of() divides them. No memory.
  static VertexPartition block(std::uint64_t vertices, Owner owners);

  /// Blocks of a seeded bijection of the vertices: as even as blocks, without their locality. No memory.
  static VertexPartition hash(std::uint64_t vertices, Owner owners, std::uint64_t seed);

  /// Element v is vertex v's owner, METIS's for example, see metis_owners(). An owner keeps its vertices in
  /// rising order. 20 bytes a vertex on each process.
  static VertexPartition table(std::vector<Owner> owner_of_vertex, Owner owners);

  std::uint64_t vertices() const { return vertices_; }
  Owner owners() const { return owners_; }

  // Arguments are in range, as above.
  Owner owner(std::uint64_t vertex) const;
  std::uint64_t local_index(std::uint64_t vertex) const;
  std::uint64_t count(Owner owner) const;
  std::uint64_t global_id(Owner owner, std::uint64_t index) const;

 private:
  enum class Kind { kBlock, kHash, kTable };
  struct Table;

  VertexPartition(Kind kind, std::uint64_t vertices, Owner owners, std::uint64_t seed);
  std::uint64_t first_of(Owner owner) const;

  Kind kind_;
  std::uint64_t vertices_;
  Owner owners_;
  Permutation shuffle_;                 // kHash
  std::shared_ptr<const Table> table_;  // kTable; shared by copies
};

/// Edges whose ends have different owners, among those that add() was given. Over all parts of a graph: sum
/// the fields.
struct EdgeCut {
  std::uint64_t edges = 0;
  std::uint64_t cut = 0;

  void add(const VertexPartition& partition, const Edge& edge);
  EdgeCut& operator+=(const EdgeCut& other);
  /// 0 without edges.
  double fraction() const { return edges == 0 ? 0 : static_cast<double>(cut) / static_cast<double>(edges); }
};

}  // namespace inputs
