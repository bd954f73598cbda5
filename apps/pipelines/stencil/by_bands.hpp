// The stencil by copies and kernels: bands of rows, with the rows around them that their stencil reads, on
// one stream or on several.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <esker/device.hpp>
#include <esker/lane.hpp>

#include "problem.hpp"

namespace stencil {

/// Rows `first` to `first + rows` of all planes' rows, one after the other.
struct Band {
  std::uint32_t first, rows;
};

struct ComputeBand {
  Problem problem;
  Band in, out;
  const float* values;
  float* results;

  ESKER_HD void operator()(esker::Lane lane) const {
    const Extent& cells = problem.cells;
    const auto x = static_cast<std::uint32_t>(lane.global_id() % cells.x);
    const auto row = static_cast<std::uint32_t>(lane.global_id() / cells.x) + out.first;
    results[lane.global_id()] = Problem::apply(problem.shape.n, [&](std::uint32_t i) {
      const Offset& o = problem.shape.offsets[i];
      const Cell at{x + static_cast<std::uint32_t>(o.x), row % cells.y + static_cast<std::uint32_t>(o.y),
                    row / cells.y + static_cast<std::uint32_t>(o.z)};
      if (at.x >= cells.x || at.y >= cells.y || at.z >= cells.z) return 0.0f;
      return values[std::uint64_t{at.z * cells.y + at.y - in.first} * cells.x + at.x];
    });
  }
};

class ByBands {
 public:
  /// `rows` at a time. With one stream each band is waited for.
  ByBands(const esker::Device& device, const Problem& problem, std::uint32_t rows, std::uint32_t streams)
      : device_{device},
        problem_{problem},
        all_rows_{problem.cells.y * problem.cells.z},
        band_rows_{std::min(rows, all_rows_)},
        around_{problem.cells.z == 1 ? 1 : problem.cells.y},
        waits_{streams == 1},
        values_{device.pinned<float>(problem.cells.volume(), {"the values"})},
        results_{device.pinned<float>(problem.cells.volume(), {"the results"})} {
    for (std::uint32_t s = 0; s < streams; ++s) {
      ways_.push_back({device.stream(),
                       device.memory<float>(std::uint64_t{band_rows_ + 2 * around_} * problem.cells.x),
                       device.memory<float>(std::uint64_t{band_rows_} * problem.cells.x)});
    }
  }
  void run() {
    std::uint32_t made = 0, number = 0;
    bytes_ = 0;
    for (std::uint32_t first = 0; first < all_rows_; first += band_rows_, ++number) {
      const Band out{first, std::min(band_rows_, all_rows_ - first)};
      const std::uint32_t begin = first - std::min(first, around_);
      const std::uint32_t end = std::min(first + out.rows + around_, all_rows_);
      for (; made < end; ++made) make_row(made);
      const Way& way = ways_[number % ways_.size()];
      const std::uint64_t width = problem_.cells.x;
      device_.copy_async(way.in.data(), values_.data() + begin * width, (end - begin) * width * sizeof(float),
                         way.stream);
      device_.launch(out.rows * width,
                     ComputeBand{problem_, {begin, end - begin}, out, way.in.data(), way.out.data()},
                     way.stream);
      device_.copy_async(results_.data() + first * width, way.out.data(), out.rows * width * sizeof(float),
                         way.stream);
      bytes_ += (end - begin) * width * sizeof(float);
      if (waits_) way.stream.synchronize();
    }
    for (const Way& way : ways_) way.stream.synchronize();
  }
  float* results() const { return results_.data(); }
  std::uint64_t bytes() const { return bytes_; }

 private:
  struct Way {
    esker::Stream stream;
    esker::DeviceArray<float> in, out;
  };
  void make_row(std::uint32_t row) {
    const std::uint64_t first = std::uint64_t{row} * problem_.cells.x;
    for (std::uint32_t x = 0; x < problem_.cells.x; ++x) values_[first + x] = problem_.make(first + x);
  }

  const esker::Device device_;
  const Problem problem_;
  const std::uint32_t all_rows_, band_rows_, around_;
  const bool waits_;
  esker::PinnedArray<float> values_, results_;
  std::vector<Way> ways_;
  std::uint64_t bytes_ = 0;
};

}  // namespace stencil
