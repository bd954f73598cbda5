// Owners that keep edges within processes, by METIS.
#pragma once

#include <cstdint>
#include <vector>

#include "edge.hpp"
#include "vertex_partition.hpp"

namespace inputs {

/// Divides vertices among owners with METIS's multilevel k-way partitioning (Karypis, Kumar, SIAM J. Sci.
/// Comput. 20, 1998): parts of nearly one size, few edges between them. Directions, weights, loops and
/// duplicates do not count. The same arguments give the same result with one version of METIS.
///
/// Local, and the one function here that holds a whole graph: 8 bytes an edge and 12 a vertex (32-bit METIS),
/// beside what METIS takes, several times that. Call it on one process and share the result, 4 bytes a
/// vertex.
///
/// `edges` is called twice and shows all edges each time. Throws esker::Error{kConfiguration} if this build
/// is without METIS (ESKER_METIS=OFF), there are no owners, an edge has a vertex that is not below
/// `vertices`, `edges` does not repeat itself, or the graph exceeds METIS's integers, and
/// esker::Error{kOutOfMemory} if METIS runs out of memory.
std::vector<VertexPartition::Owner> metis_owners(std::uint64_t vertices, VertexPartition::Owner owners,
                                                 std::uint64_t seed, const EdgeStream& edges);

}  // namespace inputs
