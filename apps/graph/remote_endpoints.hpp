// The vertices of other PEs that this PE's edges lead to, each with a number: what lanes remember about them.
#pragma once

#include <cstdint>
#include <vector>

#include <esker/esker.hpp>

#include "distributed_graph.hpp"

namespace graph {

/// Numbers for some vertices of all PEs, in order of their Locations. On the host.
class VertexNumbers {
 public:
  VertexNumbers(std::uint32_t n_pes, const inputs::VertexPartition& partition);
  void add(Location location) { bits_[bit_of(location) / 64] |= std::uint64_t{1} << bit_of(location) % 64; }
  /// After the last add(). Returns how many there are.
  std::uint64_t count();
  /// After count(); of one that was added.
  std::uint64_t number_of(Location location) const;

 private:
  std::uint64_t bit_of(Location location) const { return first_of_pe_[location.pe()] + location.index(); }

  std::vector<std::uint64_t> first_of_pe_;
  std::vector<std::uint64_t> bits_, before_;
};

/// Encoding. An edge leads to endpoint v, if that is vertex v of this PE, or to endpoint first + i, if it is
/// at `locations[i]`: the same for all edges to one vertex.
struct RemoteEndpoints {
  std::uint64_t first;                        // no PE has more vertices
  esker::SymmetricArray<Location> locations;  // of as many as the PE with most has, at least 1
  VertexNumbers numbers;

  std::uint64_t size() const { return first + locations.size(); }
  std::uint32_t endpoint_of(const esker::Runtime& rt, Location to) const {
    return static_cast<std::uint32_t>(to.pe() == rt.pe() ? to.index() : first + numbers.number_of(to));
  }
};

/// Collective. `numbers` takes a bit for each vertex of the graph, and a word for each 64.
/// Error{kConfiguration} if a PE had more than 2^32 - 1 endpoints.
RemoteEndpoints make_remote_endpoints(esker::Runtime& rt, const DistributedGraph& graph);

}  // namespace graph
