// METIS runs on PE 0; its result reaches the others by a reduction.
#include "partition.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "../harness/failure.hpp"
#include "../inputs/graph/metis_owners.hpp"

namespace graph {

using inputs::VertexPartition;

namespace {

constexpr std::uint64_t kChunk = 1 << 16;  // of a reduction

VertexPartition divided_by_metis(esker::Runtime& rt, const EdgeSource& source, std::uint64_t seed) {
  harness::doing("dividing the graph by METIS, for which PE 0 holds it whole", "--partition block or hash");
  std::vector<VertexPartition::Owner> owners = harness::agree(rt, [&] {
    if (rt.pe() != 0) return std::vector<VertexPartition::Owner>(source.vertices());
    return inputs::metis_owners(source.vertices(), rt.n_pes(), seed, [&](const inputs::EdgeVisitor& visit) {
      source.for_each_edge({0, 1}, visit);
    });
  });
  std::vector<std::uint64_t> words;
  for (std::uint64_t first = 0; first < owners.size(); first += kChunk) {
    const auto begin = owners.begin() + static_cast<std::ptrdiff_t>(first);
    const std::uint64_t count = std::min(kChunk, owners.size() - first);
    words.assign(begin, begin + static_cast<std::ptrdiff_t>(count));
    rt.all_reduce(std::span(words), esker::Reduction::kMax);
    std::transform(words.begin(), words.end(), begin,
                   [](std::uint64_t owner) { return static_cast<VertexPartition::Owner>(owner); });
  }
  return VertexPartition::table(std::move(owners), rt.n_pes());
}

}  // namespace

VertexPartition make_partition(esker::Runtime& rt, const std::string& kind, const EdgeSource& source,
                               std::uint64_t seed) {
  if (kind == "hash") return VertexPartition::hash(source.vertices(), rt.n_pes(), seed);
  if (kind == "metis") return divided_by_metis(rt, source, seed);
  return VertexPartition::block(source.vertices(), rt.n_pes());
}

}  // namespace graph
