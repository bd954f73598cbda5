// The stencil by lazy regions (HiWayLib, section 3.2): each value crosses once. Host threads make strips of
// regions; a team of the device takes in a region and computes those that lack nothing now.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "problem.hpp"

namespace stencil {

namespace pipeline = esker::pipeline;

/// Makes a row of regions at a call.
struct MakeStrip {
  Problem problem;
  pipeline::RegionSourceView<float> source;
  pipeline::Topic<float> to;
  std::atomic<std::uint32_t>* next;
  std::uint32_t round;

  bool operator()(auto& stage) const {
    const RegionGrid& grid = source.grid;
    const std::uint32_t strip = next->fetch_add(1, std::memory_order_relaxed);
    if (strip >= grid.regions.y * grid.regions.z) return false;
    const std::uint32_t first = strip * grid.regions.x;
    const Box box = grid.cells_of(first);
    for (std::uint32_t row = 0; row < box.size.y * box.size.z; ++row) {
      const std::uint32_t y = box.first.y + row % box.size.y, z = box.first.z + row / box.size.y;
      for (std::uint32_t region = first; region < first + grid.regions.x; ++region) {
        const std::uint32_t x = (region - first) * grid.region.x;
        if (!make_row(stage, region, {x, y, z})) return false;
      }
    }
    return true;
  }

 private:
  /// False: the run is over.
  bool make_row(auto& stage, std::uint32_t region, const Cell& first) const {
    float* cells = nullptr;
    while ((cells = source.try_open(region, round)) == nullptr) {
      if (stage.stop_requested()) return false;
      esker::Lane::yield();
    }
    cells += source.grid.offset_of(first);
    const std::uint32_t n = source.grid.cells_of(region).size.x;
    const std::uint64_t index = problem.index_of(first);
    for (std::uint32_t i = 0; i < n; ++i) cells[i] = problem.make(index + i);
    if (!source.mark_ready(region, n)) return true;
    auto frame = stage.open(to);
    if (frame.data == nullptr) return false;
    std::memcpy(frame.data, source.data(region), source.grid.region_cells() * sizeof(float));
    source.release(region);
    frame.count = source.grid.region_cells();
    frame.tag = region;
    stage.publish(to, frame);
    return true;
  }
};

/// Takes in a region; a frame of results for each region that can be computed now.
struct ComputeRegions {
  Problem problem;
  pipeline::RegionTableView<float> table;
  pipeline::Topic<float> to;
  std::uint32_t round;

  ESKER_HD void operator()(auto& stage, const pipeline::Frame<const float>& in) const {
    table.receive(
        stage, static_cast<std::uint32_t>(in.tag), in.data,
        [&](std::uint32_t target, const auto& reader) {
          auto out = stage.open(to);
          if (out.data == nullptr) return;
          reader.cells().for_each(stage.lane(), stage.lanes(), [&](const Cell& c) {
            out[reader.offset_of(c)] = Problem::apply(problem.shape.n, [&](std::uint32_t k) {
              const Offset& o = problem.shape.offsets[k];
              return reader.at_or(std::int64_t{c.x} + o.x, std::int64_t{c.y} + o.y, std::int64_t{c.z} + o.z,
                                  0.0f);
            });
          });
          out.count = table.grid.region_cells();
          out.tag = target;
          stage.publish(to, out);
        },
        round);
  }
};

struct Topics {
  std::uint64_t frame_bytes;
  std::uint32_t frames, workers;
  pipeline::Crossing crossing = pipeline::Crossing::kAuto;
};

/// Results go to `results`, a value a cell.
class ByRegions {
 public:
  ByRegions(const esker::Device& device, const pipeline::Options& options, const Problem& problem,
            const Extent& region, const Topics& topics)
      : problem_{problem},
        grid_{RegionGrid::of(problem.cells, region)},
        workers_{topics.workers},
        source_{device, pipeline::RegionSide::kHost, grid_, workers_ * grid_.regions.x},
        // Several threads complete regions in any order. One takes turns with nobody if there are buffers for
        // all that may be under way.
        table_{device, pipeline::RegionSide::kDevice, grid_, problem.shape.halo(),
               workers_ == 1 ? pipeline::buffers_in_order(grid_, problem.shape.halo()) + topics.frames : 0},
        pipeline_{device, options},
        values_{pipeline_.topic<float>(topic("values", topics))},
        results_{pipeline_.topic<float>(topic("results", topics))} {}

  const pipeline::Report& run(float* results) {
    const std::uint32_t round = round_++;
    std::atomic<std::uint32_t> next{0};
    const auto keep = [&](auto&, const pipeline::Frame<const float>& frame) {
      const Box box = grid_.cells_of(static_cast<std::uint32_t>(frame.tag));
      for (std::uint32_t row = 0; row < box.size.y * box.size.z; ++row) {
        const Cell first{box.first.x, box.first.y + row % box.size.y, box.first.z + row / box.size.y};
        std::memcpy(results + problem_.index_of(first), frame.data + grid_.offset_of(first),
                    box.size.x * sizeof(float));
      }
    };
    return pipeline_.run(
        pipeline::on_host::source("make", MakeStrip{problem_, source_.view(), values_, &next, round})
            .into(values_)
            .workers(workers_),
        pipeline::on_device::frames("stencil", ComputeRegions{problem_, table_.view(), results_, round})
            .from(values_)
            .into(results_),
        pipeline::on_host::frames("keep", keep).from(results_));
  }
  std::uint64_t bytes() const { return grid_.count() * grid_.region.volume() * sizeof(float); }
  const RegionGrid& grid() const { return grid_; }

 private:
  pipeline::TopicOptions topic(const char* name, const Topics& topics) const {
    return {.name = name,
            .frame_bytes = grid_.region.volume() * sizeof(float),
            .frames = topics.frames,
            .crossing = topics.crossing};
  }

  const Problem problem_;
  const RegionGrid grid_;
  const std::uint32_t workers_;
  pipeline::RegionSource<float> source_;
  pipeline::RegionTable<float> table_;
  pipeline::Pipeline pipeline_;
  pipeline::Topic<float> values_, results_;
  std::uint32_t round_ = 0;
};

}  // namespace stencil
