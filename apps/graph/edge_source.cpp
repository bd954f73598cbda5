// Generators by name; anything else is a file.
#include "edge_source.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "../harness/failure.hpp"
#include "../harness/team.hpp"
#include "../inputs/file/byte_stream.hpp"
#include "../inputs/file/file.hpp"
#include "../inputs/graph/bubble_mesh.hpp"
#include "../inputs/graph/cage.hpp"

namespace graph {
namespace {

/// Collective: make() fails alike on every PE, for what --scale and --degree ask of it.
template <class Make>
EdgeSource generated(esker::Runtime& rt, const Make& make) {
  using Generator = std::invoke_result_t<const Make&>;
  const auto generator = std::make_shared<const Generator>(harness::agree(rt, make));
  auto words = static_cast<double>(generator->vertices());
  if constexpr (std::is_base_of_v<inputs::RandomGraph, Generator>)
    words += static_cast<double>(generator->edges());
  harness::require_memory(rt, sizeof(std::uint64_t) * words / rt.n_pes(), "the generated vertices and edges",
                          "a lower --scale or --degree");
  return {generator->vertices(), [generator](inputs::Part part, const inputs::EdgeVisitor& visit) {
            generator->for_each_edge(part, visit);
          }};
}

/// The longest polymer that has at most 2^scale states.
unsigned monomers_for(std::uint64_t scale) {
  constexpr std::array<std::uint64_t, 13> kStates = {5,     9,     37,     93,     340,     1015,   3534,
                                                     11397, 39082, 130228, 445315, 1505785, 5154859};
  const auto end = std::upper_bound(kStates.begin(), kStates.end(),
                                    std::uint64_t{1} << std::min<std::uint64_t>(scale, 62));
  return 3 + static_cast<unsigned>(std::max<std::ptrdiff_t>(end - kStates.begin(), 1) - 1);
}

/// A square mesh of at least 2^scale vertices.
inputs::BubbleMesh mesh_for(std::uint64_t scale, std::uint64_t seed) {
  std::uint64_t side = 1;
  while (side * side * inputs::BubbleMesh::kTileVertices < std::uint64_t{1} << scale) ++side;
  return {side, side, seed};
}

/// Collective. As many on each PE: together they divide the edges.
std::uint32_t least_host_threads(esker::Runtime& rt) {
  std::array<std::uint64_t, 1> threads{rt.host_threads()};
  rt.all_reduce(std::span<std::uint64_t>(threads), esker::Reduction::kMin);
  return static_cast<std::uint32_t>(threads[0]);
}

EdgeSource read_from(esker::Runtime& rt, const std::string& path, inputs::Weights weights) {
  harness::doing("reading the graph", "more PEs");
  bool divides = true;
  const auto file = harness::agree(rt, [&] {
    divides = !inputs::is_gzip(inputs::File(path));
    return std::make_shared<const inputs::GraphFile>(path, weights);
  });
  const std::uint32_t readers = divides ? least_host_threads(rt) : 1;
  std::vector<inputs::EdgeCount> counts(readers);
  harness::agree(rt, [&] {
    harness::run_team(readers, [&](std::uint32_t t) {
      counts[t] = file->for_each_edge(inputs::nested({rt.pe(), rt.n_pes()}, {t, readers}),
                                      [](const inputs::Edge& /*edge*/) {});
    });
  });
  std::array<std::uint64_t, 2> sums{};
  std::array<std::uint64_t, 1> most{};
  for (const inputs::EdgeCount& mine : counts) {
    sums = {sums[0] + mine.entries, sums[1] + mine.edges};
    most[0] = std::max(most[0], mine.vertices);
  }
  rt.all_reduce(std::span<std::uint64_t>(sums), esker::Reduction::kSum);
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  harness::agree(rt, [&] { file->check({sums[0], sums[1], most[0]}); });
  return {file->header().vertices.value_or(most[0]),
          [file](inputs::Part part, const inputs::EdgeVisitor& visit) { file->for_each_edge(part, visit); },
          divides};
}

EdgeSource opened(esker::Runtime& rt, const SourceOptions& o, std::uint64_t seed, inputs::Weights weights) {
  const auto scale = static_cast<unsigned>(o.scale);
  if (o.graph == "kronecker") return generated(rt, [&] { return inputs::Kronecker(scale, o.degree, seed); });
  if (o.graph == "uniform")
    return generated(rt, [&] { return inputs::UniformRandom(scale, o.degree, seed); });
  if (o.graph == "bubbles") return generated(rt, [&] { return mesh_for(o.scale, seed); });
  if (o.graph == "cage") return generated(rt, [&] { return inputs::Cage(monomers_for(o.scale)); });
  if (o.star_product()) return generated(rt, [&] { return *o.star_product(); });
  return read_from(rt, o.graph, weights);
}

}  // namespace

void SourceOptions::add_to(esker::CommandLine& line) {
  line.add("graph", &graph,
           "kronecker, uniform, bubbles, cage, stars:MODE:MxMx... (bale's products of stars), or a file: "
           ".mtx, "
           ".el, .wel, .sg, text also .gz")
      .add("scale", &scale, "a generated graph has about 2^scale vertices; 0: as --size says")
      .add("degree", &degree, "edges a vertex that kronecker and uniform draw");
}

void SourceOptions::complete(const std::string& size) {
  if (scale == 0) scale = size == "small" ? 14 : size == "medium" ? 18 : 24;
  if (scale > inputs::kMaxScale)
    throw esker::UsageError("--scale is at most " + std::to_string(inputs::kMaxScale));
  if (degree == 0 || degree > inputs::kMaxDegree)
    throw esker::UsageError("--degree is 1 to " + std::to_string(inputs::kMaxDegree));
  try {
    (void)star_product();
  } catch (const esker::Error& wrong) {
    throw esker::UsageError("--graph " + std::string(wrong.what()));
  }
}

std::optional<inputs::StarProduct> SourceOptions::star_product() const {
  constexpr std::string_view kName = "stars:";
  if (!graph.starts_with(kName)) return std::nullopt;
  return inputs::StarProduct(graph.substr(kName.size()));
}

void Options::add_to(esker::CommandLine& line, bool directions) {
  SourceOptions::add_to(line);
  line.add("partition", &partition, "which PE owns which vertex", {"block", "hash", "metis"});
  if (directions) line.add("undirected", &undirected, "every edge in both directions");
}

EdgeSource::EdgeSource(std::uint64_t vertices, Stream stream, bool divides)
    : vertices_{vertices}, stream_{std::move(stream)}, divides_{divides} {}

EdgeSource::EdgeSource(esker::Runtime& rt, const SourceOptions& options, std::uint64_t seed,
                       inputs::Weights weights)
    : EdgeSource{opened(rt, options, seed, weights)} {}

std::uint32_t EdgeSource::readers(esker::Runtime& rt) const { return divides_ ? least_host_threads(rt) : 1; }

EdgeSource EdgeSource::unweighted() const {
  return {vertices_,
          [stream = stream_](inputs::Part part, const inputs::EdgeVisitor& visit) {
            stream(part, [&](const inputs::Edge& edge) { visit({edge.from, edge.to, 1}); });
          },
          divides_};
}

EdgeSource EdgeSource::reversed() const {
  return {vertices_,
          [stream = stream_](inputs::Part part, const inputs::EdgeVisitor& visit) {
            stream(part, [&](const inputs::Edge& edge) { visit({edge.to, edge.from, edge.weight}); });
          },
          divides_};
}

}  // namespace graph
