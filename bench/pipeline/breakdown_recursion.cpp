// Tasks that split themselves on the GPU, as patches of Reyes do, with HiWayLib's techniques added one by
// one.
//
// The basic scheme (section 3.1) is a pipeline whose frames are copied in batches, whose lanes reserve alone,
// and whose end is a time-out. Here the time-out is the source's: it says that it has no more when nothing
// has come out for so long. So the run stays exact, and lasts as long as with a time-out.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

#include <esker/lane.hpp>

#include "breakdown.hpp"

namespace esker::bench {

namespace {

using namespace pipeline;
using Clock = std::chrono::steady_clock;
constexpr std::uint32_t kLeaves = 64;  // of a task that the host makes
constexpr std::chrono::milliseconds kTimeOut{10};

struct Range {
  std::uint32_t first, count;
};
struct Leaf {
  std::uint32_t number, value;
};
/// What a leaf costs. Never 0.
ESKER_HD std::uint32_t value_of(std::uint32_t leaf) {
  std::uint32_t x = leaf * 2654435761u + 1;
  for (std::uint32_t i = 0; i < 64; ++i) x = (x ^ x >> 15) * 2246822519u + i;
  return x | 1u;
}

template <class HowTheyElect>
struct Split {
  using Election = HowTheyElect;
  Topic<Range> again;
  Topic<Leaf> leaves;
  ESKER_HD void operator()(auto& stage, const Range& range) const {
    if (range.count == 1) {
      stage.emit(leaves, {range.first, value_of(range.first)});
      return;
    }
    const std::uint32_t half = range.count / 2;
    stage.emit(again, {range.first, half});
    stage.emit(again, {range.first + half, range.count - half});
  }
};

/// What has come back, each leaf once.
class Leaves {
 public:
  /// What is expected is made once: it takes longer than a run.
  explicit Leaves(std::uint32_t n) : values_(n), expected_(n) {
    for (std::uint32_t i = 0; i < n; ++i) expected_[i] = value_of(i);
  }
  void clear() {
    std::fill(values_.begin(), values_.end(), 0u);
    wrong_ = seen_ = 0;
  }
  void keep(const Leaf* leaves, std::uint32_t n) {
    std::uint32_t wrong = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      if (leaves[i].number >= values_.size() || values_[leaves[i].number] != 0) {
        ++wrong;
      } else {
        values_[leaves[i].number] = leaves[i].value;
      }
    }
    wrong_.fetch_add(wrong, std::memory_order_relaxed);
    seen_.fetch_add(n, std::memory_order_relaxed);
  }
  void check() const {
    if (wrong_ != 0 || seen_ != values_.size() || values_ != expected_)
      throw std::runtime_error("a leaf is wrong, or did not come once");
  }

 private:
  std::vector<std::uint32_t> values_, expected_;
  std::atomic<std::uint64_t> wrong_{0}, seen_{0};
};

template <class Election>
double by_pipeline(const PipelineBench& bench, std::uint32_t starts, Leaves& leaves, Crossing crossing,
                   bool ends_by_time_out) {
  leaves.clear();
  Pipeline p(bench.device);
  const auto ranges =
      p.topic<Range>({.name = "ranges", .frame_bytes = 512, .frames = bench.frames, .crossing = crossing});
  // Whatever is split has to find room: all halves of as many starts as teams have.
  const auto again = p.topic<Range>({.name = "again", .frame_bytes = 4096, .frames = 16384});
  const auto out =
      p.topic<Leaf>({.name = "leaves", .frame_bytes = 16384, .frames = bench.frames, .crossing = crossing});
  std::uint32_t next = 0;
  std::atomic<Clock::rep> last{Clock::now().time_since_epoch().count()};
  const auto make = [&](auto& stage) {
    if (next < starts) {
      for (std::uint32_t i = 0; i < 64 && next < starts; ++i, ++next)
        stage.emit(ranges, {next * kLeaves, kLeaves});
      return true;
    }
    if (!ends_by_time_out) return false;
    const Clock::time_point seen{Clock::duration{last.load(std::memory_order_relaxed)}};
    if (Clock::now() - seen >= kTimeOut) return false;
    std::this_thread::yield();
    return true;
  };
  const auto keep = [&](auto&, const Frame<const Leaf>& frame) {
    leaves.keep(frame.data, frame.count);
    last.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  };
  p.run(on_host::source("make", make).into(ranges),
        on_device::items("split", Split<Election>{again, out}).from(ranges, again).into(again, out),
        on_host::frames("keep", keep).from(out).workers(2));
  leaves.check();
  return std::chrono::duration<double>(p.report().time).count();
}

/// One level of a chunk.
struct SplitLevel {
  const Range* in;
  Range* next;
  Leaf* leaves;
  DeviceAtomic<std::uint32_t>* counts;  // of next, and of leaves
  std::uint32_t n;
  ESKER_HD void operator()(Lane lane) const {
    for (std::uint64_t i = lane.global_id(); i < n; i += lane.lanes()) {
      const Range range = in[i];
      if (range.count == 1) {
        leaves[counts[1].fetch_add_relaxed(1)] = {range.first, value_of(range.first)};
        continue;
      }
      const std::uint32_t half = range.count / 2, at = counts[0].fetch_add_relaxed(2);
      next[at] = {range.first, half};
      next[at + 1] = {range.first + half, range.count - half};
    }
  }
};

/// The baseline (Hetero-Mark): chunk by chunk, a kernel a level, and the host takes a chunk's leaves while
/// the GPU works on the next chunk.
double by_chunks(const PipelineBench& bench, std::uint32_t starts, Leaves& leaves) {
  leaves.clear();
  const Device& device = bench.device;
  const std::uint32_t chunk = (starts + 7) / 8, most = chunk * kLeaves;
  const auto ranges = device.pinned<Range>(chunk);
  const auto counts = device.memory<std::uint32_t>(2);
  const DeviceArray<Range> levels[2] = {device.memory<Range>(most), device.memory<Range>(most)};
  const auto made = device.memory<Leaf>(most);
  const PinnedArray<Leaf> taken[2] = {device.pinned<Leaf>(most), device.pinned<Leaf>(most)};
  const auto host_counts = device.pinned<std::uint32_t>(2);
  const Stream stream = device.stream();
  const auto began = Clock::now();
  std::jthread keeper;
  std::uint32_t number = 0;
  for (std::uint32_t first = 0; first < starts; first += chunk, ++number) {
    std::uint32_t n = std::min(chunk, starts - first), n_leaves = 0;
    for (std::uint32_t i = 0; i < n; ++i) ranges[i] = {(first + i) * kLeaves, kLeaves};
    device.copy_async(levels[0].data(), ranges.data(), n * sizeof(Range), stream);
    device.fill(counts.data(), 0, counts.size_bytes(), stream);
    for (std::uint32_t level = 0; n != 0; ++level) {
      const SplitLevel split{levels[level % 2].data(), levels[(level + 1) % 2].data(), made.data(),
                             reinterpret_cast<DeviceAtomic<std::uint32_t>*>(counts.data()), n};
      device.launch(LaunchShape{(std::uint64_t{n} + 255) / 256 * 256, 256}, split, stream);
      device.copy_async(host_counts.data(), counts.data(), counts.size_bytes(), stream);
      device.fill(counts.data(), 0, sizeof(std::uint32_t), stream);
      stream.synchronize();
      n = host_counts[0];
      n_leaves = host_counts[1];
    }
    Leaf* const to = taken[number % 2].data();
    device.copy_async(to, made.data(), n_leaves * sizeof(Leaf), stream);
    stream.synchronize();
    if (keeper.joinable()) keeper.join();
    keeper = std::jthread([&leaves, to, n_leaves] { leaves.keep(to, n_leaves); });
  }
  if (keeper.joinable()) keeper.join();
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  leaves.check();
  return seconds;
}

}  // namespace

nlohmann::json take_recursion(const PipelineBench& bench) {
  const auto starts = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(bench.bytes / sizeof(Leaf) / kLeaves, 8, 1u << 22));
  Leaves leaves(starts * kLeaves);
  const auto with = [&]<class Election>(Election*, Crossing crossing, bool ends_by_time_out) {
    return [&bench, &leaves, starts, crossing, ends_by_time_out] {
      return by_pipeline<Election>(bench, starts, leaves, crossing, ends_by_time_out);
    };
  };
  constexpr PerLane* kAlone = nullptr;
  constexpr PerConvergedWave* kElected = nullptr;
  constexpr StatusArray* kByStatus = nullptr;
  return take_turns(bench, "recursion",
                    {{"chunks, a kernel a level", [&] { return by_chunks(bench, starts, leaves); }},
                     {"basic scheme", with(kAlone, Crossing::kBatched, true)},
                     {"+ exact end", with(kAlone, Crossing::kBatched, false)},
                     {"+ election of a lane", with(kElected, Crossing::kBatched, false)},
                     {"+ status array", with(kByStatus, Crossing::kBatched, false)},
                     {"Esker: direct, election", with(kElected, Crossing::kDirect, false)}},
                    static_cast<double>(starts) * kLeaves / 1e6, "M leaves/s");
}

}  // namespace esker::bench
