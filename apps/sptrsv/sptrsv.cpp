// sptrsv: L x = b, of a sparse lower triangular L, by tasks: a row is spawned when the last unknown that it
// needs is known. There are no levels, and no barriers between them.
//
// Verified against forward substitution on the host, in the same order of operations: the results are the
// same bits. And by the backward error of each row, which no other solver has a part in.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include "../harness/application.hpp"
#include "../harness/failure.hpp"
#include "../tasks/application.hpp"
#include "solver.hpp"
#include "system.hpp"
#include "system_file.hpp"

namespace {

/// The graph's report in the words of one of tasks.
esker::tasks::Report report_of(const sptrsv::Solver& solver) {
  const esker::tasks::GraphReport& graph = solver.report();
  const auto& channel = graph.channels[0];
  esker::tasks::Report report;
  report.time = solver.time();
  report.domains = graph.domains;
  report.tasks = channel.elements;
  report.batches = channel.batches;
  report.full_batches = channel.full_batches;
  report.waits = graph.waits;
  report.peak_memory_bytes = graph.peak_memory_bytes;
  return report;
}

std::uint64_t rows_of(const std::string& size) {
  return size == "small" ? 10'000 : size == "medium" ? 250'000 : 1'000'000;
}

int run(int argc, char** argv) {
  task_apps::Options o;
  std::uint64_t rows = 0;
  std::string matrix, kind = "grid2";
  bool is_dominant = false;
  esker::CommandLine line("esker-sptrsv", "Solves a sparse lower triangular system, a task a row.");
  o.add_to(line);
  line.add("matrix", &matrix, "a Matrix Market file, of which the lower triangle is taken; else --kind")
      .add("kind", &kind, "the matrix that is generated", {"grid2", "grid3", "random", "chain"})
      .add("rows", &rows, "of it, about; 0: as --size says")
      .add("dominant", &is_dominant, "make the diagonal of --matrix larger than the rest of each row");
  const esker::Device device = o.parse(line, argc, argv);
  if (rows == 0) rows = rows_of(o.size);
  if (rows > 1u << 29) harness::usage("--rows is at most 2^29");
  const sptrsv::System system = matrix.empty() ? sptrsv::make_system(kind, rows, o.seed)
                                               : sptrsv::read_system(matrix, is_dominant, o.seed);
  const std::vector<double> expected = sptrsv::solve_serially(system);
  for (const double x : expected) {
    if (!std::isfinite(x)) harness::usage("the solution is not finite: --dominant mends the diagonal");
  }

  sptrsv::Solver solver(device, system, o.task_options());
  esker::tasks::Report report;
  double error = 0;
  const auto measured = task_apps::measure(
      o,
      [&] {
        solver.run();
        report = report_of(solver);
        if (!o.verify) return true;
        const std::vector<double> x = solver.solution();
        error = sptrsv::backward_error(system, x);
        return x == expected && error <= sptrsv::largest_error(system);
      },
      [&]() -> const auto& { return report; });
  return task_apps::finish(o, device, "sptrsv", measured, system.rows(), "rows",
                           {{"matrix", matrix.empty() ? kind : matrix},
                            {"rows", system.rows()},
                            {"entries", system.entries()},
                            {"levels", sptrsv::levels_of(system)},
                            {"backward_error", error},
                            {"channel", solver.report().text()}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-sptrsv", argc, argv, run); }
