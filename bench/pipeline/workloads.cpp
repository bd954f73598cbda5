// Work of six kinds between the host and a GPU, by the size of frames (XeFlow, Figure 9).
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench.hpp"
#include "esker_side.hpp"
#include "rivals.hpp"
#include "workload.hpp"

namespace esker::bench {

namespace {

using namespace pipeline;
using Clock = std::chrono::steady_clock;

struct WorkOnFrames {
  Workload work;
  ESKER_HD void operator()(auto& stage, const Frame<const Quad>& in, Frame<Quad>& out) const {
    work(in.data, out.data, in.count, stage.lane(), stage.lanes());
  }
};

/// What frames hold: the host's results of a slot's first and last items are found once.
class Slots {
 public:
  Slots(const Workload& on_host, std::uint64_t quads, std::uint64_t slots) : work_{on_host} {
    for (std::uint64_t s = 0; s < slots; ++s)
      ends_.push_back({work_.of(item(s, 0)), work_.of(item(s, quads - 1))});
  }
  void fill(Quad* at, std::uint64_t quads, std::uint64_t slot) const {
    for (std::uint64_t i = 0; i < quads; ++i) at[i] = item(slot, i);
  }
  bool is_right(const Quad* at, std::uint64_t quads, std::uint64_t slot) const {
    return work_.are_equal(at[0], ends_[slot][0]) && work_.are_equal(at[quads - 1], ends_[slot][1]);
  }
  void check(const Quad* at, std::uint64_t quads, std::uint64_t slot, bool) const {
    if (!is_right(at, quads, slot)) throw std::runtime_error("an item is wrong");
  }

 private:
  struct Ends {
    Quad ends[2];
    const Quad& operator[](std::uint32_t i) const { return ends[i]; }
  };
  Quad item(std::uint64_t slot, std::uint64_t i) const {
    if (!computes(work_.kind)) {
      const std::uint32_t word = word_of(slot, 4 * i);
      return {{word, word * 3, word * 5, word * 7}};
    }
    const auto of = [&](std::uint32_t prime) {
      return static_cast<float>((slot * 31 + i * prime) % 1009) / 1009;
    };
    return quad_of({{of(7), of(13), of(29), 0}});
  }
  Workload work_;
  std::vector<Ends> ends_;
};

/// The table, on both sides, and the bins.
struct Tables {
  explicit Tables(const Device& device, WorkKind kind)
      : host(Workload::kTable),
        table{device.memory<Quad>(Workload::kTable)},
        bins{device.memory<std::uint32_t>(Workload::kBins)} {
    for (std::uint32_t k = 0; k < Workload::kTable; ++k) {
      const auto of = [&](std::uint32_t prime) { return static_cast<float>(k * prime % 997) / 997; };
      host[k] = computes(kind) ? quad_of({{of(3), of(11), of(17), of(5)}})
                               : Quad{{k * 3, k * 7 + 1, k * 11 + 2, k * 2654435761u}};
    }
    device.copy(table.data(), host.data(), table.size_bytes());
  }
  Workload on(WorkKind kind, std::uint32_t n, bool on_device) const {
    if (!on_device) return {kind, n, host.data(), nullptr};
    return {kind, n, table.data(), reinterpret_cast<DeviceAtomic<std::uint32_t>*>(bins.data())};
  }
  void clear_bins(const Device& device) const {
    const Stream stream = device.stream();
    device.fill(bins.data(), 0, bins.size_bytes(), stream);
    stream.synchronize();
  }
  void check_bins(const Device& device, std::uint64_t values) const {
    std::vector<std::uint32_t> found(bins.size());
    device.copy(found.data(), bins.data(), bins.size_bytes());
    std::uint64_t sum = 0;
    for (const std::uint32_t n : found) sum += n;
    if (sum != values) throw std::runtime_error("bins lack values, or have too many");
  }

  std::vector<Quad> host;
  DeviceArray<Quad> table;
  DeviceArray<std::uint32_t> bins;
};

double by_pipeline(const PipelineBench& bench, const Workload& work, const Slots& of_slots,
                   std::uint64_t frame_bytes, std::uint64_t frames, std::uint64_t slots) {
  Options options;
  options.group_lanes = group_lanes_of(frame_bytes);
  Pipeline p(bench.device, options);
  const TopicOptions of{
      .frame_bytes = frame_bytes, .frames = static_cast<std::uint32_t>(slots), .crossing = Crossing::kDirect};
  const auto in = p.topic<Quad>(of), out = p.topic<Quad>(of);
  const auto quads = static_cast<std::uint32_t>(frame_bytes / sizeof(Quad));
  std::uint64_t next = 0, seen = 0, wrong = 0;
  Clock::time_point filled{}, ended{};  // the host has filled all slots; the last frame has come back
  p.run(on_host::source("source", FrameSource{in, frames, slots, quads, &next,
                                              [&](Quad* at, std::uint64_t n, std::uint64_t slot) {
                                                of_slots.fill(at, n, slot);
                                              }})
            .into(in),
        on_device::map("work", in, out, WorkOnFrames{work}).parts(parts_of(frame_bytes)),
        on_host::frames("sink", [&](auto&, const Frame<const Quad>& frame) {
          wrong += frame.count != quads || !of_slots.is_right(frame.data, quads, frame.number % slots);
          if (++seen == slots) filled = Clock::now();
          if (seen == frames) ended = Clock::now();
        }).from(out));
  if (wrong != 0 || seen != frames) throw std::runtime_error("an item is wrong");
  return std::chrono::duration<double>(ended - filled).count() * static_cast<double>(frames) /
         static_cast<double>(frames - slots);
}

}  // namespace

nlohmann::json take_workloads(const PipelineBench& bench) {
  const std::uint32_t n = bench.device.backend() == Backend::kSimulated ? 8 : Workload::kTable;
  nlohmann::json all;
  for (std::uint32_t k = 0; k < kWorkKinds; ++k) {
    const auto kind = static_cast<WorkKind>(k);
    const Tables tables(bench.device, kind);
    const Workload work = tables.on(kind, n, true);
    for (const std::uint64_t kib : {16, 256, 4096}) {
      const std::uint64_t bytes = kib << 10;
      if (kib != 16 && bytes * 16 > bench.bytes) continue;
      const std::uint64_t slots = slots_within(bench, bytes, std::uint64_t{256} << 20),
                          frames = std::max(bench.bytes / bytes, 4 * slots),
                          few = std::clamp<std::uint64_t>(frames, 64, 4096);
      const Slots of_slots(tables.on(kind, n, false), bytes / sizeof(Quad), slots);
      const auto timed = [&](std::uint64_t worked_on, const auto& run) {
        return [&, worked_on, run] {
          tables.clear_bins(bench.device);
          const double seconds = run();
          if (kind == WorkKind::kHisto) tables.check_bins(bench.device, worked_on * bytes / 4);
          return seconds * static_cast<double>(frames) / static_cast<double>(worked_on);
        };
      };
      std::vector<PipelineSide> sides;
      sides.push_back(
          {"esker", timed(frames, [&] { return by_pipeline(bench, work, of_slots, bytes, frames, slots); })});
      for (const std::uint32_t streams : {1u, 4u}) {
        sides.push_back({streams == 1 ? "copy-kernel-copy" : "4 streams", timed(few, [&, streams] {
                           return by_copies(bench.device, of_slots, bytes, few, {.streams = streams}, work);
                         })});
      }
      sides.push_back({"managed memory",
                       timed(64, [&] { return over_managed(bench.device, of_slots, bytes, 64, work); })});
      all[to_string(kind)][std::to_string(bytes)] =
          take_turns(bench, fmt::format("{} {} KiB", to_string(kind), kib), sides,
                     static_cast<double>(frames * bytes) / 1e9, "GB/s each way");
    }
  }
  return all;
}

}  // namespace esker::bench
