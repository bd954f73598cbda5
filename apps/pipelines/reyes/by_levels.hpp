// What the pipeline is compared with: chunks of patches are copied to the device, split by a launch for each
// level of the recursion, and drawn by one more (the scheme of Hetero-Mark).
#pragma once

#include <algorithm>
#include <cstdint>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include <esker/device.hpp>
#include <esker/error.hpp>
#include <esker/lane.hpp>

#include "../baselines.hpp"
#include "device_stages.hpp"
#include "teapots.hpp"

namespace reyes {

/// In the device's memory. What has no room is counted all the same.
struct PatchList {
  Patch* patches;
  esker::DeviceAtomic<std::uint32_t>* count;
  std::uint32_t capacity;
};

namespace detail {

struct ListStage {
  std::uint32_t lane_, lanes_;
  ESKER_HD std::uint32_t lane() const { return lane_; }
  ESKER_HD std::uint32_t lanes() const { return lanes_; }
  ESKER_HD void sync() const {}
  ESKER_HD void emit(const PatchList& to, const Patch& patch) const {
    const std::uint32_t at = to.count->fetch_add_relaxed(1);
    if (at < to.capacity) to.patches[at] = patch;
  }
};
struct SplitKernel {
  Split<PatchList, PatchList> split;
  const Patch* patches;

  ESKER_HD void operator()(esker::Lane lane) const {
    ListStage stage{0, 1};
    split(stage, patches[lane.global_id()]);
  }
};
/// `each` lanes a frame of patches.
struct DrawKernel {
  Draw draw;
  const Patch* patches;
  std::uint32_t count, frame, each;

  ESKER_HD void operator()(esker::Lane lane) const {
    ListStage stage{static_cast<std::uint32_t>(lane.global_id() % each), each};
    const auto first = static_cast<std::uint32_t>(lane.global_id() / each) * frame;
    const std::uint32_t n = count - first < frame ? count - first : frame;
    draw(stage, esker::pipeline::Frame<const Patch>{patches + first, n, n});
  }
};

}  // namespace detail

class ByLevels {
 public:
  static constexpr std::uint32_t kCapacity = 1 << 18;  // of a list

  /// `chunk`: pots.
  ByLevels(const esker::Device& device, const Table& table, std::uint32_t chunk)
      : device_{device}, table_{table}, chunk_{chunk} {
    for (auto& list : lists_) list = device.memory<Patch>(kCapacity, {"patches", false});
    counts_ = device.memory<esker::DeviceAtomic<std::uint32_t>>(3);
    host_counts_ = device.pinned<std::uint32_t>(3);
    for (auto& patches : host_) patches = device.pinned<Patch>(chunk * kPotPatches);
  }

  /// `overlaps`: a thread makes the patches of a chunk while the device works on the one before.
  void run(Pixel* pixels, bool overlaps) {
    std::uint32_t n = make(0, host_[0].data());
    for (std::uint32_t first = 0, turn = 0; first < table_.pots; first += chunk_, ++turn) {
      const Patch* const patches = host_[turn % 2].data();
      Patch* const next = host_[(turn + 1) % 2].data();
      std::future<std::uint32_t> made;
      if (overlaps) made = std::async(std::launch::async, [=, this] { return make(first + chunk_, next); });
      draw(patches, n, pixels);
      n = overlaps ? made.get() : make(first + chunk_, next);
    }
  }

 private:
  std::uint32_t make(std::uint32_t first, Patch* to) const {
    std::uint32_t n = 0;
    for (std::uint32_t p = first; p < std::min(first + chunk_, table_.pots); ++p) {
      for (const Patch& patch : pot(table_, p)) to[n++] = patch;
    }
    return n;
  }
  PatchList list(std::size_t i) const { return {lists_[i].data(), counts_.data() + i, kCapacity}; }
  std::uint32_t read_count(std::size_t i) const {
    device_.copy_async(host_counts_.data(), counts_.data(), counts_.size_bytes(), stream_);
    stream_.synchronize();
    const std::uint32_t count = host_counts_[i];
    if (count > kCapacity)
      throw esker::Error(esker::Error::Kind::kConfiguration,
                         "a level of the recursion has " + std::to_string(count) + " patches");
    return count;
  }
  void clear(std::size_t i) const { device_.fill(counts_.data() + i, 0, sizeof(std::uint32_t), stream_); }

  void draw(const Patch* patches, std::uint32_t n, Pixel* pixels) const {
    device_.copy_async(lists_[0].data(), patches, n * sizeof(Patch), stream_);
    clear(2);
    std::size_t from = 0;
    while (n != 0) {
      clear(1 - from);
      device_.launch(n, detail::SplitKernel{{table_.screen, list(1 - from), list(2)}, lists_[from].data()},
                     stream_);
      from = 1 - from;
      n = read_count(from);
    }
    const std::uint32_t n_small = read_count(2);
    if (n_small == 0) return;
    const std::uint32_t frame = 64, each = device_.backend() == esker::Backend::kCpu ? 1 : 256;
    device_.launch(std::uint64_t{(n_small + frame - 1) / frame} * each,
                   detail::DrawKernel{{table_.screen, pixels}, lists_[2].data(), n_small, frame, each},
                   stream_);
    stream_.synchronize();
  }

  const esker::Device& device_;
  const Table& table_;
  std::uint32_t chunk_;
  esker::Stream stream_ = device_.stream();
  esker::DeviceArray<Patch> lists_[3];  // two levels, and the small ones
  esker::DeviceArray<esker::DeviceAtomic<std::uint32_t>> counts_;
  esker::PinnedArray<std::uint32_t> host_counts_;
  esker::PinnedArray<Patch> host_[2];
};

}  // namespace reyes
