// One format's reader: what GraphFile chooses by the file's name.
#pragma once

#include <memory>
#include <string>

#include "graph_file.hpp"

namespace inputs {

/// The functions are those of GraphFile.
class EdgeReader {
 public:
  virtual ~EdgeReader() = default;
  virtual const GraphHeader& header() const = 0;
  virtual EdgeCount for_each_edge(Part part, const EdgeVisitor& visit) const = 0;
  virtual void check(const EdgeCount& total) const = 0;
};

std::unique_ptr<EdgeReader> open_edge_list(const std::string& path, bool weighted, bool compressed,
                                           Weights weights);
std::unique_ptr<EdgeReader> open_matrix_market(const std::string& path, bool compressed, Weights weights);
std::unique_ptr<EdgeReader> open_serialized(const std::string& path, bool weighted, Weights weights);

}  // namespace inputs
