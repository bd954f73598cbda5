// How lanes of a GPU share the counter of a topic that they emit into: each alone, elected among those that
// are converged, or by the status array (HiWayLib, section 3.4). The other end of a topic has one form: a
// team takes a frame, so one addition serves all of its items.
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include <esker/lane.hpp>

#include "bench.hpp"

namespace esker::bench {

namespace {

using namespace pipeline;
constexpr std::uint32_t kEach = 16;

/// Of one number 16: all lanes of a group emit again and again, at the same time.
template <class HowTheyElect>
struct Multiply {
  using Election = HowTheyElect;
  Topic<std::uint32_t> to;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const {
    for (std::uint32_t i = 0; i < kEach; ++i) stage.emit(to, n * kEach + i);
  }
};
struct CountItems {
  DeviceAtomic<std::uint32_t>* seen;
  ESKER_HD void operator()(auto&, const std::uint32_t& item) const { (void)seen[item].fetch_add_relaxed(1); }
};

template <class Election>
double run_items(const PipelineBench& bench, const DeviceArray<std::uint32_t>& seen, std::uint32_t lanes) {
  const auto n = static_cast<std::uint32_t>(seen.size() / kEach);
  const Stream stream = bench.device.stream();
  bench.device.fill(seen.data(), 0, seen.size_bytes(), stream);
  stream.synchronize();
  Pipeline p(bench.device, {.group_lanes = lanes});
  const auto numbers = p.topic<std::uint32_t>({.frame_bytes = 4096, .frames = bench.frames}),
             items = p.topic<std::uint32_t>({.frame_bytes = 16384, .frames = bench.frames});
  std::uint32_t next = 0;
  p.run(on_host::source("numbers",
                        [&](auto& stage) {
                          auto frame = stage.open(numbers);
                          if (frame.data == nullptr) return false;
                          for (; frame.count < frame.capacity && next < n; ++frame.count)
                            frame[frame.count] = next++;
                          stage.publish(numbers, frame);
                          return next < n;
                        })
            .into(numbers),
        on_device::items("multiply", Multiply<Election>{items}).from(numbers).into(items),
        on_device::items("count", CountItems{reinterpret_cast<DeviceAtomic<std::uint32_t>*>(seen.data())})
            .from(items));
  std::vector<std::uint32_t> all(seen.size());
  bench.device.copy(all.data(), seen.data(), seen.size_bytes());
  for (const std::uint32_t times : all) {
    if (times != 1) throw std::runtime_error("an item did not come once");
  }
  return std::chrono::duration<double>(p.report().time).count();
}

}  // namespace

nlohmann::json take_contention(const PipelineBench& bench) {
  // 16 million of 4 bytes for 1 GB.
  const std::uint64_t items = std::max<std::uint64_t>(bench.bytes / 64 / kEach, 1) * kEach;
  const auto seen = bench.device.memory<std::uint32_t>(items);
  nlohmann::json all;
  for (const std::uint32_t lanes : {64u, 256u, 1024u}) {
    all[std::to_string(lanes)] = take_turns(
        bench, fmt::format("groups of {} lanes", lanes),
        {{"each lane alone", [&, lanes] { return run_items<PerLane>(bench, seen, lanes); }},
         {"election", [&, lanes] { return run_items<PerConvergedWave>(bench, seen, lanes); }},
         {"election and status array", [&, lanes] { return run_items<StatusArray>(bench, seen, lanes); }}},
        static_cast<double>(items) / 1e6, "M items/s");
  }
  return all;
}

}  // namespace esker::bench
