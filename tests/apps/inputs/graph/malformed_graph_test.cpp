// Files that are wrong: each error names the file, the line or byte, and the reason.
#include <gtest/gtest.h>
#include <esker/apps/inputs/graph/graph_file.hpp>

#include <filesystem>
#include <string>

#include "../gzip.hpp"
#include "collected.hpp"
#include "serialized_bytes.hpp"

namespace inputs::testing {
namespace {

struct Case {
  const char* name;
  const char* ending;
  std::string bytes;
  std::string message;  // after the path
};

/// Reads everything and checks the total, in so many parts.
void read(const std::string& path, std::uint64_t parts) {
  const GraphFile file(path);
  file.check(count(file, parts));
}

class MalformedGraph : public ::testing::TestWithParam<Case> {};

TEST_P(MalformedGraph, IsAnErrorThatSaysWhereAndWhy) {
  const WrittenFile written(GetParam().bytes, GetParam().ending);
  for (const std::uint64_t parts : kPartCounts) {
    EXPECT_EQ(reason([&] { read(written.path(), parts); }), written.path() + GetParam().message)
        << parts << " parts";
  }
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) { return info.param.name; }

const std::string kBanner = "%%MatrixMarket matrix coordinate real general\n";
const std::string kSymmetric = "%%MatrixMarket matrix coordinate pattern symmetric\n";

INSTANTIATE_TEST_SUITE_P(
    EdgeList, MalformedGraph,
    ::testing::Values(
        Case{"Empty", ".el", "", ": is empty"},
        Case{"OnlyComments", ".el", "# 1 2\n\n", ":1: the file has no edges, only blank lines and comments"},
        Case{"TooFewFields", ".el", "0 1\n2\n", ":2: 1 field instead of 2"},
        Case{"TooManyFields", ".el", "0 1\n\n2 3 4\n0 1\n", ":3: 3 fields instead of 2"},
        Case{"ManyMoreFields", ".el", "0 1 2 3 4 5 6 7\n", ":1: 8 fields instead of 2"},
        Case{"WeightMissing", ".wel", "0 1 5\n2 3\n", ":2: 2 fields instead of 3"},
        Case{"NotANumber", ".el", "0 1\n2 x3\n", ":2: 'x3' is not a 64-bit integer"},
        Case{"NumberAndMore", ".el", "0 1z\n", ":1: '1z' is not a 64-bit integer"},
        Case{"SignAlone", ".el", "+ 1\n", ":1: '+' is not a 64-bit integer"},
        Case{"TwoSigns", ".el", "+-1 1\n", ":1: '+-1' is not a 64-bit integer"},
        Case{"Fraction", ".el", "0 1.5\n", ":1: '1.5' is not a 64-bit integer"},
        Case{"Negative", ".el", "0 1\n-2 3\n", ":2: vertex -2 is negative"},
        Case{"Overflow", ".el", "0 9223372036854775808\n",
             ":1: '9223372036854775808' overflows a 64-bit integer"},
        Case{"Zeros", ".el", std::string("0 1\n\0 2\n", 8), ":2: '?' is not a 64-bit integer"},
        Case{"WeightNotANumber", ".wel", "0 1 1e\n", ":1: '1e' is not a double"},
        Case{"WeightOverflow", ".wel", "0 1 1e999\n", ":1: '1e999' overflows a double"},
        Case{"WeightInfinite", ".wel", "0 1 inf\n", ":1: 'inf' is not finite"},
        Case{"WeightNan", ".wel", "0 1 1\n0 1 nan\n", ":2: 'nan' is not finite"},
        Case{"LongLine", ".el", "0 1\n" + std::string(200'000, '1') + "\n", ":2: 1 field instead of 2"},
        Case{"LongField", ".el", std::string(60, 'a') + " 1\n",
             ":1: '" + std::string(40, 'a') + "...' is not a 64-bit integer"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    MatrixMarket, MalformedGraph,
    ::testing::Values(
        Case{"NoBanner", ".mtx", "3 3 1\n1 2 0.5\n", ":1: the first line does not begin with %%MatrixMarket"},
        Case{"BlankFirst", ".mtx", "\n" + kBanner, ":1: the first line does not begin with %%MatrixMarket"},
        Case{"ShortBanner", ".mtx", "%%MatrixMarket matrix\n", ":1: 2 fields instead of 5"},
        Case{"Vector", ".mtx", "%%MatrixMarket vector coordinate real general\n",
             ":1: 'vector' is not 'matrix'"},
        Case{"Dense", ".mtx", "%%MatrixMarket matrix array real general\n",
             ":1: 'array' is not 'coordinate': dense matrices are no graphs"},
        Case{"Complex", ".mtx", "%%MatrixMarket matrix coordinate complex general\n",
             ":1: 'complex' is not 'real', 'integer' or 'pattern'"},
        Case{"Hermitian", ".mtx", "%%MatrixMarket matrix coordinate real hermitian\n",
             ":1: 'hermitian' is not 'general', 'symmetric' or 'skew-symmetric'"},
        Case{"SkewPattern", ".mtx", "%%MatrixMarket matrix coordinate pattern skew-symmetric\n",
             ":1: a pattern has no signs, so it cannot be skew-symmetric"},
        Case{"NoSizeLine", ".mtx", kBanner + "% 3 3 1\n",
             ":2: the file ends without the line of rows, columns and entries"},
        Case{"SizeLineTooShort", ".mtx", kBanner + "3 3\n1 2 0.5\n", ":2: 2 fields instead of 3"},
        Case{"NegativeRows", ".mtx", kBanner + "-3 3 1\n", ":2: number of rows -3 is negative"},
        Case{"NegativeEntries", ".mtx", kBanner + "3 3 -1\n", ":2: number of entries -1 is negative"},
        Case{"Rectangular", ".mtx", kBanner + "3 4 1\n1 2 0.5\n",
             ":2: 3 rows and 4 columns: the matrix of a graph is square"},
        Case{"RowOutOfRange", ".mtx", kBanner + "3 3 1\n4 2 0.5\n",
             ":3: index 4 is out of range: it is 1 to 3"},
        Case{"ColumnZero", ".mtx", kBanner + "3 3 2\n1 1 1\n1 0 0.5\n",
             ":4: index 0 is out of range: it is 1 to 3"},
        Case{"IndexNegative", ".mtx", kBanner + "3 3 1\n1 -1 0.5\n", ":3: index -1 is negative"},
        Case{"ValueMissing", ".mtx", kBanner + "3 3 1\n1 1\n", ":3: 2 fields instead of 3"},
        Case{"ValueInPattern", ".mtx", kSymmetric + "3 3 1\n2 1 5\n", ":3: 3 fields instead of 2"},
        Case{"SkewDiagonal", ".mtx", "%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 1\n2 2 1\n",
             ":3: on the diagonal, where a skew-symmetric file stores nothing"},
        Case{"IntegerTooLarge", ".mtx",
             "%%MatrixMarket matrix coordinate integer general\n3 3 1\n1 1 9007199254740993\n",
             ":3: '9007199254740993' is beyond 2^53, the integers that a double holds"},
        Case{"IntegerIsReal", ".mtx", "%%MatrixMarket matrix coordinate integer general\n3 3 1\n1 1 0.5\n",
             ":3: '0.5' is not a 64-bit integer"},
        Case{"FewerEntries", ".mtx", kBanner + "%\n3 3 3\n1 1 1\n1 2 1\n",
             ":3: this line states 3 entries, the file has 2"},
        Case{"MoreEntries", ".mtx", kBanner + "3 3 1\n1 1 1\n1 2 1\n",
             ":2: this line states 1 entries, the file has 2"},
        Case{"CutWithinALine", ".mtx", kBanner + "3 3 2\n1 1 1\n1 2", ":4: 2 fields instead of 3"},
        Case{"TrailingGarbage", ".mtx", kBanner + "3 3 1\n1 1 1\nthe end\n", ":4: 2 fields instead of 3"}),
    name_of);

std::string without_end(const std::string& bytes, std::size_t count) {
  return bytes.substr(0, bytes.size() - count);
}

INSTANTIATE_TEST_SUITE_P(
    Compressed, MalformedGraph,
    ::testing::Values(Case{"Empty", ".el.gz", "", ": is empty"},
                      Case{"EmptyText", ".el.gz", gzip(""), ": holds nothing but an empty gzip stream"},
                      Case{"Plain", ".el.gz", "0 1\n0 2\n0 3\n",
                           ": byte 2: the gzip stream cannot be read: incorrect header check"},
                      Case{"CutInTheHeader", ".el.gz", gzip("0 1\n").substr(0, 5),
                           ": byte 5: the gzip stream is truncated"},
                      Case{"CutInTheCheckSum", ".el.gz", without_end(gzip("0 1\n"), 3),
                           ": byte " + std::to_string(gzip("0 1\n").size() - 3) +
                               ": the gzip stream is truncated"},
                      Case{"TrailingBytes", ".el.gz", gzip("0 1\n") + "garbage",
                           ": byte " + std::to_string(gzip("0 1\n").size()) +
                               ": neither the end of the file nor another gzip member"},
                      Case{"BadLine", ".el.gz", gzip("0 1\n0 1\n0\n"), ":3: 1 field instead of 2"},
                      Case{"BadSize", ".mtx.gz", gzip(kBanner + "3 3\n"), ":2: 2 fields instead of 3"},
                      Case{"BadEntry", ".mtx.gz", gzip(kBanner + "3 3 1\n1 4 1\n"),
                           ":3: index 4 is out of range: it is 1 to 3"}),
    name_of);

const SerializedBytes kGood{0, 4, 4, {0, 1, 1, 3, 4}, {2, 0, 3, 2}};

std::string changed(void (*change)(SerializedBytes&)) {
  SerializedBytes bytes = kGood;
  change(bytes);
  return bytes.text();
}

INSTANTIATE_TEST_SUITE_P(
    Serialized, MalformedGraph,
    ::testing::Values(
        Case{"Empty", ".sg", "", ": is empty"},
        Case{"NoHeader", ".sg", kGood.text().substr(0, 10),
             ": byte 10: the file ends within its header of 17 bytes"},
        Case{"Truncated", ".sg", without_end(kGood.text(), 1),
             ": byte 72: truncated: 4 vertices and 4 neighbours take 73 bytes, the file has 72"},
        Case{"TrailingBytes", ".sg", kGood.text() + "x",
             ": byte 73: trailing bytes: 4 vertices and 4 neighbours take 73 bytes, the file has 74"},
        Case{"WithoutIncomingEdges", ".sg", std::string("\1") + kGood.text().substr(1),
             ": byte 73: truncated: 4 vertices and 4 neighbours take 129 bytes, the file has 73"},
        Case{"ReadAsWeighted", ".wsg", kGood.text(),
             ": byte 73: truncated: 4 vertices and 4 neighbours take 89 bytes, the file has 73"},
        Case{"DirectedIsTwo", ".sg", changed([](SerializedBytes& b) { b.directed = 2; }),
             ": byte 0: 'directed' is 2, not 0 or 1"},
        Case{"NegativeNeighbours", ".sg", changed([](SerializedBytes& b) { b.neighbours = -1; }),
             ": byte 1: the number of neighbours, -1, is negative"},
        Case{"NeighboursOverflow", ".sg", changed([](SerializedBytes& b) { b.neighbours = INT64_MAX; }),
             ": byte 1: the number of neighbours, 9223372036854775807, overflows"},
        Case{"NegativeVertices", ".sg", changed([](SerializedBytes& b) { b.vertices = -5; }),
             ": byte 9: the number of vertices, -5, is not 0 to 2^31"},
        Case{"VerticesBeyondIds", ".sg", changed([](SerializedBytes& b) { b.vertices = INT64_MAX; }),
             ": byte 9: the number of vertices, 9223372036854775807, is not 0 to 2^31"},
        Case{"FirstOffset", ".sg", changed([](SerializedBytes& b) { b.offsets[0] = 1; }),
             ": byte 17: the first offset is not 0"},
        Case{"LastOffset", ".sg", changed([](SerializedBytes& b) { b.offsets[4] = 3; }),
             ": byte 49: the last offset is not 4, the number of neighbours"},
        Case{"OffsetFalls", ".sg", changed([](SerializedBytes& b) { b.offsets[2] = 0; }),
             ": byte 33: offset 0 of vertex 2 is below the one before, 1, or above 4"},
        Case{"OffsetTooLarge", ".sg", changed([](SerializedBytes& b) { b.offsets[1] = 5; }),
             ": byte 25: offset 5 of vertex 1 is below the one before, 0, or above 4"},
        Case{"IdTooLarge", ".sg", changed([](SerializedBytes& b) { b.ids[2] = 4; }),
             ": byte 65: neighbour 4 of vertex 2 is out of range: 4 vertices"},
        Case{"IdNegative", ".sg", changed([](SerializedBytes& b) { b.ids[0] = -1; }),
             ": byte 57: neighbour -1 of vertex 0 is out of range: 4 vertices"}),
    name_of);

void expect_cannot_open(const std::string& path, const std::string& message) {
  EXPECT_EQ(reason([&] { GraphFile{path}; }), path + message);
}

TEST(GraphFile, NamesWhatCannotBeOpened) {
  const std::string legal = ": no graph by its name: .mtx, .mm, .el, .wel, each also with .gz, .sg or .wsg";
  expect_cannot_open("/nowhere/at/all.el", ": cannot be opened: No such file or directory");
  expect_cannot_open("graph.txt", legal);
  expect_cannot_open("graph.sg.gz", legal);
  expect_cannot_open("", legal);
}

TEST(GraphFile, IsARegularFile) {
  const std::string folder = std::filesystem::temp_directory_path() / "esker-graph-folder.el";
  std::filesystem::create_directory(folder);
  expect_cannot_open(folder, ": is not a regular file");
  std::filesystem::remove(folder);
}

}  // namespace
}  // namespace inputs::testing
