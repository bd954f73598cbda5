// The graph as METIS wants it: both directions of each edge, once, without loops.
#include "metis_owners.hpp"

#include <fmt/format.h>
#include <metis.h>
#include <esker/error.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace inputs {
namespace {

static_assert(std::is_signed_v<idx_t> && sizeof(idx_t) >= 4);

using Owner = VertexPartition::Owner;

[[noreturn]] void fail(const std::string& reason) {
  throw esker::Error(esker::Error::Kind::kConfiguration, "METIS partition: " + reason);
}

/// Compressed sparse rows.
struct Neighbours {
  std::vector<idx_t> offset;  // of a vertex's first one; one more than there are vertices
  std::vector<idx_t> id;
};

void expect_fits(std::uint64_t value, const char* what) {
  const auto most = static_cast<std::uint64_t>(std::numeric_limits<idx_t>::max());
  if (value > most) fail(fmt::format("{} {}: its integers end at {}", value, what, most));
}

/// Duplicates included, in no order.
Neighbours all_neighbours(std::uint64_t vertices, const EdgeStream& edges) {
  std::vector<std::uint64_t> next(vertices + 1);  // first degrees, then where a row's next neighbour goes
  std::uint64_t total = 0;
  edges([&](const Edge& edge) {
    if (std::max(edge.from, edge.to) >= vertices) {
      fail(fmt::format("edge {} -> {} of a graph of {} vertices", edge.from, edge.to, vertices));
    }
    if (edge.from == edge.to) return;
    ++next[edge.from];
    ++next[edge.to];
    total += 2;
  });
  expect_fits(total, "neighbours");
  Neighbours result;
  result.offset.reserve(vertices + 1);
  result.id.resize(total);
  std::uint64_t sum = 0;
  for (std::uint64_t& degree : next) {
    result.offset.push_back(static_cast<idx_t>(sum));
    sum += std::exchange(degree, sum);
  }
  const auto place = [&](std::uint64_t at, std::uint64_t neighbour) {
    if (at >= vertices || next[at] == static_cast<std::uint64_t>(result.offset[at + 1])) {
      fail("the stream of edges did not repeat itself");
    }
    result.id[next[at]++] = static_cast<idx_t>(neighbour);
  };
  edges([&](const Edge& edge) {
    if (edge.from == edge.to) return;
    place(edge.from, edge.to);
    place(edge.to, edge.from);
  });
  for (std::uint64_t v = 0; v < vertices; ++v) {
    if (next[v] != static_cast<std::uint64_t>(result.offset[v + 1]))
      fail("the stream of edges did not repeat itself");
  }
  return result;
}

void remove_duplicates(Neighbours& graph) {
  std::ptrdiff_t kept = 0;
  for (std::size_t v = 0; v + 1 < graph.offset.size(); ++v) {
    const auto begin = graph.id.begin() + graph.offset[v];
    auto end = graph.id.begin() + graph.offset[v + 1];
    std::sort(begin, end);
    end = std::unique(begin, end);
    graph.offset[v] = static_cast<idx_t>(kept);
    kept = std::move(begin, end, graph.id.begin() + kept) - graph.id.begin();
  }
  graph.offset.back() = static_cast<idx_t>(kept);
  graph.id.resize(static_cast<std::size_t>(kept));
}

std::vector<Owner> blocks(std::uint64_t vertices, Owner owners) {
  const VertexPartition partition = VertexPartition::block(vertices, owners);
  std::vector<Owner> result(vertices);
  for (std::uint64_t v = 0; v < vertices; ++v) result[v] = partition.owner(v);
  return result;
}

}  // namespace

std::vector<Owner> metis_owners(std::uint64_t vertices, Owner owners, std::uint64_t seed,
                                const EdgeStream& edges) {
  if (owners == 0) fail("there are no owners");
  expect_fits(vertices, "vertices");
  expect_fits(owners, "owners");
  Neighbours graph = all_neighbours(vertices, edges);
  remove_duplicates(graph);
  // METIS itself divides by zero or gives up on what has nothing to cut or to choose.
  if (owners == 1 || owners >= vertices || graph.id.empty()) return blocks(vertices, owners);

  std::array<idx_t, METIS_NOPTIONS> options{};
  METIS_SetDefaultOptions(options.data());
  options[METIS_OPTION_SEED] = static_cast<idx_t>(seed & 0x7fffffff);
  auto n = static_cast<idx_t>(vertices);
  auto parts = static_cast<idx_t>(owners);
  idx_t constraints = 1;
  idx_t cut = 0;
  std::vector<idx_t> part(vertices);
  const int state =
      METIS_PartGraphKway(&n, &constraints, graph.offset.data(), graph.id.data(), nullptr, nullptr, nullptr,
                          &parts, nullptr, nullptr, options.data(), &cut, part.data());
  if (state == METIS_ERROR_MEMORY) {
    throw esker::Error(esker::Error::Kind::kOutOfMemory,
                       fmt::format("METIS partition of {} vertices: no memory", vertices));
  }
  if (state != METIS_OK) fail(fmt::format("METIS_PartGraphKway returned {}", state));
  return {part.begin(), part.end()};
}

}  // namespace inputs
