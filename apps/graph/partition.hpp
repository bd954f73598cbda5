// Which PE owns which vertex, as --partition says.
#pragma once

#include <cstdint>
#include <string>

#include <esker/esker.hpp>

#include "../inputs/graph/vertex_partition.hpp"
#include "edge_source.hpp"

namespace graph {

/// Collective. "block", "hash" or "metis". For METIS, PE 0 holds the whole graph while it divides it, and
/// every PE keeps a table of 20 bytes a vertex. What PE 0 cannot do is an error on every PE.
inputs::VertexPartition make_partition(esker::Runtime& rt, const std::string& kind, const EdgeSource& source,
                                       std::uint64_t seed);

}  // namespace graph
