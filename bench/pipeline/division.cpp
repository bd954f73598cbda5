// Two stages of unlike work on one GPU: by the regression, by all divisions one by one, found while it runs,
// and by kernels on several streams (XeFlow, Figure 13); and how long the regression takes (Table 2).
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench.hpp"
#include "rivals.hpp"

namespace esker::bench {

namespace {

using namespace pipeline;
constexpr std::uint64_t kFrameBytes = 16384;
constexpr std::uint32_t kWords = kFrameBytes / sizeof(float);

/// So many fused multiply-adds a word. Of whole numbers below 2^24, which are exact.
struct MultiplyAdd {
  std::uint32_t times;
  ESKER_HD void operator()(auto& stage, const Frame<const float>& in, Frame<float>& out) const {
    for (std::uint32_t i = stage.lane(); i < in.count; i += stage.lanes()) out[i] = of(in[i]);
  }
  /// The same over words of a copied frame.
  ESKER_HD void operator()(const Quad* in, Quad* out, std::uint32_t n, std::uint32_t lane,
                           std::uint32_t lanes) const {
    for (std::uint32_t i = lane; i < n; i += lanes) {
      Floats values = floats_of(in[i]);
      for (float& value : values.v) value = of(value);
      out[i] = quad_of(values);
    }
  }
  ESKER_HD float of(float value) const {
    for (std::uint32_t k = 0; k < times; ++k) value = value * (k % 2 == 0 ? -1.0f : 1.0f) + 1.0f;
    return value;
  }
};

struct Feed {
  Topic<float> to;
  std::uint64_t frames, slots;
  std::uint64_t* next;
  bool operator()(auto& stage) const {
    if (*next == frames) return false;
    auto frame = stage.open(to);
    if (frame.data == nullptr) return false;
    for (std::uint32_t i = 0; *next < slots && i < kWords; ++i) frame.data[i] = static_cast<float>(i);
    frame.count = kWords;
    stage.publish(to, frame);
    ++*next;
    return true;
  }
};

/// Frames as Feed fills them, for kernels that do both.
struct FloatSlots {
  MultiplyAdd first, second;
  void fill(Quad* at, std::uint64_t quads, std::uint64_t) const {
    auto* const floats = reinterpret_cast<float*>(at);
    for (std::uint64_t i = 0; i < 4 * quads; ++i) floats[i] = static_cast<float>(i);
  }
  void check(const Quad* at, std::uint64_t quads, std::uint64_t, bool) const {
    const auto* const floats = reinterpret_cast<const float*>(at);
    for (const std::uint64_t i : {std::uint64_t{0}, 4 * quads - 1}) {
      if (floats[i] != second.of(first.of(static_cast<float>(i))))
        throw std::runtime_error("a frame came back wrong");
    }
  }
};

/// Seconds of a run in which the stages have so many teams; 0 and 0: the run divides them. `round`: the mean
/// time that a team of the first stage takes for a frame.
struct Run {
  double seconds = 0, round = 0;
  std::vector<std::uint32_t> at_end;
};
template <std::size_t n>
Run run_stages(const PipelineBench& bench, const MultiplyAdd (&work)[n],
               const std::vector<std::uint32_t>& teams, std::uint64_t frames) {
  Options options;
  options.balance = teams.empty();
  Pipeline p(bench.device, options);
  std::vector<Topic<float>> t;
  for (std::size_t i = 0; i <= n; ++i)
    t.push_back(p.topic<float>({.frame_bytes = kFrameBytes, .frames = bench.frames}));
  std::uint64_t next = 0, seen = 0, wrong = 0;
  float first = 0, last = kWords - 1;
  for (const MultiplyAdd& one : work) {
    first = one.of(first);
    last = one.of(last);
  }
  const auto source = on_host::source("source", Feed{t[0], frames, bench.frames, &next}).into(t[0]);
  const auto sink = on_host::frames("sink", [&](auto&, const Frame<const float>& f) {
                      ++seen;
                      wrong += f.count != kWords || f[0] != first || f[kWords - 1] != last;
                    }).from(t[n]);
  const auto g = [&](std::size_t i) {
    return on_device::map(fmt::format("FMA{}", work[i].times), t[i], t[i + 1], work[i])
        .workers(teams.empty() ? 0 : teams[i]);
  };
  if constexpr (n == 1) {
    p.run(source, g(0), sink);
  } else {
    p.run(source, g(0), g(1), sink);
  }
  if (wrong != 0 || seen != frames) throw std::runtime_error("a frame came back wrong");
  const Report& report = p.report();
  Run run;
  run.seconds = std::chrono::duration<double>(report.time).count();
  run.round = std::chrono::duration<double>(report.stages[1].busy).count() /
              static_cast<double>(std::max<std::uint64_t>(report.stages[1].frames, 1));
  for (std::size_t i = 1; i <= n; ++i) run.at_end.push_back(report.stages[i].teams_at_end);
  return run;
}

/// Teams that fit: more is an error that says how many do, so half of the frames, and of what the device
/// holds.
std::uint32_t teams_of(const PipelineBench& bench) {
  const std::uint32_t teams =
      std::min<std::uint32_t>(bench.frames / 2, 2 * bench.device.properties().processors);
  if (teams < 4) throw std::runtime_error("fewer than 4 teams: give it more --frames");
  return teams;
}
/// Rounds of the stage alone, by eight numbers of teams; `frames` in all.
std::vector<RoundSample> samples_of(const PipelineBench& bench, const MultiplyAdd& one, std::uint32_t teams,
                                    std::uint64_t frames) {
  std::vector<RoundSample> samples;
  for (std::uint32_t i = 1; i <= 8; ++i) {
    const MultiplyAdd alone[1] = {one};
    const std::uint32_t n = std::max<std::uint32_t>(teams * i / 8, 1);
    samples.push_back({n, run_stages(bench, alone, {n}, std::max<std::uint64_t>(frames / 8, 1)).round});
  }
  return samples;
}

}  // namespace

nlohmann::json take_division(const PipelineBench& bench) {
  const std::uint32_t teams = teams_of(bench);
  const std::uint64_t frames =
      std::max<std::uint64_t>(bench.bytes / kFrameBytes, 4 * std::uint64_t{bench.frames});
  nlohmann::json all;
  for (const auto& [first, second] : {std::pair{4u, 64u}, std::pair{16u, 256u}}) {
    const MultiplyAdd both[2] = {{first}, {second}};
    const std::string name = fmt::format("FMA{} and FMA{}", first, second);
    std::vector<RoundTime> stages;
    double sum = 0;
    std::size_t n_samples = 0;
    std::chrono::duration<double> fitting{};
    for (const MultiplyAdd& one : both) {
      const std::vector<RoundSample> samples = samples_of(bench, one, teams, 8 * frames);
      for (const RoundSample& sample : samples) sum += sample.seconds;
      n_samples += samples.size();
      const auto began = std::chrono::steady_clock::now();
      stages.push_back(RoundTime::fit(samples));
      fitting += std::chrono::steady_clock::now() - began;
    }
    const std::vector<std::uint32_t> learnt =
        divide_teams(stages, teams, sum / static_cast<double>(n_samples));
    std::vector<PipelineSide> sides;
    std::vector<std::uint32_t> found;
    nlohmann::json estimated;
    for (std::uint32_t i = 1; i < 16; ++i) {
      const std::uint32_t n = teams * i / 16;
      if (n == 0 || n == teams * (i - 1) / 16) continue;  // of few teams
      sides.push_back({fmt::format("{}:{}", n, teams - n), [&, n] {
                         return run_stages(bench, both, {n, teams - n}, frames).seconds;
                       }});
      // Each round does a frame a team, and the slower stage is waited for.
      const double a = n / stages[0].at(n), b = (teams - n) / stages[1].at(teams - n);
      estimated[sides.back().name] = std::min(a, b) * kFrameBytes / 1e9;
    }
    sides.push_back({fmt::format("regression {}:{}", learnt[0], learnt[1]),
                     [&] { return run_stages(bench, both, learnt, frames).seconds; }});
    sides.push_back({"while it runs", [&] {
                       const Run run = run_stages(bench, both, {}, frames);
                       found = run.at_end;
                       return run.seconds;
                     }});
    const std::uint64_t few = std::min<std::uint64_t>(frames, 4096);
    for (const std::uint32_t streams : {1u, 8u}) {
      sides.push_back(
          {fmt::format("2 kernels a frame, {} stream{}", streams, streams == 1 ? "" : "s"), [&, streams] {
             return by_copies(bench.device, FloatSlots{both[0], both[1]}, kFrameBytes, few,
                              {.streams = streams}, both[0], both[1]) *
                    static_cast<double>(frames) / static_cast<double>(few);
           }});
    }
    all[name] =
        take_turns(bench, name, sides, static_cast<double>(frames * kFrameBytes) / 1e9, "GB/s each way");
    all[name]["fit_ms"] = fitting.count() * 1e3;
    all[name]["found"] = found;
    all[name]["estimated_gb_per_s"] = estimated;
    for (const auto& [division, rate] : estimated.items())
      fmt::print("{:24} {:28} {:10.3f} GB/s each way, as estimated\n", name, division, rate.get<double>());
    if (found.size() == 2)
      fmt::print("found while it ran: {}:{}; fitted in {:.4f} ms\n", found[0], found[1],
                 fitting.count() * 1e3);
  }
  return all;
}

nlohmann::json take_tuning(const PipelineBench& bench) {
  const std::uint32_t teams = teams_of(bench);
  nlohmann::json all;
  for (const std::uint32_t times : {4u, 8u, 16u, 32u, 64u}) {
    for (const std::uint64_t samples : {800, 1600, 3200, 6400, 12800}) {
      if (samples != 800 && samples * kFrameBytes > bench.bytes) continue;
      std::vector<PipelineSide> sides{
          {"samples and regression", [&] {
             const auto began = std::chrono::steady_clock::now();
             (void)RoundTime::fit(samples_of(bench, {times}, teams, samples));
             return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
           }}};
      all[fmt::format("FMA{}", times)][std::to_string(samples)] =
          take_turns(bench, fmt::format("FMA{}, {} samples", times, samples), sides,
                     static_cast<double>(samples) / 1e3, "k samples/s");
    }
  }
  return all;
}

}  // namespace esker::bench
