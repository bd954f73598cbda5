// Figures over processors and over memory.
#include <algorithm>
#include <stdexcept>

#include <fmt/format.h>

#include <esker/error.hpp>

#include "figures.hpp"

namespace esker::bench {

// Figure 4-13. Domains are divided over the processors that are left, which hold as many of them as they do
// when all processors are free.
nlohmann::json take_speedup(const Bench& bench) {
  const std::uint32_t all = bench.is_on_gpu() ? bench.device.properties().processors : bench.threads;
  nlohmann::json cases = nlohmann::json::array();
  for (const Problem& problem :
       {Problem{Kind::kFib, static_cast<std::uint32_t>(bench.sizes.speedup_fib)},
        Problem{Kind::kQueens, static_cast<std::uint32_t>(bench.sizes.speedup_queens)},
        Problem{Kind::kSort, static_cast<std::uint32_t>(bench.sizes.speedup_sort)},
        bench.strassen(bench.sizes.speedup_strassen)}) {
    const std::shared_ptr<Program> whole = fork_join(bench.device, problem, bench.options());
    (void)timed(*whole);
    const std::uint32_t each = std::max(1u, whole->report().domains / all);
    const std::uint64_t tasks = whole->report().tasks;
    std::vector<Side> sides;
    std::vector<std::uint32_t> processors;
    for (std::uint32_t p = 1; p < 2 * all; p *= 2) processors.push_back(std::min(p, all));
    for (const std::uint32_t p : processors) {
      tasks::Options options = bench.options();
      options.domains = p * each;
      const std::shared_ptr<Program> program = fork_join(bench.device, problem, options);
      sides.push_back({fmt::format("{} processors", p),
                       [&bench, program, p] {
                         const ProcessorsHeld held(bench.device, p);
                         return timed(*program);
                       },
                       [program, p] {
                         nlohmann::json facts = facts_of(program->report());
                         facts["processors"] = p;
                         return facts;
                       }});
    }
    cases.push_back(
        take_turns(name_of(problem), expected(problem), static_cast<double>(tasks), sides, bench.effort));
    const double one = cases.back()["sides"][0]["median"];
    for (auto& side : cases.back()["sides"]) {
      const double speedup = one / side["median"].get<double>();
      side["speedup"] = speedup;
      side["of_linear"] = speedup / side["processors"].get<double>();
      fmt::print("{:12} {:28} speed-up {:.2f}, {:.2f} of linear\n", name_of(problem),
                 side["name"].get<std::string>(), speedup, side["of_linear"].get<double>());
    }
  }
  return {{"cases", cases}};
}

namespace {

/// One memory_bytes: the seconds of its runs, and what was said of those that failed.
nlohmann::json with_memory(const Bench& bench, const Problem& problem, std::uint64_t bytes) {
  nlohmann::json one = {{"memory_bytes", bytes}, {"seconds", nlohmann::json::array()}, {"failed", 0}};
  std::vector<double> seconds;
  try {
    tasks::Options options = bench.options();
    options.memory_bytes = bytes;
    const auto program = fork_join(bench.device, problem, options);
    double spent = 0;
    for (std::uint64_t i = 0; i <= bench.effort.repeats && spent <= bench.effort.seconds; ++i) {
      try {
        const Outcome outcome = timed(*program);
        if (outcome.result != expected(problem))
          throw std::runtime_error(
              fmt::format("{} with {} bytes is {}", name_of(problem), bytes, outcome.result));
        spent += outcome.seconds;
        if (i > 0) seconds.push_back(outcome.seconds);  // the first warms up
      } catch (const Error& error) {
        one["failed"] = one["failed"].get<int>() + 1;
        one["error"] = error.what();
      }
    }
    one["peak_memory_bytes"] = program->report().peak_memory_bytes;
  } catch (const Error& error) {
    one["refused"] = error.what();
  }
  if (!seconds.empty()) {
    std::sort(seconds.begin(), seconds.end());
    one["seconds"] = seconds;
    one["median"] = seconds[seconds.size() / 2];
  }
  fmt::print("{:12} {:10} KiB: {}\n", name_of(problem), bytes >> 10,
             one.contains("refused") ? "refused"
             : seconds.empty()       ? "out of memory"
                               : fmt::format("{:.6f} s, {} runs of {} failed", seconds[seconds.size() / 2],
                                             one["failed"].get<int>(), bench.effort.repeats + 1));
  return one;
}

}  // namespace

// Problems of Figure 4-13's size: with the least memory batches have one task.
nlohmann::json take_memory(const Bench& bench) {
  nlohmann::json cases = nlohmann::json::array();
  for (const Problem& problem :
       {Problem{Kind::kFib, static_cast<std::uint32_t>(bench.sizes.speedup_fib)},
        Problem{Kind::kQueens, static_cast<std::uint32_t>(bench.sizes.speedup_queens)}}) {
    nlohmann::json sizes = nlohmann::json::array();
    for (std::uint64_t bytes = std::uint64_t{16} << 10; bytes <= std::uint64_t{256} << 20; bytes *= 4)
      sizes.push_back(with_memory(bench, problem, bytes));
    cases.push_back({{"problem", name_of(problem)}, {"sizes", sizes}});
  }
  return {{"cases", cases}};
}

}  // namespace esker::bench
