// Points of text files.
#include <array>
#include <cmath>

#include <vector>

#include <esker/apps/inputs/points/points.hpp>

#include "../in_parts.hpp"

namespace inputs::testing {
namespace {

const std::vector<double> kSix{1, -2.5, 3e10, 0.125, 5, 6};

auto reader(const WrittenFile& file) {
  return [&](Part part) { return read_csv<double>(file.path(), part).values; };
}

TEST(Csv, EveryWayToWriteIsReadAtEveryCut) {
  for (const std::string text :
       {"1,-2.5\n3e10,.125\n5,6\n",           //
        "1,-2.5\n3e10,.125\n5,6",             //
        "x,y\n1,-2.5\n3e10,.125\n5,6\n",      //
        "\n# x y\n1 -2.5\n3e10 .125\n5 6\n",  //
        " 1 , -2.5\r\n+3E+10,\t0.125\r\n\r\n5.0,6.\r\n\r\n", "  1\t\t-2.5 \n\n \t\n3e10 1.25e-1\n5 6   \n"}) {
    SCOPED_TRACE(text);
    const WrittenFile file(text);
    for (std::uint64_t parts = 1; parts < text.size() + 3; ++parts) {
      ASSERT_EQ(in_parts(reader(file), parts), kSix) << parts << " parts";
    }
    const auto points = read_csv<double>(file.path());
    EXPECT_EQ(points.columns, 2u);
    EXPECT_EQ(points.rows(), 3u);
    EXPECT_EQ(points[1][1], 0.125);
  }
}

TEST(Csv, APartWithoutPointsKnowsTheColumns) {
  const WrittenFile file("1,2,3\n");
  const auto points = read_csv<float>(file.path(), {3, 4});
  EXPECT_EQ(points.columns, 3u);
  EXPECT_EQ(points.rows(), 0u);
}

TEST(Csv, FloatsAreRounded) {
  const WrittenFile file("0.1 16777217\n");
  EXPECT_EQ(read_csv<float>(file.path()).values, (std::vector<float>{0.1f, 16777216.0f}));
}

TEST(Csv, OneColumnIsEnough) {
  const WrittenFile file("value\n1\n2\n");
  EXPECT_EQ(read_points<double>(file.path()).values, (std::vector<double>{1, 2}));
}

TEST(Csv, TheFileTheLineAndTheReasonAreSaid) {
  const struct {
    const char* text;
    const char* why;
  } cases[] = {{"1,2\n3\n", ":2: 1 numbers, where the first point of the file has 2"},
               {"1,2\n3,4,5\n", ":2: 3 numbers, where the first point of the file has 2"},
               {"1,2\n3,\n", ":2: field 2, '', is empty"},
               {"1,2\n3,x\n", ":2: field 2, 'x', is not a number"},
               {"a,2\n3,4\n", ":1: field 1, 'a', is not a number"},
               {"a,b\nc,d\n3,4\n", ":2: field 1, 'c', is not a number"},
               {"1,2\n3,4x\n", ":2: field 2, '4x', is not a number"},
               {"1,2\n3,0x4\n", ":2: field 2, '0x4', is not a number"},
               {"1,2\n3,+-4\n", ":2: field 2, '+-4', is not a number"},
               {"1,2\n3,+\n", ":2: field 2, '+', is not a number"},
               {"1,2\n3;4\n", ":2: field 1, '3;4', is not a number"},
               {"1,2\n3,4 5\n", ":2: field 2, '4 5', is not a number"},
               {"1,2\n3,nan\n", ":2: field 2, 'nan', is not finite"},
               {"1,2\n3,-inf\n", ":2: field 2, '-inf', is not finite"},
               {"1,2\n3,1e999\n", ":2: field 2, '1e999', is out of range"},
               {"x,y\n", ": holds no points"},
               {"\n\n", ": holds no points"},
               {"\x1f\x8b\x08", ": is compressed: points are read from plain files"},
               {"", ": is empty"}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    const WrittenFile file(c.text);
    for (const std::uint64_t parts : {1u, 2u, 3u, 7u, 30u}) {
      expect_reason(first_reason(reader(file), parts), file, c.why);
    }
  }
  const WrittenFile large("1e300\n");
  expect_reason(reason([&] { read_csv<float>(large.path()); }), large,
                ":1: field 1, '1e300', is out of range");
  EXPECT_EQ(read_csv<double>(large.path()).values.front(), 1e300);
}

TEST(Csv, MutatedFilesAreReadOrRefusedAlikeInAllParts) {
  const std::string good = "x,y\n1,-2.5\n3e10,.125\n\n5,6\n7.5,88.25\n";
  WrittenFile file("-");
  int accepted = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    file.write(mutated(good, seed));
    const bool whole = first_reason(reader(file), 1) == "accepted";
    accepted += whole ? 1 : 0;
    for (const std::uint64_t parts : {2u, 5u}) {
      ASSERT_EQ(first_reason(reader(file), parts) == "accepted", whole) << seed;
      if (whole) {
        ASSERT_EQ(in_parts(reader(file), parts), read_csv<double>(file.path()).values) << seed;
      }
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_LT(accepted, 1900);
}

}  // namespace
}  // namespace inputs::testing
