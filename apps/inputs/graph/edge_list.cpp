// The edge lists of the GAP benchmark suite: .el and .wel.
#include <algorithm>

#include "edge_reader.hpp"
#include "text_fields.hpp"
#include "text_file.hpp"

namespace inputs {
namespace {

class EdgeList final : public EdgeReader {
 public:
  EdgeList(const std::string& path, bool weighted, bool compressed, Weights weights)
      : file_{path, compressed},
        weights_{weights},
        header_{.format = weighted ? Format::kWeightedList : Format::kEdgeList,
                .compressed = compressed,
                .weighted = weighted,
                .symmetry = Symmetry::kGeneral,
                .vertices = {},
                .entries = {}} {}

  const GraphHeader& header() const override { return header_; }

  EdgeCount for_each_edge(Part part, const EdgeVisitor& visit) const override {
    EdgeCount count;
    file_.for_each_line(part, [&](std::string_view line) {
      const Fields fields = split(line);
      if (is_comment(fields)) return;
      expect_count(fields, header_.weighted ? 3 : 2);
      Edge edge{to_index(fields.text[0], "vertex"), to_index(fields.text[1], "vertex"), 1};
      if (header_.weighted && weights_ == Weights::kUsed) edge.weight = to_real(fields.text[2]);
      if (header_.weighted && weights_ == Weights::kIgnored) expect_number(fields.text[2]);
      visit(edge);
      count += {1, 1, std::max(edge.from, edge.to) + 1};
    });
    return count;
  }

  void check(const EdgeCount& total) const override {
    if (total.entries == 0) file_.fail_at_line(1, "the file has no edges, only blank lines and comments");
  }

 private:
  TextFile file_;
  Weights weights_;
  GraphHeader header_;
};

}  // namespace

std::unique_ptr<EdgeReader> open_edge_list(const std::string& path, bool weighted, bool compressed,
                                           Weights weights) {
  return std::make_unique<EdgeList>(path, weighted, compressed, weights);
}

}  // namespace inputs
