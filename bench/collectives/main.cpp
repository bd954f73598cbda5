// esker-bench-collectives: sort over PEs beside std::sort on one core, and what calls on data take. Under
// mpirun.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <esker/collectives.hpp>
#include <esker/config.hpp>
#include <esker/esker.hpp>

#include "../harness/figures.hpp"
#include "../harness/measure.hpp"
#include "../harness/report.hpp"

namespace esker::bench {

namespace {

using Clock = std::chrono::steady_clock;

struct CollectivesBench {
  Runtime& runtime;
  std::uint32_t repeats;
  std::uint64_t keys;
  std::uint64_t calls;
};

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

std::uint64_t random_key(std::uint64_t i) {
  std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::vector<std::uint64_t> random_keys(std::uint64_t first, std::uint64_t n) {
  std::vector<std::uint64_t> keys(n);
  for (std::uint64_t i = 0; i < n; ++i) keys[i] = random_key(first + i);
  return keys;
}

nlohmann::json as_json(const Rate& rate, const char* unit) {
  return {{"median", rate.median}, {"lowest", rate.lowest}, {"highest", rate.highest}, {"unit", unit}};
}

struct Ends {
  std::uint64_t first = 0, last = 0;
};

/// Both sides in turns: all keys by std::sort on PE 0, while the others wait, then by all PEs.
nlohmann::json take_sort(const CollectivesBench& bench) {
  Runtime& rt = bench.runtime;
  const std::uint64_t first = rt.pe() * bench.keys / rt.n_pes();
  const std::uint64_t last = (rt.pe() + 1) * bench.keys / rt.n_pes();
  std::vector<double> alone, together;
  for (std::uint32_t repeat = 0; repeat < bench.repeats; ++repeat) {
    std::uint64_t middle = 0;  // of all keys in order, as std::sort has it
    if (rt.pe() == 0) {
      std::vector<std::uint64_t> keys = random_keys(0, bench.keys);
      const auto began = Clock::now();
      std::sort(keys.begin(), keys.end());
      alone.push_back(seconds_since(began));
      middle = keys[bench.keys / 2];
    }
    middle = broadcast(rt, middle);
    std::vector<std::uint64_t> keys = random_keys(first, last - first);
    sync_all(rt);
    const auto began = Clock::now();
    keys = sort(rt, std::move(keys));
    together.push_back(all_reduce(rt, seconds_since(began), Reduction::kMax));
    // The timed run is right: in order here and between PEs, as many as there were, the one in the middle.
    const std::uint64_t begin = rt.pe() * bench.keys / rt.n_pes();
    bool is_right = std::is_sorted(keys.begin(), keys.end()) && keys.size() == last - first;
    if (bench.keys / 2 >= begin && bench.keys / 2 < begin + keys.size())
      is_right &= keys[bench.keys / 2 - begin] == middle;
    const Ends mine = keys.empty() ? Ends{} : Ends{keys.front(), keys.back()};
    const std::vector<Ends> ends = all_gather(rt, mine);
    for (std::size_t pe = 1; pe < ends.size(); ++pe) is_right &= ends[pe - 1].last <= ends[pe].first;
    if (!all_reduce(rt, is_right, std::logical_and<>{})) throw std::runtime_error("the keys are not sorted");
  }
  nlohmann::json result;
  if (rt.pe() == 0) {
    const Rate one = summarise(alone);
    const Rate all = summarise(together);
    fmt::print("std::sort, one core          {:8.3f} s ({:.3f} to {:.3f})\n", one.median, one.lowest,
               one.highest);
    fmt::print("esker::sort, {:3} PEs         {:8.3f} s ({:.3f} to {:.3f}): {:.2f} times as fast\n",
               rt.n_pes(), all.median, all.lowest, all.highest, one.median / all.median);
    result = {{"std_sort", as_json(one, "s")},
              {"esker_sort", as_json(all, "s")},
              {"keys", bench.keys},
              {"times_as_fast", one.median / all.median}};
  }
  return result;
}

/// Microseconds of a call, and bytes a second that it brings to a PE where it moves many.
template <class Call>
nlohmann::json timed(const CollectivesBench& bench, const char* what, std::uint64_t calls, double bytes,
                     const Call& call) {
  std::vector<double> us;
  for (std::uint32_t repeat = 0; repeat <= bench.repeats; ++repeat) {
    sync_all(bench.runtime);
    const auto began = Clock::now();
    for (std::uint64_t i = 0; i < calls; ++i) call();
    if (repeat > 0) us.push_back(seconds_since(began) * 1e6 / static_cast<double>(calls));
  }
  const Rate found = summarise(std::move(us));
  nlohmann::json result = as_json(found, "us");
  if (bytes > 0) result["GB_per_s"] = bytes / found.median * 1e-3;
  if (bench.runtime.pe() == 0) {
    fmt::print("{:34} {:10.2f} us ({:.2f} to {:.2f}){}\n", what, found.median, found.lowest, found.highest,
               bytes > 0 ? fmt::format(": {:.2f} GB/s", bytes / found.median * 1e-3) : "");
  }
  return result;
}

nlohmann::json take_calls(const CollectivesBench& bench) {
  Runtime& rt = bench.runtime;
  std::uint64_t one = 1;
  return {{"sync_all", timed(bench, "sync_all", bench.calls, 0, [&] { sync_all(rt); })},
          {"all_reduce", timed(bench, "all_reduce of one number", bench.calls, 0,
                               [&] { one = all_reduce(rt, one, Reduction::kMax); })},
          {"broadcast",
           timed(bench, "broadcast of one number", bench.calls, 0, [&] { one = broadcast(rt, one); })}};
}

nlohmann::json take_bandwidth(const CollectivesBench& bench) {
  Runtime& rt = bench.runtime;
  constexpr std::uint64_t kWords = std::uint64_t{8} << 20;
  std::vector<std::uint64_t> words(kWords / rt.n_pes() * rt.n_pes(), rt.pe());
  std::vector<std::uint64_t> other(words.size());
  const double bytes = static_cast<double>(words.size() * 8);
  const std::vector<std::uint64_t> counts(rt.n_pes(), words.size() / rt.n_pes());
  return {{"broadcast", timed(bench, "broadcast of 64 MiB", 1, bytes, [&] { broadcast(rt, words); })},
          {"all_reduce",
           timed(bench, "all_reduce of 64 MiB", 1, bytes, [&] { all_reduce(rt, words, Reduction::kMax); })},
          {"all_to_all", timed(bench, "all_to_all of 64 MiB a PE", 1, bytes,
                               [&] { all_to_all(rt, words, counts, other); })}};
}

struct Figure {
  const char* name;
  const char* what;
  nlohmann::json (*take)(const CollectivesBench& bench);
};
constexpr std::array kFigures = {
    Figure{"sort", "64-bit keys: esker::sort beside std::sort on one core", take_sort},
    Figure{"calls", "calls that move next to nothing", take_calls},
    Figure{"bandwidth", "calls that move much", take_bandwidth},
};

}  // namespace
}  // namespace esker::bench

int main(int argc, char** argv) try {
  using namespace esker::bench;
  std::uint64_t repeats = 5, calls = 2000, keys = 100'000'000;
  std::string names = "all", json;
  esker::CommandLine line("esker-bench-collectives",
                          "Collective calls on data between PEs. Figures:" + list_of(kFigures));
  line.add("figure", &names, "which, with commas between them, or all")
      .add("repeats", &repeats, "whose median counts")
      .add("keys", &keys, "to sort, on all PEs together")
      .add("calls", &calls, "a repeat")
      .add("json", &json, "write one JSON object to this file; - is standard output");
  const esker::Config config = line.parse(argc, argv);
  const auto named = figures_named(names, kFigures);
  if (repeats == 0 || calls == 0 || keys == 0)
    throw esker::UsageError("--repeats, --calls and --keys are at least 1");
  nlohmann::json report = provenance("collectives");
  esker::Runtime runtime(config);
  report["settings"] = {{"repeats", repeats}, {"calls", calls}, {"keys", keys}, {"pes", runtime.n_pes()}};
  const CollectivesBench bench{runtime, static_cast<std::uint32_t>(repeats), keys, calls};
  return take_figures(named, bench, report, runtime.pe() == 0 ? json : "", "esker-bench-collectives");
} catch (const esker::UsageError& error) {
  std::fprintf(stderr, "esker-bench-collectives: %s\n", error.what());
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "esker-bench-collectives: %s\n", error.what());
  return 1;
}
