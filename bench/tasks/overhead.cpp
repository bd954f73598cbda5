// Tables 4-3 to 4-5: how large tasks are, and what the scheduler takes.
#include <chrono>

#include <fmt/format.h>

#include "figures.hpp"

namespace esker::bench {

// The thesis's Table 4-5 has the share of time in which processors wait for the aggregator. Domains have
// none; they wait for each other, and run the scheduler themselves. Shares of the time of all domains:
// `idle_share` without work; `task_share` in tasks' functions and continuations, which put children into
// levels too; `scheduler_share` the rest. They are of runs that look at clocks, which are not timed. Beside
// them `flat_share`: how long the same problem takes a kernel by hand, over how long it takes here (Table
// 4-4's speed-up). Times with work divided by batches are Table 4-3's cycles a wavefront.
namespace {

nlohmann::json shares_of(const Bench& bench, const Problem& problem) {
  tasks::Options options = bench.options();
  options.time_tasks = true;
  const auto program = fork_join(bench.device, problem, options);
  for (int i = 0; i < 2; ++i) (void)timed(*program);  // the first warms up
  const tasks::Report& report = program->report();
  const auto share = [&](std::chrono::nanoseconds time) {
    return static_cast<double>(time.count()) / static_cast<double>(report.present.count());
  };
  return {{"idle_share", share(report.idle)},
          {"task_share", share(report.in_tasks)},
          {"scheduler_share", 1 - share(report.idle + report.in_tasks)},
          {"seconds_with_clocks", std::chrono::duration<double>(report.time).count()}};
}

}  // namespace

nlohmann::json take_overhead(const Bench& bench) {
  nlohmann::json cases = nlohmann::json::array();
  const auto fib = static_cast<std::uint32_t>(bench.sizes.fib);
  const auto queens = static_cast<std::uint32_t>(bench.sizes.queens);
  for (const Problem& problem : {Problem{Kind::kFib, fib}, Problem{Kind::kFibLeaves, fib},
                                 Problem{Kind::kQueens, queens}, Problem{Kind::kQueensBase, queens},
                                 Problem{Kind::kSort, static_cast<std::uint32_t>(bench.sizes.speedup_sort)},
                                 bench.strassen(bench.sizes.speedup_strassen)}) {
    const std::shared_ptr<Program> program = fork_join(bench.device, problem, bench.options());
    const std::string remark = problem.kind == Kind::kFibLeaves    ? ", no joins"
                               : problem.kind == Kind::kQueensBase ? ", 8 rows a task"
                                                                   : "";
    std::vector<Side> sides = {
        {"esker" + remark, [program] { return timed(*program); },
         [program] {
           const tasks::Report& report = program->report();
           const auto busy = static_cast<double>((report.present - report.idle).count());
           nlohmann::json facts = facts_of(report);
           facts["busy_ns_a_batch"] = busy / static_cast<double>(report.batches + report.resumed);
           facts["full_share"] =
               static_cast<double>(report.full_batches) / static_cast<double>(report.batches);
           return facts;
         }}};
    const bool has_flat = bench.is_on_gpu() && problem.kind != Kind::kSort && problem.kind != Kind::kStrassen;
    if (has_flat) {
      const Problem leaves{problem.kind == Kind::kFib ? Kind::kFibLeaves : problem.kind, problem.n};
      sides.push_back({"flat", [run = flat(bench.device, leaves)] { return timed(run); }});
    }
    cases.push_back(take_turns(name_of(problem), expected(problem),
                               static_cast<double>(tasks_of(bench, problem)), sides, bench.effort));
    nlohmann::json& facts = cases.back()["sides"][0];
    facts.update(shares_of(bench, problem));
    fmt::print("{:12} {:28} idle {:.1f} %, scheduler {:.1f} %, full batches {:.1f} %, {:.0f} ns a batch",
               name_of(problem), "esker" + remark, facts["idle_share"].get<double>() * 100,
               facts["scheduler_share"].get<double>() * 100, facts["full_share"].get<double>() * 100,
               facts["busy_ns_a_batch"].get<double>());
    if (has_flat) {
      const double share = median_of(cases.back(), "flat") / facts["median"].get<double>();
      facts["flat_share"] = share;
      fmt::print(", flat / esker {:.3f}", share);
    }
    fmt::print("\n");
  }
  return {{"cases", cases}};
}

}  // namespace esker::bench
