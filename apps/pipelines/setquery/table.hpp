// The table of SetQuery, made from a seed: as plain columns, and as columnar frames in pinned memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "../../harness/output.hpp"
#include "../../inputs/random.hpp"
#include "query.hpp"

namespace setquery {

class Table {
 public:
  using Page = esker::pipeline::Page;

  /// Frames have `frame_pages` pages at most, but the index and a page of each column.
  Table(const esker::Device& device, std::uint64_t rows, std::uint64_t frame_pages, std::uint64_t seed)
      : rows_{rows} {
    for (std::uint32_t c = 0; c < kColumns; ++c) {
      columns_[c].resize(rows);
      const inputs::RandomStream random = inputs::Random(seed).stream(c);
      for (std::uint64_t r = 0; r < rows; ++r) {
        columns_[c][r] =
            static_cast<std::uint32_t>(c == kSeq ? r + 1 : 1 + inputs::scaled(random[r], kCardinalities[c]));
      }
    }
    std::vector<esker::pipeline::Column> layout;
    for (std::uint32_t c = 0; c < kColumns; ++c) {
      const std::uint32_t distinct = c == kSeq ? 0 : std::min<std::uint32_t>(kCardinalities[c], 1024);
      layout.push_back(esker::pipeline::Column::of<std::uint32_t>(distinct));
    }
    for (std::uint32_t pages = 1; pages == 1 || pages * kColumns < frame_pages; ++pages) {
      const esker::pipeline::ColumnLayout larger(layout, pages * kPageRows);
      if (pages > 1 && larger.frame_pages() > frame_pages) break;
      layout_ = larger;
    }
    frames_ = (rows + layout_.rows() - 1) / layout_.rows();
    pages_ = device.pinned<Page>(frames_ * layout_.frame_pages(), {"the table"});
    for (std::uint64_t f = 0; f < frames_; ++f) {
      const std::uint64_t first = f * layout_.rows(),
                          n = std::min<std::uint64_t>(layout_.rows(), rows - first);
      for (std::uint32_t c = 0; c < kColumns; ++c) {
        esker::pipeline::ColumnFrame::write(layout_, frame(f), c,
                                            std::span<const std::uint32_t>(columns_[c]).subspan(first, n));
      }
    }
  }

  std::uint64_t rows() const { return rows_; }
  std::uint64_t frames() const { return frames_; }
  const esker::pipeline::ColumnLayout& layout() const { return layout_; }
  Page* frame(std::uint64_t number) const { return pages_.data() + number * layout_.frame_pages(); }
  std::uint32_t value(std::uint32_t column, std::uint64_t row) const { return columns_[column][row]; }
  /// Of its values: without index pages.
  std::uint64_t bytes() const { return rows_ * kColumns * sizeof(std::uint32_t); }

  /// As comma-separated values.
  void write_to(const std::string& path) const {
    harness::OutputFile file(path);
    std::string line;
    for (std::uint32_t c = 0; c < kColumns; ++c) line.append(c == 0 ? "" : ",").append(kColumnNames[c]);
    file.write(line + "\n");
    for (std::uint64_t r = 0; r < rows_; ++r) {
      line.clear();
      for (std::uint32_t c = 0; c < kColumns; ++c)
        line.append(c == 0 ? "" : ",").append(std::to_string(columns_[c][r]));
      file.write(line + "\n");
    }
    file.close();
  }

 private:
  static constexpr std::uint32_t kPageRows = esker::pipeline::kPageBytes / sizeof(std::uint32_t);

  std::uint64_t rows_, frames_ = 0;
  std::vector<std::uint32_t> columns_[kColumns];
  esker::pipeline::ColumnLayout layout_;
  esker::PinnedArray<Page> pages_;
};

}  // namespace setquery
