// The stencil item by item, as HiWayLib's baseline has it: a task is a cell, and carries a copy of all values
// that its stencil reads, so each value crosses as often as it is read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "by_regions.hpp"
#include "problem.hpp"

namespace stencil {

template <std::uint32_t kValues>
struct CellTask {
  std::uint32_t cell;
  float values[kValues];
};
struct CellResult {
  std::uint32_t cell;
  float value;
};

/// Makes as many rows as the next row's tasks read, and emits these.
template <std::uint32_t kValues>
struct EmitRow {
  struct Progress {
    std::uint32_t made = 0, emitted = 0;  // rows
  };
  Problem problem;
  pipeline::Topic<CellTask<kValues>> to;
  float* values;  // a cell
  Progress* progress;

  bool operator()(auto& stage) const {
    const Extent& cells = problem.cells;
    const std::uint32_t rows = cells.y * cells.z;
    if (progress->emitted == rows) return false;
    const auto ahead = static_cast<std::uint32_t>(cells.z == 1 ? 1 : cells.y);
    for (; progress->made < rows && progress->made <= progress->emitted + ahead; ++progress->made) {
      const std::uint64_t first = std::uint64_t{progress->made} * cells.x;
      for (std::uint32_t x = 0; x < cells.x; ++x) values[first + x] = problem.make(first + x);
    }
    const Cell row{0, progress->emitted % cells.y, progress->emitted / cells.y};
    for (std::uint32_t x = 0; x < cells.x; ++x) {
      const Cell c{x, row.y, row.z};
      CellTask<kValues> task{static_cast<std::uint32_t>(problem.index_of(c)), {}};
      for (std::uint32_t i = 0; i < kValues; ++i) {
        const Offset& o = problem.shape.offsets[i];
        // Below 0 is above the last.
        const Cell at{c.x + static_cast<std::uint32_t>(o.x), c.y + static_cast<std::uint32_t>(o.y),
                      c.z + static_cast<std::uint32_t>(o.z)};
        if (at.x < cells.x && at.y < cells.y && at.z < cells.z) task.values[i] = values[problem.index_of(at)];
      }
      stage.emit(to, task);
    }
    ++progress->emitted;
    return true;
  }
};

template <std::uint32_t kValues, class HowTheyElect>
struct ComputeCell {
  using Election = HowTheyElect;
  pipeline::Topic<CellResult> to;
  ESKER_HD void operator()(auto& stage, const CellTask<kValues>& task) const {
    stage.emit(to, {task.cell, Problem::apply(kValues, [&](std::uint32_t i) { return task.values[i]; })});
  }
};

/// `Election`: how lanes that have results share their topic's counter.
template <std::uint32_t kValues, class Election = esker::PerConvergedWave>
class ByItems {
 public:
  ByItems(const esker::Device& device, const pipeline::Options& options, const Problem& problem,
          const Topics& topics)
      : problem_{problem},
        values_(problem.cells.volume()),
        pipeline_{device, options},
        tasks_{pipeline_.topic<CellTask<kValues>>(topic("tasks", topics))},
        results_{pipeline_.topic<CellResult>(topic("results", topics))} {}

  const pipeline::Report& run(float* results) {
    typename EmitRow<kValues>::Progress progress;
    return pipeline_.run(
        pipeline::on_host::source("make", EmitRow<kValues>{problem_, tasks_, values_.data(), &progress})
            .into(tasks_),
        pipeline::on_device::items("stencil", ComputeCell<kValues, Election>{results_})
            .from(tasks_)
            .into(results_),
        pipeline::on_host::frames("keep", [&](auto&, const pipeline::Frame<const CellResult>& frame) {
          for (const CellResult& result : frame) results[result.cell] = result.value;
        }).from(results_));
  }
  std::uint64_t bytes() const { return values_.size() * sizeof(CellTask<kValues>); }

 private:
  static pipeline::TopicOptions topic(const char* name, const Topics& topics) {
    return {.name = name,
            .frame_bytes = topics.frame_bytes,
            .frames = topics.frames,
            .crossing = topics.crossing};
  }

  const Problem problem_;
  std::vector<float> values_;
  pipeline::Pipeline pipeline_;
  pipeline::Topic<CellTask<kValues>> tasks_;
  pipeline::Topic<CellResult> results_;
};

}  // namespace stencil
