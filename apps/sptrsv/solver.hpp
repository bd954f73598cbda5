// A sparse triangular system on a device, and the graph of one channel that solves it.
#pragma once

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include "solve_task.hpp"
#include "system.hpp"

namespace sptrsv {

/// Solves one system, any number of times. Rows have no levels and no barriers: a row is an element that is
/// spawned when the last unknown that it needs is known.
///
/// Errors. As tasks::Graph: its memory_bytes are for ready rows of which the channel has no place.
class Solver {
 public:
  Solver(const esker::Device& device, const System& system, const esker::tasks::Options& options)
      : device_{device},
        stream_{device.stream()},
        starts_{upload(system.starts)},
        columns_{upload(system.columns)},
        values_{upload(system.values)},
        diagonal_{upload(system.diagonal)},
        right_{upload(system.right)},
        missing_{device.memory<esker::DeviceAtomic<std::uint32_t>>(system.rows(), {"counts of a system"})},
        unknowns_{device.memory<esker::DeviceAtomic<std::uint64_t>>(system.rows(), {"a solution"})},
        graph_{device, options},
        ready_{graph_.channel<std::uint32_t>(channel_for(system.rows()))},
        rows_{system.rows()} {
    const Below below = below_of(system);
    below_starts_ = upload(below.starts);
    below_ = upload(below.rows);
    std::vector<std::uint32_t> first;
    for (std::uint32_t row = 0; row < system.rows(); ++row) {
      if (system.starts[row] == system.starts[row + 1]) first.push_back(row);
    }
    graph_.seed(ready_, std::span<const std::uint32_t>(first));
  }

  void run() {
    const auto start = std::chrono::steady_clock::now();
    const Rows rows{starts_.data(),       columns_.data(), values_.data(),  diagonal_.data(), right_.data(),
                    below_starts_.data(), below_.data(),   missing_.data(), unknowns_.data()};
    device_.launch(std::uint64_t{rows_}, PrepareRow{rows}, stream_);
    stream_.synchronize();
    graph_.run(esker::tasks::node(ready_, SolveRow{rows, ready_}).into(ready_));
    time_ = std::chrono::steady_clock::now() - start;
  }
  std::vector<double> solution() const {
    std::vector<double> x(rows_);
    device_.copy(x.data(), unknowns_.data(), x.size() * sizeof(double));
    return x;
  }
  const esker::tasks::GraphReport& report() const { return graph_.report(); }
  /// Of the last run, with the preparation of its rows.
  std::chrono::nanoseconds time() const { return time_; }

 private:
  static constexpr std::uint32_t kMostAtATime = 1 << 20;

  static esker::tasks::GraphChannelOptions channel_for(std::uint32_t rows) {
    // Each row is spawned once at most: a channel of all rows is never full.
    return {
        .name = "ready rows",
        .capacity = std::min(rows, kMostAtATime),
        .when_full = rows <= kMostAtATime ? esker::tasks::WhenFull::kFail : esker::tasks::WhenFull::kSpill};
  }
  template <class T>
  esker::DeviceArray<T> upload(const std::vector<T>& words) const {
    // One word at least: an array has an address.
    auto memory = device_.memory<T>(std::max<std::size_t>(1, words.size()), {"a triangular system", false});
    if (!words.empty()) device_.copy(memory.data(), words.data(), words.size() * sizeof(T));
    return memory;
  }

  const esker::Device device_;
  const esker::Stream stream_;
  esker::DeviceArray<std::uint32_t> starts_, columns_;
  esker::DeviceArray<double> values_, diagonal_, right_;
  esker::DeviceArray<std::uint32_t> below_starts_, below_;
  esker::DeviceArray<esker::DeviceAtomic<std::uint32_t>> missing_;
  esker::DeviceArray<esker::DeviceAtomic<std::uint64_t>> unknowns_;
  esker::tasks::Graph graph_;
  const esker::tasks::GraphChannel<std::uint32_t> ready_;
  const std::uint32_t rows_;
  std::chrono::nanoseconds time_{};
};

}  // namespace sptrsv
