// Lines without an end: a compressed file of some KiB holds one that fills the memory.
#include <gtest/gtest.h>
#include <esker/apps/inputs/file/line_reader.hpp>
#include <esker/apps/inputs/graph/graph_file.hpp>
#include <esker/apps/inputs/points/points.hpp>
#include <esker/apps/inputs/sequence/reads.hpp>

#include <filesystem>
#include <string>

#include "gzip.hpp"
#include "written_file.hpp"

namespace inputs::testing {
namespace {

const std::string kWhy = "the line does not end within 256 MiB, the most that is taken";

/// `start`, and behind it a line of more than the most that is taken.
std::string endless(std::string start, char c) { return start.append(kMostLineBytes + 5, c) + "\n"; }

/// Behind what it holds: by zeros that take no room on the disk.
void lengthen(const WrittenFile& file) { std::filesystem::resize_file(file.path(), kMostLineBytes + 100); }

TEST(LongLine, IsRefusedWithItsNumber) {
  const WrittenFile graph(gzip(endless("# a comment\n0 1\n", ' ')), ".el.gz");
  EXPECT_LT(bytes_of(graph.path()).size(), 2'000'000u);
  EXPECT_EQ(reason([&] { GraphFile(graph.path()).for_each_edge({}, [](const Edge&) {}); }),
            graph.path() + ":3: " + kWhy);
  const WrittenFile header(gzip(endless("%%MatrixMarket matrix coordinate real general\n%", '%')), ".mtx.gz");
  EXPECT_EQ(reason([&] { GraphFile(header.path()); }), header.path() + ":2: " + kWhy);

  const auto read = [](const WrittenFile& file, Part part) {
    return reason([&] { for_each_read(file.path(), part, [](const Read&) {}); });
  };
  const WrittenFile fasta(gzip(endless(">a\nACGT\n", 'A')));
  EXPECT_EQ(read(fasta, {}), fasta.path() + ":3: " + kWhy);
  const WrittenFile plain("@a\nACGT\n+\nIIII\n@b\n");
  lengthen(plain);
  EXPECT_EQ(read(plain, {}), plain.path() + ":6: " + kWhy);
  EXPECT_EQ(read(plain, {0, 2}), plain.path() + ":6: " + kWhy);

  const auto points_of = [](const WrittenFile& file) {
    return reason([&] { read_csv<double>(file.path()); });
  };
  const WrittenFile points("1,2\n");
  lengthen(points);
  EXPECT_EQ(points_of(points), points.path() + ":2: " + kWhy);
  const WrittenFile first("1");
  lengthen(first);
  EXPECT_EQ(points_of(first), first.path() + ":1: " + kWhy);
}

}  // namespace
}  // namespace inputs::testing
