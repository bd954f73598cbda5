// esker-bench-latency: what one message, and calls without traffic, take between PEs. Under mpirun.
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <esker/config.hpp>
#include <esker/device.hpp>
#include <esker/esker.hpp>

#include "../harness/figures.hpp"
#include "../harness/measure.hpp"
#include "../harness/report.hpp"

namespace esker::bench {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kSilence{5};
constexpr std::uint32_t kWakes = 20;  // a repeat

struct LatencyBench {
  Runtime& runtime;
  std::uint32_t repeats;
  std::uint64_t calls;
};

/// Goes on to the next PE until there are no hops left.
struct Hop {
  using Self = Handler<std::uint64_t, std::uint64_t>;
  SymmetricArray<std::uint64_t> visits;
  ESKER_HD void operator()(HandlerContext& context, std::uint64_t& visits_here, const std::uint64_t& left,
                           Self self) const {
    ++visits_here;
    if (left > 0) shmem_am(context, self, &visits[0], left - 1, (context.pe() + 1) % context.n_pes());
  }
};

nlohmann::json report(const char* what, std::vector<double> us) {
  const Rate found = summarise(std::move(us));
  fmt::print("{:35} {:9.3f} us ({:.3f} to {:.3f})\n", what, found.median, found.lowest, found.highest);
  return {{"median_us", found.median}, {"min_us", found.lowest}, {"max_us", found.highest}};
}

/// Microseconds of one of `calls` in each repeat, on PE 0. The first run warms up.
template <class RunAll>
nlohmann::json timed(const LatencyBench& bench, const char* what, const RunAll& run_all) {
  std::vector<double> us;
  for (std::uint32_t r = 0; r <= bench.repeats; ++r) {
    bench.runtime.barrier_all();
    const auto began = Clock::now();
    run_all();
    const std::chrono::duration<double, std::micro> time = Clock::now() - began;
    if (r > 0) us.push_back(time.count() / static_cast<double>(bench.calls));
  }
  return bench.runtime.pe() == 0 ? report(what, std::move(us)) : nlohmann::json{};
}

nlohmann::json take_hop(const LatencyBench& bench) {
  Runtime& rt = bench.runtime;
  const auto visits = rt.heap().allocate<std::uint64_t>(1);
  const auto hop = rt.register_handler<std::uint64_t, std::uint64_t>("hop", Hop{visits});
  std::uint64_t runs = 0;
  nlohmann::json result = timed(bench, "a dependent active message", [&] {
    const std::uint64_t hops = bench.calls, begin = rt.pe() == 0 ? 1 : 0, next = 1 % rt.n_pes();
    rt.launch(begin, [=] ESKER_LAMBDA(WorkItem lane) {
      shmem_am(lane, hop, &visits[0], hops - 1, static_cast<std::uint32_t>(next));
    });
    rt.barrier_all();
    ++runs;
  });
  std::uint64_t sum[1] = {};
  rt.device().copy(sum, visits.data(), sizeof sum);
  rt.all_reduce(sum, Reduction::kSum);
  if (sum[0] != runs * bench.calls) throw std::runtime_error("a hop is missing");
  return result;
}

nlohmann::json take_barrier(const LatencyBench& bench) {
  return timed(bench, "barrier_all", [&] {
    for (std::uint64_t i = 0; i < bench.calls; ++i) bench.runtime.barrier_all();
  });
}

nlohmann::json take_put_quiet(const LatencyBench& bench) {
  Runtime& rt = bench.runtime;
  const auto words = rt.heap().allocate<std::uint64_t>(1);
  std::uint64_t value = 0;
  nlohmann::json result = timed(bench, "put and quiet", [&] {
    for (std::uint64_t i = 0; i < bench.calls; ++i) {
      ++value;
      const std::uint64_t mine = value;
      const std::uint32_t next = 1 % rt.n_pes();
      if (rt.pe() == 0)
        rt.launch(1, [=] ESKER_LAMBDA(WorkItem lane) { shmem_put(lane, &words[0], mine, next); });
      rt.quiet();
    }
    rt.barrier_all();
  });
  std::uint64_t arrived = 0;
  rt.device().copy(&arrived, words.data(), sizeof arrived);
  if (rt.pe() == 1 % rt.n_pes() && arrived != value) throw std::runtime_error("a put is missing");
  return result;
}

/// The peers have had nothing for a while, and sleep.
nlohmann::json take_wake(const LatencyBench& bench) {
  Runtime& rt = bench.runtime;
  const auto words = rt.heap().allocate<std::uint64_t>(1);
  const std::uint32_t next = 1 % rt.n_pes();
  std::vector<double> us;
  for (std::uint32_t r = 0; r <= kWakes * bench.repeats; ++r) {
    rt.barrier_all();
    if (rt.pe() == 0) {
      std::this_thread::sleep_for(kSilence);
      const auto began = Clock::now();
      rt.launch(1, [=] ESKER_LAMBDA(WorkItem lane) { shmem_put(lane, &words[0], std::uint64_t{r}, next); });
      rt.quiet();
      const std::chrono::duration<double, std::micro> time = Clock::now() - began;
      if (r > 0) us.push_back(time.count());
    }
    rt.barrier_all();
  }
  if (rt.pe() != 0) return {};
  return report("put and quiet after 5 ms of silence", std::move(us));
}

struct Figure {
  const char* name;
  const char* what;
  nlohmann::json (*take)(const LatencyBench& bench);
};
constexpr std::array kFigures = {

    Figure{"hop", "active messages, each sent by the one before", take_hop},
    Figure{"barrier", "barrier_all() without traffic", take_barrier},
    Figure{"put_quiet", "one put from one lane, and quiet()", take_put_quiet},
    Figure{"wake", "the same, to a PE that sleeps", take_wake},
};

}  // namespace
}  // namespace esker::bench

int main(int argc, char** argv) try {
  using namespace esker::bench;
  std::uint64_t repeats = 11, calls = 2000;
  std::string names = "all", json;
  esker::CommandLine line("esker-bench-latency", "Latencies between PEs. Figures:" + list_of(kFigures));
  line.add("figure", &names, "which, with commas between them, or all")
      .add("repeats", &repeats, "whose median counts")
      .add("calls", &calls, "a repeat")
      .add("json", &json, "write one JSON object to this file; - is standard output");
  const esker::Config config = line.parse(argc, argv);
  const auto named = figures_named(names, kFigures);
  if (repeats == 0 || calls == 0) throw esker::UsageError("--repeats and --calls are at least 1");
  nlohmann::json report = provenance("latency");
  esker::Runtime runtime(config);
  report["settings"] = {{"repeats", repeats}, {"calls", calls}, {"pes", runtime.n_pes()}};
  const LatencyBench bench{runtime, static_cast<std::uint32_t>(repeats), calls};
  const bool speaks = runtime.pe() == 0;
  return take_figures(named, bench, report, speaks ? json : "", "esker-bench-latency");
} catch (const esker::UsageError& error) {
  std::fprintf(stderr, "esker-bench-latency: %s\n", error.what());
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "esker-bench-latency: %s\n", error.what());
  return 1;
}
