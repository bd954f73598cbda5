// The edge lists of the GAP benchmark suite: .el and .wel.
#include <algorithm>

#include "edge_reader.hpp"
#include "text_fields.hpp"
#include "text_file.hpp"

namespace inputs {
namespace {

class EdgeList final : public EdgeReader {
 public:
  EdgeList(const std::string& path, bool weighted, bool compressed)
      : file_{path, compressed},
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
      const Edge edge{to_index(fields.text[0], "vertex"), to_index(fields.text[1], "vertex"),
                      header_.weighted ? to_real(fields.text[2]) : 1};
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
  GraphHeader header_;
};

}  // namespace

std::unique_ptr<EdgeReader> open_edge_list(const std::string& path, bool weighted, bool compressed) {
  return std::make_unique<EdgeList>(path, weighted, compressed);
}

}  // namespace inputs
