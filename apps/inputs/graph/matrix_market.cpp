// Matrix Market coordinate files (Boisvert, Pozo, Remington: The Matrix Market Exchange Formats, NISTIR
// 5935).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "edge_reader.hpp"
#include "text_fields.hpp"
#include "text_file.hpp"

namespace inputs {
namespace {

using Names = std::array<std::string_view, 3>;

enum class Values { kReal, kInteger, kPattern };
constexpr Names kValues{"real", "integer", "pattern"};
constexpr Names kSymmetries{"general", "symmetric", "skew-symmetric"};  // as Symmetry

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// Which of the names the field is, in either case.
int name_in(const Names& names, std::string_view field) {
  const auto found = std::find(names.begin(), names.end(), lower(field));
  if (found == names.end()) {
    throw Malformed(fmt::format("{} is not '{}', '{}' or '{}'", quoted(field), names[0], names[1], names[2]));
  }
  return static_cast<int>(found - names.begin());
}

class MatrixMarket final : public EdgeReader {
 public:
  MatrixMarket(const std::string& path, bool compressed, Weights weights)
      : file_{path, compressed}, weights_{weights} {
    header_.format = Format::kMatrixMarket;
    header_.compressed = compressed;
    bool is_first = true;
    file_.read_header("the line of rows, columns and entries", [&](std::string_view line) {
      if (is_first) {
        read_banner(line);
        is_first = false;
        return true;
      }
      const Fields fields = split(line);
      if (is_comment(fields)) return true;
      read_size(fields);
      return false;
    });
  }

  const GraphHeader& header() const override { return header_; }

  EdgeCount for_each_edge(Part part, const EdgeVisitor& visit) const override {
    EdgeCount count;
    file_.for_each_line(part, [&](std::string_view line) {
      const Fields fields = split(line);
      if (is_comment(fields)) return;
      const Edge edge = read_entry(fields);
      visit(edge);
      count += {1, 1, std::max(edge.from, edge.to) + 1};
      if (header_.symmetry != Symmetry::kGeneral && edge.from != edge.to) {
        const bool is_negated = header_.symmetry == Symmetry::kSkewSymmetric && weights_ == Weights::kUsed;
        visit({edge.to, edge.from, is_negated ? -edge.weight : edge.weight});
        ++count.edges;
      }
    });
    return count;
  }

  void check(const EdgeCount& total) const override {
    if (total.entries == *header_.entries) return;
    file_.fail_at_line(file_.header_lines(), fmt::format("this line states {} entries, the file has {}",
                                                         *header_.entries, total.entries));
  }

 private:
  void read_banner(std::string_view line) {
    const Fields fields = split(line);
    if (fields.count == 0 || lower(fields.text[0]) != "%%matrixmarket") {
      throw Malformed("the first line does not begin with %%MatrixMarket");
    }
    if (fields.count != 4) expect_count(fields, 5);
    if (lower(fields.text[1]) != "matrix") throw Malformed(quoted(fields.text[1]) + " is not 'matrix'");
    if (lower(fields.text[2]) != "coordinate") {
      throw Malformed(quoted(fields.text[2]) + " is not 'coordinate': dense matrices are no graphs");
    }
    values_ = Values{name_in(kValues, fields.text[3])};
    header_.weighted = values_ != Values::kPattern;
    header_.symmetry =
        fields.count == 4 ? Symmetry::kGeneral : Symmetry{name_in(kSymmetries, fields.text[4])};
    if (!header_.weighted && header_.symmetry == Symmetry::kSkewSymmetric) {
      throw Malformed("a pattern has no signs, so it cannot be skew-symmetric");
    }
  }

  void read_size(const Fields& fields) {
    expect_count(fields, 3);
    const std::uint64_t rows = to_index(fields.text[0], "number of rows");
    const std::uint64_t columns = to_index(fields.text[1], "number of columns");
    if (rows != columns) {
      throw Malformed(fmt::format("{} rows and {} columns: the matrix of a graph is square", rows, columns));
    }
    header_.vertices = rows;
    header_.entries = to_index(fields.text[2], "number of entries");
  }

  std::uint64_t to_vertex(std::string_view field) const {
    const std::uint64_t index = to_index(field, "index");
    if (index == 0 || index > *header_.vertices) {
      throw Malformed(fmt::format("index {} is out of range: it is 1 to {}", index, *header_.vertices));
    }
    return index - 1;
  }

  Edge read_entry(const Fields& fields) const {
    expect_count(fields, header_.weighted ? 3 : 2);
    Edge edge{to_vertex(fields.text[0]), to_vertex(fields.text[1]), 1};
    if (header_.weighted && weights_ == Weights::kIgnored) {
      expect_number(fields.text[2]);
    } else if (header_.weighted) {
      edge.weight = values_ == Values::kReal ? to_real(fields.text[2]) : to_integer(fields.text[2]);
    }
    if (header_.symmetry == Symmetry::kSkewSymmetric && edge.from == edge.to) {
      throw Malformed("on the diagonal, where a skew-symmetric file stores nothing");
    }
    return edge;
  }

  TextFile file_;
  Weights weights_;
  GraphHeader header_{};
  Values values_{};
};

}  // namespace

std::unique_ptr<EdgeReader> open_matrix_market(const std::string& path, bool compressed, Weights weights) {
  return std::make_unique<MatrixMarket>(path, compressed, weights);
}

}  // namespace inputs
