// Frames of rows laid out in pages, a page a column, with index pages that say what a data page can hold: a
// lane reads them first, and pages that no predicate can match stay where they are (XeFlow, section 4.3).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <type_traits>

#include <esker/device/error.hpp>
#include <esker/device/platform.hpp>
#include <esker/pipeline/page_filter.hpp>

namespace esker::pipeline {

inline constexpr std::uint32_t kPageBytes = 4096;
/// What frames are made of.
struct alignas(128) Page {
  std::byte bytes[kPageBytes];
};

/// A number of at most 8 bytes.
template <class T>
concept ColumnValue = std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8;

/// A column of a table.
struct Column {
  std::uint32_t value_bytes = 4;
  std::uint32_t filter_bytes = 0;  // of the Bloom filter of each page: a multiple of 32; 0: it has none

  /// A filter of ten bits for each of at most `distinct` values in a page: one lookup in a hundred finds what
  /// is not there. It is a quarter of a page at most, which with 1024 values lets three in a hundred through.
  template <ColumnValue T>
  static constexpr Column of(std::uint32_t distinct) {
    const std::uint32_t wanted = (std::min(distinct, kPageBytes) * 10 + 255) / 256 * 32;
    return {sizeof(T), std::min(wanted, kPageBytes / 4)};
  }
};

namespace detail {

/// Keeps the order of T's values, of -0.0 and 0.0 their equality. Not for what is not a number.
template <ColumnValue T>
ESKER_HD std::int64_t ordered(T value) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  if constexpr (std::is_floating_point_v<T>) {
    const auto wide = static_cast<double>(value) + 0.0;
    std::int64_t bits;
    memcpy(&bits, &wide, sizeof bits);
    return bits < 0 ? ~bits ^ kLeast : bits;
  } else if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
    return static_cast<std::int64_t>(value) ^ kLeast;
  } else {
    return static_cast<std::int64_t>(value);
  }
}

/// What the index keeps of a data page beside its filter.
struct alignas(32) PageSummary {
  std::int64_t least, greatest;
  std::uint32_t rows, zero;
};
static_assert(sizeof(PageSummary) == 32);

}  // namespace detail

/// Bytes that lanes have asked for. Of lanes that read the same address together, one counts.
struct PageTraffic {
  std::uint64_t index_bytes = 0;
  std::uint64_t data_bytes = 0;

  ESKER_HD std::uint64_t read_bytes() const { return index_bytes + data_bytes; }
};

/// Where the columns of a frame are, the same for all frames of a table. Index pages come first, then the
/// data pages of each column.
///
/// Contract. Trivially copyable: functions of stages hold it by value.
class ColumnLayout {
 public:
  static constexpr std::uint32_t kMostColumns = 32;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 34;  // of a frame

  ColumnLayout() = default;
  /// Of frames of at most `rows` rows.
  ColumnLayout(std::span<const Column> columns, std::uint32_t rows)
      : n_columns_{static_cast<std::uint32_t>(columns.size())}, rows_{rows} {
    if (columns.size() > kMostColumns || rows == 0) {
      misuse("ColumnLayout: " + std::to_string(columns.size()) + " columns of " + std::to_string(rows) +
             " rows; there are at most " + std::to_string(kMostColumns) + ", and at least a row");
    }
    std::uint64_t pages = 0, blocks = 0;
    for (std::uint32_t c = 0; c < n_columns_; ++c) {
      const Column& column = columns[c];
      if (column.value_bytes == 0 || column.value_bytes > 8 || kPageBytes % column.value_bytes != 0 ||
          column.filter_bytes % sizeof(FilterBlock) != 0) {
        misuse("ColumnLayout: column " + std::to_string(c) + " has values of " +
               std::to_string(column.value_bytes) + " bytes, which are 1, 2, 4 or 8, and filters of " +
               std::to_string(column.filter_bytes) + ", a multiple of 32");
      }
      Place& place = places_[c];
      place.value_bytes = column.value_bytes;
      place.filter_blocks = column.filter_bytes / static_cast<std::uint32_t>(sizeof(FilterBlock));
      place.pages = (rows - 1) / page_rows(c) + 1;
      place.first_page = static_cast<std::uint32_t>(pages);
      place.first_filter = static_cast<std::uint32_t>(blocks);
      pages += place.pages;
      blocks += std::uint64_t{place.pages} * place.filter_blocks;
      if (pages * kPageBytes + (pages + blocks) * sizeof(FilterBlock) > kMostBytes) {
        misuse("ColumnLayout: frames of " + std::to_string(rows) + " rows would have more than 2^34 bytes");
      }
    }
    filters_ = static_cast<std::uint32_t>(pages);  // a summary and a block are of one size
    index_pages_ =
        static_cast<std::uint32_t>(((pages + blocks) * sizeof(FilterBlock) + kPageBytes - 1) / kPageBytes);
    frame_pages_ = index_pages_ + static_cast<std::uint32_t>(pages);
  }

  ESKER_HD std::uint32_t columns() const { return n_columns_; }
  /// That a frame has room for.
  ESKER_HD std::uint32_t rows() const { return rows_; }
  ESKER_HD std::uint32_t frame_pages() const { return frame_pages_; }
  ESKER_HD std::uint32_t index_pages() const { return index_pages_; }
  ESKER_HD std::uint32_t pages_of(std::uint32_t column) const { return places_[column].pages; }
  /// That a page of the column has room for.
  ESKER_HD std::uint32_t page_rows(std::uint32_t column) const {
    return kPageBytes / places_[column].value_bytes;
  }

 private:
  friend class ColumnFrame;
  struct Place {
    std::uint32_t value_bytes, pages, first_page, first_filter, filter_blocks;
  };

  Place places_[kMostColumns] = {};
  std::uint32_t n_columns_ = 0, rows_ = 0, filters_ = 0, index_pages_ = 0, frame_pages_ = 0;
};

/// What the index says of a data page.
class PageIndex {
 public:
  ESKER_HD PageIndex(const detail::PageSummary& summary, const FilterBlock* filter, std::uint32_t blocks)
      : summary_{summary}, filter_{filter}, blocks_{blocks} {}

  /// That the page holds.
  ESKER_HD std::uint32_t rows() const { return summary_.rows; }
  /// False: no value of the page is from `least` to `greatest`.
  template <ColumnValue T>
  ESKER_HD bool overlaps(T least, T greatest) const {
    return summary_.least <= detail::ordered(greatest) && detail::ordered(least) <= summary_.greatest;
  }
  /// All of its values are from `least` to `greatest`: the page need not be read to know that.
  template <ColumnValue T>
  ESKER_HD bool is_within(T least, T greatest) const {
    return detail::ordered(least) <= summary_.least && summary_.greatest <= detail::ordered(greatest);
  }
  /// False: the value is not in the page. Reads a block of the filter, if the range leaves it open.
  template <ColumnValue T>
  ESKER_HD bool may_contain(T value, PageTraffic& traffic) const {
    if (!overlaps(value, value)) return false;
    if (blocks_ == 0 || summary_.least == summary_.greatest) return true;
    traffic.index_bytes += sizeof(FilterBlock);
    const FilterPlace place(static_cast<std::uint64_t>(detail::ordered(value)));
    return place.may_be_in(filter_[place.block(blocks_)]);
  }

 private:
  detail::PageSummary summary_;
  const FilterBlock* filter_;
  std::uint32_t blocks_;
};

/// A frame of a table: written by the host, column by column, read by lanes wherever its pages are.
class ColumnFrame {
 public:
  ESKER_HD ColumnFrame(const ColumnLayout& layout, const Page* pages) : layout_{layout}, pages_{pages} {}

  /// Of page `page` of the column. Reads 32 bytes.
  ESKER_HD PageIndex index(std::uint32_t column, std::uint32_t page, PageTraffic& traffic) const {
    const ColumnLayout::Place& place = layout_.places_[column];
    traffic.index_bytes += sizeof(detail::PageSummary);
    const auto* const summaries = reinterpret_cast<const detail::PageSummary*>(pages_);
    return {summaries[place.first_page + page], filter_of(place, page), place.filter_blocks};
  }
  /// The values of a data page, as many as index() says. Reads nothing.
  template <ColumnValue T>
  ESKER_HD const T* values(std::uint32_t column, std::uint32_t page) const {
    return reinterpret_cast<const T*>(pages_ + layout_.index_pages_ + layout_.places_[column].first_page +
                                      page);
  }

  /// Host. Writes a column into a frame: its data pages and what the index says of them.
  template <ColumnValue T>
  static void write(const ColumnLayout& layout, Page* pages, std::uint32_t column,
                    std::span<const T> values) {
    if (column >= layout.columns() || sizeof(T) != layout.places_[column].value_bytes ||
        values.size() > layout.rows()) {
      misuse("ColumnFrame::write: " + std::to_string(values.size()) + " values of " +
             std::to_string(sizeof(T)) + " bytes to column " + std::to_string(column) +
             ", which is not one of " + std::to_string(layout.columns()) + " with room for " +
             std::to_string(layout.rows()) + " values of that size");
    }
    const ColumnLayout::Place& place = layout.places_[column];
    const ColumnFrame frame(layout, pages);
    for (std::uint32_t page = 0; page < place.pages; ++page) {
      const std::size_t first =
          std::min<std::size_t>(values.size(), std::size_t{page} * layout.page_rows(column));
      const std::span<const T> its =
          values.subspan(first, std::min<std::size_t>(values.size() - first, layout.page_rows(column)));
      if (!its.empty())
        std::memcpy(const_cast<T*>(frame.values<T>(column, page)), its.data(), its.size_bytes());
      detail::PageSummary summary{std::numeric_limits<std::int64_t>::max(),
                                  std::numeric_limits<std::int64_t>::min(),
                                  static_cast<std::uint32_t>(its.size()), 0};
      auto* const filter = const_cast<FilterBlock*>(frame.filter_of(place, page));
      std::fill_n(filter, place.filter_blocks, FilterBlock{});
      for (const T value : its) {
        const std::int64_t key = detail::ordered(value);
        summary.least = std::min(summary.least, key);
        summary.greatest = std::max(summary.greatest, key);
        if (place.filter_blocks == 0) continue;
        const FilterPlace at(static_cast<std::uint64_t>(key));
        at.add_to(filter[at.block(place.filter_blocks)]);
      }
      std::memcpy(reinterpret_cast<detail::PageSummary*>(pages) + place.first_page + page, &summary,
                  sizeof summary);
    }
  }

 private:
  ESKER_HD const FilterBlock* filter_of(const ColumnLayout::Place& place, std::uint32_t page) const {
    return reinterpret_cast<const FilterBlock*>(pages_) + layout_.filters_ + place.first_filter +
           page * place.filter_blocks;
  }

  const ColumnLayout& layout_;
  const Page* pages_;
};

}  // namespace esker::pipeline
