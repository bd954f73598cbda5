// The edges that an application works on: a generator's or a file's, as its options say.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <esker/config.hpp>
#include <esker/esker.hpp>

#include "../inputs/file/part.hpp"
#include "../inputs/graph/edge.hpp"
#include "../inputs/graph/graph_file.hpp"
#include "../inputs/graph/random_graphs.hpp"
#include "../inputs/graph/star_product.hpp"

namespace graph {

/// Options that say which edges.
struct SourceOptions {
  std::string graph = "kronecker";
  std::uint64_t scale = 0;  // 0: as --size says
  std::uint64_t degree = inputs::kGapDegree;

  void add_to(esker::CommandLine& line);
  /// After the parse: the scale that --size stands for, if none is given. Throws esker::UsageError.
  void complete(const std::string& size);
  /// If the graph is named as one.
  std::optional<inputs::StarProduct> star_product() const;
};

/// And those that the applications on distributed graphs share.
struct Options : SourceOptions {
  std::string partition = "block";
  bool undirected = true;

  /// `directions` are given where the application has a choice.
  void add_to(esker::CommandLine& line, bool directions);
};

/// A stream of edges in parts, the same at each call and on each PE; nothing is held.
class EdgeSource {
 public:
  /// Shows one part of the edges.
  using Stream = std::function<void(inputs::Part, const inputs::EdgeVisitor&)>;

  /// For what is neither a generator nor a file. Edges' ends are below `vertices`. Several threads call
  /// `stream`. It `divides` if each of n parts costs an n-th of all: not a compressed text, which is
  /// decompressed for each.
  EdgeSource(std::uint64_t vertices, Stream stream, bool divides = true);

  /// Collective: of a file, each PE reads its part once, to count and to check it.
  /// Where weights are ignored, what is visited has some or other weights.
  /// Throws esker::Error{kConfiguration} for a generator's or a file's reasons, the same on every PE.
  EdgeSource(esker::Runtime& rt, const SourceOptions& options, std::uint64_t seed, inputs::Weights weights);

  std::uint64_t vertices() const { return vertices_; }
  /// Collective. Threads on each PE that read sooner than one: one where it does not divide.
  std::uint32_t readers(esker::Runtime& rt) const;
  void for_each_edge(inputs::Part part, const inputs::EdgeVisitor& visit) const { stream_(part, visit); }

  /// The same edges, each of weight 1.
  EdgeSource unweighted() const;
  /// The same edges, the other way round.
  EdgeSource reversed() const;

 private:
  std::uint64_t vertices_ = 0;
  Stream stream_;
  bool divides_ = true;
};

}  // namespace graph
