// Columnar frames: what is written is read, and an index never denies what is there.
#include <esker/pipeline/columns.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <vector>

#include <gtest/gtest.h>

namespace esker::pipeline {
namespace {

template <class T>
ColumnFrame written(const ColumnLayout& layout, std::vector<Page>& pages, std::uint32_t column,
                    const std::vector<T>& values) {
  ColumnFrame::write<T>(layout, pages.data(), column, std::span<const T>(values));
  return {layout, pages.data()};
}

/// Every value is found in its page, and its page's range is that of its values.
template <ColumnValue T>
void expect_found(const std::vector<T>& values, std::uint32_t rows) {
  const std::vector<Column> columns = {Column::of<T>(1), Column::of<T>(rows), {sizeof(T), 0}};
  const ColumnLayout layout(columns, rows);
  std::vector<Page> pages(layout.frame_pages());
  for (std::uint32_t c = 0; c < 3; ++c) {
    const ColumnFrame frame = written(layout, pages, c, values);
    PageTraffic traffic;
    std::size_t seen = 0;
    for (std::uint32_t p = 0; p < layout.pages_of(c); ++p) {
      const PageIndex index = frame.index(c, p, traffic);
      ASSERT_LE(index.rows(), layout.page_rows(c));
      const T* const its = frame.template values<T>(c, p);
      if (index.rows() == 0) continue;
      const T least = *std::min_element(its, its + index.rows());
      const T greatest = *std::max_element(its, its + index.rows());
      EXPECT_TRUE(index.is_within(least, greatest));
      EXPECT_TRUE(index.overlaps(least, least) && index.overlaps(greatest, greatest));
      for (std::uint32_t r = 0; r < index.rows(); ++r, ++seen) {
        ASSERT_EQ(its[r], values[seen]);
        ASSERT_TRUE(index.may_contain(its[r], traffic)) << "row " << seen;
      }
    }
    EXPECT_EQ(seen, values.size());
  }
}

TEST(Columns, FindWhatIsThereWhateverItsType) {
  std::mt19937_64 random(1);
  const auto fill = [&](auto value, std::size_t n) {
    std::vector<decltype(value)> all(n);
    for (auto& v : all)
      v = static_cast<decltype(value)>(static_cast<std::int64_t>(random()) >> (random() % 60));
    return all;
  };
  for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{4095}, std::size_t{9000}}) {
    expect_found(fill(std::int8_t{}, n), 9000);
    expect_found(fill(std::uint8_t{}, n), 9000);
    expect_found(fill(std::int16_t{}, n), 9000);
    expect_found(fill(std::uint32_t{}, n), 9000);
    expect_found(fill(std::int64_t{}, n), 9000);
    expect_found(fill(std::uint64_t{}, n), 9000);
    expect_found(fill(float{}, n), 9000);
    expect_found(fill(double{}, n), 9000);
  }
}

TEST(Columns, KeepTheOrderOfNumbers) {
  const std::vector<double> rising = {
      -std::numeric_limits<double>::infinity(), -1e300, -2.5, -1e-310, 0.0, 1e-310, 1.0, 3.5,
      std::numeric_limits<double>::infinity()};
  for (std::size_t i = 1; i < rising.size(); ++i)
    EXPECT_LT(detail::ordered(rising[i - 1]), detail::ordered(rising[i])) << rising[i];
  EXPECT_EQ(detail::ordered(-0.0), detail::ordered(0.0));
  EXPECT_LT(detail::ordered(std::uint64_t{5}), detail::ordered(~std::uint64_t{0}));
  EXPECT_LT(detail::ordered(std::int8_t{-128}), detail::ordered(std::int8_t{127}));
}

TEST(Columns, DenyRangesThatNoValueIsIn) {
  const std::vector<Column> columns = {Column::of<std::uint32_t>(0)};
  const ColumnLayout layout(columns, 2048);
  std::vector<Page> pages(layout.frame_pages());
  std::vector<std::uint32_t> values(2048);
  for (std::uint32_t i = 0; i < 2048; ++i) values[i] = 1000 + i;
  const ColumnFrame frame = written(layout, pages, 0, values);
  PageTraffic traffic;
  ASSERT_EQ(layout.pages_of(0), 2u);
  const PageIndex first = frame.index(0, 0, traffic), second = frame.index(0, 1, traffic);
  EXPECT_FALSE(first.overlaps(0u, 999u));
  EXPECT_TRUE(first.overlaps(0u, 1000u));
  EXPECT_FALSE(first.overlaps(2024u, 9999u));
  EXPECT_TRUE(second.overlaps(2024u, 9999u));
  EXPECT_TRUE(first.is_within(1000u, 2023u));
  EXPECT_FALSE(first.is_within(1001u, 2023u));
  EXPECT_FALSE(first.may_contain(2024u, traffic));
  EXPECT_EQ(traffic.index_bytes, 64u) << "two summaries, and no filter";
}

TEST(Columns, FiltersDenyNearlyAllThatIsNotThere) {
  std::mt19937_64 random(2);
  const std::vector<Column> columns = {Column::of<std::uint32_t>(819)};
  EXPECT_EQ(columns[0].filter_bytes, 1024u);
  const ColumnLayout layout(columns, 1024);
  std::vector<Page> pages(layout.frame_pages());
  std::vector<std::uint32_t> values(819);
  for (std::uint32_t& v : values) v = static_cast<std::uint32_t>(random() % 1'000'000);
  values[0] = 0;
  values[1] = 999'999;
  const std::set<std::uint32_t> there(values.begin(), values.end());
  const ColumnFrame frame = written(layout, pages, 0, values);
  PageTraffic traffic;
  const PageIndex index = frame.index(0, 0, traffic);
  std::uint32_t absent = 0, found = 0;
  for (std::uint32_t v = 0; v < 1'000'000; v += 7) {
    if (there.contains(v)) continue;
    ++absent;
    found += index.may_contain(v, traffic) ? 1 : 0;
  }
  EXPECT_LT(found, absent / 50);
  EXPECT_EQ(traffic.index_bytes, 32u + std::uint64_t{absent} * 32) << "a block a lookup";
}

TEST(Columns, StandBesideEachOtherInAFrame) {
  const std::vector<Column> columns = {Column::of<std::uint8_t>(256), Column::of<double>(64), {2, 0}};
  const ColumnLayout layout(columns, 5000);
  EXPECT_EQ(layout.pages_of(0), 2u);
  EXPECT_EQ(layout.pages_of(1), 10u);
  EXPECT_EQ(layout.pages_of(2), 3u);
  EXPECT_EQ(layout.frame_pages(), layout.index_pages() + 15);
  std::vector<Page> pages(layout.frame_pages());
  std::vector<std::uint8_t> bytes(5000, 7);
  std::vector<double> reals(5000, 0.5);
  std::vector<std::int16_t> shorts(5000, -3);
  written(layout, pages, 2, shorts);
  written(layout, pages, 0, bytes);
  const ColumnFrame frame = written(layout, pages, 1, reals);
  PageTraffic traffic;
  for (std::uint32_t p = 0; p < 10; ++p) EXPECT_TRUE(frame.index(1, p, traffic).is_within(0.5, 0.5));
  EXPECT_EQ(frame.values<std::uint8_t>(0, 1)[5000 - 4096 - 1], 7);
  EXPECT_EQ(frame.values<double>(1, 9)[5000 - 9 * 512 - 1], 0.5);
  EXPECT_EQ(frame.values<std::int16_t>(2, 2)[5000 - 2 * 2048 - 1], -3);
  EXPECT_TRUE(frame.index(2, 0, traffic).is_within(std::int16_t{-3}, std::int16_t{-3}));
  // A shorter frame in the same pages: what it lacks is in no page.
  bytes.resize(10, 8);
  written(layout, pages, 0, bytes);
  EXPECT_EQ(frame.index(0, 0, traffic).rows(), 10u);
  EXPECT_EQ(frame.index(0, 1, traffic).rows(), 0u);
  EXPECT_FALSE(frame.index(0, 1, traffic).overlaps(std::uint8_t{0}, std::uint8_t{255}));
}

TEST(ColumnsDeath, RefuseWhatHasNoPlace) {
  const std::vector<Column> odd = {{3, 0}}, sound = {{4, 0}};
  EXPECT_DEATH(ColumnLayout(odd, 10), "values of 3 bytes");
  EXPECT_DEATH(ColumnLayout(std::vector<Column>(20, {8, 0}), 0xffffffff), "more than 2\\^34 bytes");
  const ColumnLayout layout(sound, 10);
  std::vector<Page> pages(layout.frame_pages());
  const std::vector<std::uint32_t> many(11);
  EXPECT_DEATH(written(layout, pages, 0, many), "11 values of 4 bytes to column 0");
  EXPECT_DEATH(written(layout, pages, 1, std::vector<std::uint32_t>{1}), "to column 1");
}

}  // namespace
}  // namespace esker::pipeline
