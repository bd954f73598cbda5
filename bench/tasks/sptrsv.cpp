// Triangular systems, beside cuSPARSE and forward substitution by one thread. Right sides and matrices are in
// their places before the clock starts; solutions are looked at after it has stopped.
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "../../apps/sptrsv/solver.hpp"
#include "figures.hpp"
#include "solves.hpp"

namespace esker::bench {
namespace {

using sptrsv::System;
using SystemPointer = std::shared_ptr<const System>;

/// 1: it is a solution, whoever has computed it.
std::uint64_t check(const System& system, const std::vector<double>& x) {
  return sptrsv::backward_error(system, x) <= sptrsv::largest_error(system) ? 1 : 0;
}

Side esker_side(const Bench& bench, const SystemPointer& system) {
  const auto start = std::chrono::steady_clock::now();
  const auto solver = std::make_shared<sptrsv::Solver>(bench.device, *system, bench.options());
  const double made = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return {"esker",
          [=] {
            Outcome outcome = timed([&] {
              solver->run();
              return 0;
            });
            outcome.result = check(*system, solver->solution());
            return outcome;
          },
          [=]() -> nlohmann::json {
            const tasks::GraphReport& report = solver->report();
            return {{"analysis_seconds", made},
                    {"domains", report.domains},
                    {"batches", report.channels[0].batches},
                    {"full_batches", report.channels[0].full_batches},
                    {"shared", report.channels[0].shared},
                    {"waits", report.waits}};
          }};
}

Side serial_side(const SystemPointer& system) {
  return {"one thread", [=] {
            std::vector<double> x;
            Outcome outcome = timed([&] {
              x = sptrsv::solve_serially(*system);
              return 0;
            });
            outcome.result = check(*system, x);
            return outcome;
          }};
}

#if defined(ESKER_BENCH_CUSPARSE)
Side cusparse_side(const SystemPointer& system) {
  const auto solver = std::make_shared<CusparseSolver>(*system);
  return {"cuSPARSE",
          [=] {
            Outcome outcome = timed([&] {
              solver->solve();
              return 0;
            });
            outcome.result = check(*system, solver->solution());
            return outcome;
          },
          [=]() -> nlohmann::json {
            return {{"analysis_seconds", solver->analysis_seconds()}};
          }};
}
#endif

nlohmann::json take_one(const Bench& bench, const std::string& kind, std::uint64_t rows) {
  const SystemPointer system = std::make_shared<System>(sptrsv::make_system(kind, rows, 1));
  const std::uint32_t levels = sptrsv::levels_of(*system);
  std::vector<Side> sides = {esker_side(bench, system)};
#if defined(ESKER_BENCH_CUSPARSE)
  if (bench.is_on_gpu()) sides.push_back(cusparse_side(system));
#endif
  sides.push_back(serial_side(system));
  nlohmann::json turns =
      take_turns(fmt::format("{}, {} levels", kind, levels), 1, system->rows(), sides, bench.effort, "rows");
  turns.update({{"kind", kind}, {"levels", levels}, {"entries", system->entries()}});
  for (const auto& side : turns["sides"]) {
    if (side.contains("analysis_seconds"))
      fmt::print("{:12} {:28} {:10.6f} s of analysis, once a matrix\n", "", side["name"].get<std::string>(),
                 side["analysis_seconds"].get<double>());
  }
  add_ratios(turns);
  return turns;
}

}  // namespace

nlohmann::json take_sptrsv(const Bench& bench) {
  const std::uint64_t rows = bench.sizes.sptrsv;
  nlohmann::json cases;
  for (const char* const kind : {"grid2", "grid3", "random"}) cases.push_back(take_one(bench, kind, rows));
  // As many levels as rows.
  cases.push_back(take_one(bench, "chain", std::max<std::uint64_t>(1, rows / 50)));
  return {{"cases", cases}};
}

}  // namespace esker::bench
