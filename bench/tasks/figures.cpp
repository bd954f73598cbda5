// fib and queens beside rivals, and what other figures have in common.
#include "figures.hpp"

#include <fmt/format.h>

#if defined(ESKER_BENCH_LAUNCHES)
#include "launches.hpp"
#endif

namespace esker::bench {

std::uint64_t tasks_of(const Bench& bench, const Problem& problem) {
  if (problem.kind == Kind::kFib || problem.kind == Kind::kFibLeaves)
    return 2 * expected({Kind::kFib, problem.n + 1}) - 1;
  const auto program = fork_join(bench.device, problem, bench.options());
  (void)timed(*program);
  return program->report().tasks;
}

nlohmann::json facts_of(const tasks::Report& report) {
  return {{"domains", report.domains},
          {"batches", report.batches},
          {"full_batches", report.full_batches},
          {"given", report.given},
          {"suspended", report.suspended},
          {"spilled_levels", report.spilled},
          {"waits", report.waits},
          {"peak_memory_bytes", report.peak_memory_bytes}};
}

Outcome timed(Program& program) {
  program.prepare();
  Outcome outcome = timed([&] { return program.run(); });
  outcome.result = program.check(outcome.result);
  return outcome;
}

Side side_of(const std::string& name, const std::shared_ptr<Program>& program) {
  return {name, [program] { return timed(*program); }, [program] { return facts_of(program->report()); }};
}

Side esker_side(const Bench& bench, const Problem& problem, const std::string& remark) {
  const std::shared_ptr<Program> program = fork_join(bench.device, problem, bench.options());
  return side_of("esker" + remark, program);
}

void add_ratios(nlohmann::json& turns) {
  const double first = turns["sides"][0]["median"];
  for (auto& side : turns["sides"]) {
    const double ratio = side["median"].get<double>() / first;
    side["over_first"] = ratio;
    if (&side != &turns["sides"][0])
      fmt::print("{:12} {} is {:.2f} times as fast as {}\n", turns["problem"].get<std::string>(),
                 turns["sides"][0]["name"].get<std::string>(), ratio, side["name"].get<std::string>());
  }
}

namespace {

constexpr const char* kLaunches = "a launch a task";

Side side_of(const std::string& name, const Run& run) {
  return {name, [run] { return timed(run); }};
}
nlohmann::json compared(const Bench& bench, const Problem& problem, double tasks,
                        const std::vector<Side>& sides) {
  nlohmann::json turns = take_turns(name_of(problem), expected(problem), tasks, sides, bench.effort);
  add_ratios(turns);
  return turns;
}

/// Few waves wait for each other less, many hide more of what memory takes.
std::vector<Side> queue_sides(const Bench& bench, const Problem& problem) {
  const std::uint64_t tasks = tasks_of(bench, problem);
  std::vector<Side> sides;
  for (const std::uint32_t waves : {4u, 16u})
    sides.push_back(
        side_of(fmt::format("one queue, {} waves", waves), one_queue(bench.device, problem, tasks, waves)));
  return sides;
}

/// fib(n), a join a call and without, and rivals of which it is the size.
nlohmann::json fib_of(const Bench& bench, std::uint32_t n, std::vector<Side> rivals) {
  const Problem joins{Kind::kFib, n}, leaves{Kind::kFibLeaves, n};
  std::vector<Side> sides = {esker_side(bench, joins), esker_side(bench, leaves, ", no joins")};
  if (bench.is_on_gpu()) sides.push_back(side_of("flat", flat(bench.device, leaves)));
  for (Side& rival : rivals) sides.push_back(std::move(rival));
  return compared(bench, joins, static_cast<double>(tasks_of(bench, joins)), sides);
}

}  // namespace

nlohmann::json take_fib(const Bench& bench) {
  nlohmann::json cases = nlohmann::json::array();
  std::vector<Side> rivals;
#if defined(ESKER_BENCH_TBB)
  const auto fib = static_cast<int>(bench.sizes.fib);
  tbb_side::use_threads(bench.threads);
  rivals.push_back(side_of("oneTBB", [fib] { return static_cast<std::uint64_t>(tbb_side::fib(fib)); }));
#endif
  if (bench.is_on_gpu()) {
    const Problem queue{Kind::kFibLeaves, static_cast<std::uint32_t>(bench.sizes.queue_fib)};
    cases.push_back(fib_of(bench, queue.n, queue_sides(bench, queue)));
  }
#if defined(ESKER_BENCH_LAUNCHES)
  if (bench.is_on_gpu()) {
    const auto launched = static_cast<std::uint32_t>(bench.sizes.launch_fib);
    const Run run = fib_by_launches(static_cast<int>(launched));
    cases.push_back(fib_of(bench, launched, {side_of(kLaunches, run)}));
  }
#endif
  cases.push_back(fib_of(bench, static_cast<std::uint32_t>(bench.sizes.fib), std::move(rivals)));
  // Of rivals that are slow: tasks a second, each at its own size.
  const double ours = cases.back()["sides"][0]["tasks_per_s"];
  nlohmann::json ratios;
  for (const auto& one : cases) {
    for (const auto& side : one["sides"]) {
      const std::string name = side["name"];
      if (!name.starts_with("one queue") && name != kLaunches) continue;
      ratios[name] = ours / side["tasks_per_s"].get<double>();
      fmt::print("{}: {:.1f} times the tasks a second of {}, {}\n",
                 cases.back()["problem"].get<std::string>(), ours / side["tasks_per_s"].get<double>(), name,
                 one["problem"].get<std::string>());
    }
  }
  return {{"cases", cases}, {"times_tasks_per_s", ratios}};
}

nlohmann::json take_queens(const Bench& bench) {
  nlohmann::json cases = nlohmann::json::array();
  const auto take = [&](const Problem& queens, const std::vector<Side>& rivals) {
    std::vector<Side> sides = {esker_side(bench, queens)};
    if (bench.is_on_gpu()) sides.push_back(side_of("flat", flat(bench.device, queens)));
    sides.insert(sides.end(), rivals.begin(), rivals.end());
    cases.push_back(compared(bench, queens, static_cast<double>(tasks_of(bench, queens)), sides));
  };
  if (bench.is_on_gpu()) {
    const Problem queue{Kind::kQueens, static_cast<std::uint32_t>(bench.sizes.queue_queens)};
    take(queue, queue_sides(bench, queue));
  }
  const Problem queens{Kind::kQueens, static_cast<std::uint32_t>(bench.sizes.queens)};
  std::vector<Side> rivals;
#if defined(ESKER_BENCH_TBB)
  tbb_side::use_threads(bench.threads);
  rivals.push_back(side_of("oneTBB", [n = queens.n] { return tbb_side::queens(n); }));
#endif
  take(queens, rivals);
  return {{"cases", cases}};
}

std::span<const Figure> figures() {
  static constexpr Figure kFigures[] = {
      {"fib", "fib(n), a task a call, beside rivals", take_fib},
      {"queens", "n queens, a task a placement, beside rivals", take_queens},
      {"sort", "sorting words, beside a library's sort", take_sort},
      {"strassen", "a product of matrices, beside one that is not divided", take_strassen},
      {"mandelbrot", "Mariani and Silver's method, beside dynamic parallelism", take_mandelbrot},
      {"sptrsv", "sparse triangular systems, beside cuSPARSE", take_sptrsv},
      {"4-13", "from one processor to all", take_speedup},
      {"4-15", "all tasks through one channel: by lanes, by waves, padded", take_channels},
      {"4-16", "the channel's capacity", take_widths},
      {"memory", "memory_bytes from the least to ample", take_memory},
      {"overhead", "what the scheduler takes: Tables 4-3 to 4-5", take_overhead},
      {"stop", "from a stop request, or an error, to the end of the run", take_stop},
  };
  return kFigures;
}

}  // namespace esker::bench
