// The formats by their names.
#include "graph_file.hpp"

#include <fmt/format.h>
#include <esker/error.hpp>

#include <algorithm>
#include <string_view>

#include "edge_reader.hpp"

namespace inputs {
namespace {

std::unique_ptr<EdgeReader> open(const std::string& path, Weights weights) {
  std::string_view name = path;
  const bool compressed = name.ends_with(".gz");
  if (compressed) name.remove_suffix(3);
  if (name.ends_with(".el")) return open_edge_list(path, false, compressed, weights);
  if (name.ends_with(".wel")) return open_edge_list(path, true, compressed, weights);
  if (name.ends_with(".mtx") || name.ends_with(".mm")) return open_matrix_market(path, compressed, weights);
  const bool weighted = name.ends_with(".wsg");
  if ((weighted || name.ends_with(".sg")) && !compressed) return open_serialized(path, weighted, weights);
  throw esker::Error(
      esker::Error::Kind::kConfiguration,
      fmt::format("{}: no graph by its name: .mtx, .mm, .el, .wel, each also with .gz, .sg or .wsg", path));
}

}  // namespace

EdgeCount& EdgeCount::operator+=(const EdgeCount& other) {
  entries += other.entries;
  edges += other.edges;
  vertices = std::max(vertices, other.vertices);
  return *this;
}

GraphFile::GraphFile(const std::string& path, Weights weights) : reader_{open(path, weights)} {}
GraphFile::~GraphFile() = default;
GraphFile::GraphFile(GraphFile&&) noexcept = default;
GraphFile& GraphFile::operator=(GraphFile&&) noexcept = default;

const GraphHeader& GraphFile::header() const { return reader_->header(); }

EdgeCount GraphFile::for_each_edge(Part part, const EdgeVisitor& visit) const {
  return reader_->for_each_edge(part, visit);
}

void GraphFile::check(const EdgeCount& total) const { reader_->check(total); }

}  // namespace inputs
