// Where a team's time goes in a round, by the size of frames (XeFlow, Figure 11): it takes a frame, works on
// it, and publishes. There is no work-vector: a team's stage is known from its number.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <fmt/format.h>

#include <esker/lane.hpp>

#include "bench.hpp"
#include "esker_side.hpp"
#include "words.hpp"

namespace esker::bench {

namespace {

using namespace pipeline;

/// Doubles a frame, and adds up how long teams take for it.
struct TimedDoubling {
  DeviceAtomic<std::uint64_t>* ns;
  ESKER_HD void operator()(auto& stage, const Frame<const Quad>& in, Frame<Quad>& out) const {
    const std::uint64_t began = stage.lane() == 0 ? Lane::clock_ns() : 0;
    double_quads(in.data, out.data, in.count, stage.lane(), stage.lanes());
    stage.sync();
    if (stage.lane() == 0) (void)ns->fetch_add_relaxed(Lane::clock_ns() - began);
  }
};

struct Round {
  double work, exchange, input, room;  // parts of the teams' time
  double us;                           // that a team has for a frame
};

Round run_rounds(const PipelineBench& bench, std::uint64_t frame_bytes, std::uint64_t slots,
                 std::uint64_t frames) {
  const auto ns = bench.device.memory<std::uint64_t>(1);
  const Stream stream = bench.device.stream();
  bench.device.fill(ns.data(), 0, ns.size_bytes(), stream);
  stream.synchronize();
  Options options;
  options.group_lanes = group_lanes_of(frame_bytes);
  Pipeline p(bench.device, options);
  const TopicOptions of{
      .frame_bytes = frame_bytes, .frames = static_cast<std::uint32_t>(slots), .crossing = Crossing::kDirect};
  const auto in = p.topic<Quad>(of), out = p.topic<Quad>(of);
  const auto quads = static_cast<std::uint32_t>(frame_bytes / sizeof(Quad));
  std::uint64_t next = 0, seen = 0, wrong = 0;
  p.run(on_host::source("source", FrameSource{in, frames, slots, quads, &next, fill_slot}).into(in),
        on_device::map("double", in, out,
                       TimedDoubling{reinterpret_cast<DeviceAtomic<std::uint64_t>*>(ns.data())}),
        on_host::frames("sink", [&](auto&, const Frame<const Quad>& frame) {
          wrong += !is_right(frame.data, quads, frame.number % slots, 2, frame.number + slots >= frames);
          ++seen;
        }).from(out));
  if (wrong != 0 || seen != frames) throw std::runtime_error("a frame came back wrong");
  std::uint64_t working = 0;
  bench.device.copy(&working, ns.data(), sizeof working);
  const Report::Stage& stage = p.report().stages[1];
  const auto busy = static_cast<double>(stage.busy.count()),
             room = static_cast<double>(stage.blocked.count()),
             input = static_cast<double>(stage.starved.count()), all = busy + room + input,
             work = std::min(static_cast<double>(working), busy);
  return {work / all, (busy - work) / all, input / all, room / all, all / 1e3 / static_cast<double>(frames)};
}

}  // namespace

nlohmann::json take_rounds(const PipelineBench& bench) {
  nlohmann::json all;
  for (const std::uint64_t kib : {4, 16, 64, 256, 1024, 4096}) {
    const std::uint64_t bytes = kib << 10;
    if (kib != 4 && bytes * 16 > bench.bytes) continue;
    const std::uint64_t slots = slots_within(bench, bytes, std::uint64_t{256} << 20),
                        frames = std::max(bench.bytes / bytes, 4 * slots);
    std::vector<Round> rounds;
    for (std::uint32_t i = 0; i <= bench.repeats; ++i) {
      const Round round = run_rounds(bench, bytes, slots, frames);
      if (i != 0) rounds.push_back(round);
    }
    std::sort(rounds.begin(), rounds.end(), [](const Round& a, const Round& b) { return a.us < b.us; });
    const Round& r = rounds[rounds.size() / 2];
    fmt::print(
        "{:4} KiB: a team has {:.2f} us for a frame: work {:.1f} %, take and publish {:.1f} %, no input "
        "{:.1f} %, no room {:.1f} %\n",
        kib, r.us, 100 * r.work, 100 * r.exchange, 100 * r.input, 100 * r.room);
    all[std::to_string(bytes)] = {{"us", r.us},
                                  {"work", r.work},
                                  {"take_and_publish", r.exchange},
                                  {"no_input", r.input},
                                  {"no_room", r.room}};
  }
  return all;
}

}  // namespace esker::bench
