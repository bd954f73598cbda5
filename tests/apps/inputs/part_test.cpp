// Parts of elements and of files.
#include <esker/apps/inputs/file/file.hpp>
#include <esker/apps/inputs/file/part.hpp>

#include <algorithm>

#include "written_file.hpp"

namespace inputs::testing {
namespace {

TEST(Part, RangesCoverEverythingInOrderAndDifferByOne) {
  for (const std::uint64_t total : {0u, 1u, 2u, 7u, 100u, 1009u}) {
    for (const std::uint64_t parts : {1u, 2u, 3u, 7u, 64u, 1200u}) {
      std::uint64_t end = 0;
      for (std::uint64_t p = 0; p < parts; ++p) {
        const Range range = range_of(total, {p, parts});
        ASSERT_EQ(range.begin, end);
        end = range.end;
        ASSERT_GE(range.size(), total / parts);
        ASSERT_LE(range.size(), total / parts + 1);
        for (std::uint64_t i = range.begin; i < range.end; ++i) ASSERT_EQ(part_of(i, total, parts), p);
      }
      ASSERT_EQ(end, total);
    }
  }
}

TEST(Part, RangesReachTheLargestNumbers) {
  for (const std::uint64_t total : {UINT64_MAX, UINT64_MAX - 1}) {
    EXPECT_EQ(range_of(total, {999, 1000}).end, total);
    for (const std::uint64_t p : {0u, 1u, 500u, 999u}) {
      const Range range = range_of(total, {p, 1000});
      EXPECT_EQ(part_of(range.begin, total, 1000), p);
      EXPECT_EQ(part_of(range.end - 1, total, 1000), p);
    }
  }
}

TEST(File, KnowsWhereLinesBeginAndWhichOneHoldsAByte) {
  const std::string long_line(200'000, 'x');
  for (const std::string& text :
       {std::string("a\nbc\n\nd\n"), std::string("\n\nlast"), long_line + "\n" + long_line}) {
    const WrittenFile written(text);
    const File file(written.path());
    const std::uint64_t step = text.size() < 100 ? 1 : 9973;
    for (std::uint64_t at = 0; at <= text.size(); at += step) {
      const std::size_t newline = at == 0 ? 0 : text.find('\n', at - 1);
      const std::uint64_t start = at == 0 ? 0 : newline == std::string::npos ? text.size() : newline + 1;
      EXPECT_EQ(file.line_start(at), start) << at;
      EXPECT_EQ(file.line_of(at),
                1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'))
          << at;
    }
  }
}

TEST(File, ThatHasBecomeShorterIsSaid) {
  WrittenFile written("0123456789");
  const File file(written.path());
  std::filesystem::resize_file(written.path(), 4);
  std::string bytes(6, ' ');
  expect_reason(reason([&] { file.read_all_at(2, bytes); }), written,
                ": byte 4: the file has become shorter since it was opened");
}

}  // namespace
}  // namespace inputs::testing
