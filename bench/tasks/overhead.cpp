// Tables 4-3 to 4-5: how large tasks are, and what the scheduler takes.
#include <fmt/format.h>

#include "figures.hpp"

namespace esker::bench {

// The thesis's Table 4-5 has the share of time in which processors wait for the aggregator. Domains have
// none, and wait for each other: `idle_share` is their time without work over all their time. What the
// scheduler takes of the time with work is in `flat_share`: how long the same problem takes a kernel by hand,
// over how long it takes here (Table 4-4's speed-up). Times with work divided by batches are Table 4-3's
// cycles a wavefront.
nlohmann::json take_overhead(const Bench& bench) {
  nlohmann::json cases = nlohmann::json::array();
  const auto fib = static_cast<std::uint32_t>(bench.sizes.fib);
  const auto queens = static_cast<std::uint32_t>(bench.sizes.queens);
  for (const Problem& problem :
       {Problem{Kind::kFib, fib}, Problem{Kind::kFibLeaves, fib}, Problem{Kind::kQueens, queens}}) {
    const std::shared_ptr<Program> program = fork_join(bench.device, problem, bench.options());
    const std::string remark = problem.kind == Kind::kFibLeaves ? ", no joins" : "";
    std::vector<Side> sides = {
        {"esker" + remark, [program] { return timed([&] { return program->run(); }); },
         [program] {
           const tasks::Report& report = program->report();
           const auto busy = static_cast<double>((report.present - report.idle).count());
           const auto present = static_cast<double>(report.present.count());
           nlohmann::json facts = facts_of(report);
           facts["idle_share"] = 1 - busy / present;
           facts["busy_ns_a_batch"] = busy / static_cast<double>(report.batches + report.resumed);
           facts["full_share"] =
               static_cast<double>(report.full_batches) / static_cast<double>(report.batches);
           return facts;
         }}};
    if (bench.is_on_gpu()) {
      const Problem leaves{problem.kind == Kind::kFib ? Kind::kFibLeaves : problem.kind, problem.n};
      sides.push_back({"flat", [run = flat(bench.device, leaves)] { return timed(run); }});
    }
    cases.push_back(take_turns(name_of(problem), expected(problem),
                               static_cast<double>(tasks_of(bench, problem)), sides, bench.effort));
    nlohmann::json& facts = cases.back()["sides"][0];
    fmt::print("{:12} {:28} idle {:.1f} %, full batches {:.1f} %, {:.0f} ns a batch", name_of(problem),
               "esker" + remark, facts["idle_share"].get<double>() * 100,
               facts["full_share"].get<double>() * 100, facts["busy_ns_a_batch"].get<double>());
    if (bench.is_on_gpu()) {
      const double share = median_of(cases.back(), "flat") / facts["median"].get<double>();
      facts["flat_share"] = share;
      fmt::print(", flat / esker {:.3f}", share);
    }
    fmt::print("\n");
  }
  return {{"cases", cases}};
}

}  // namespace esker::bench
