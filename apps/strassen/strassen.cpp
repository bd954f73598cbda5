// strassen: a product of two square matrices of floats by Strassen's method (thesis, 4.5.1), in tasks that a
// whole wave runs.
//
// Verified by Freivalds' check with random vectors in double precision, and up to 512 rows against a plain
// multiplication; matrices.hpp says how far they may differ. --values units has no error of rounding: there
// they must be equal.
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include "../harness/application.hpp"
#include "../harness/failure.hpp"
#include "../tasks/application.hpp"
#include "multiplier.hpp"

namespace {

int run(int argc, char** argv) {
  task_apps::Options o;
  std::uint64_t n = 0, cutoff = 0;
  std::string values = "reals";
  esker::CommandLine line("esker-strassen", "Multiplies two square matrices of floats by Strassen's method.");
  o.add_to(line);
  line.add("n", &n, "rows of a matrix; 0: as --size says")
      .add("cutoff", &cutoff, "rows of blocks that are not divided, at most; 0: 1024 on a GPU, 128 on a CPU")
      .add("values", &values, "what the elements are: -1 to 1, or -1, 0 and 1", {"reals", "units"});
  const esker::Device device = o.parse(line, argc, argv);
  if (n == 0) n = o.size == "small" ? 512 : o.size == "medium" ? 2048 : 8192;
  if (cutoff == 0) cutoff = strassen::best_cutoff(device);
  if (n > 65536) harness::usage("--n is at most 65536");
  if (cutoff < strassen::kTile || cutoff > 65536) harness::usage("--cutoff is 64 to 65536");
  const auto rows = static_cast<std::uint32_t>(n);

  const strassen::Operands operands(device, rows, static_cast<std::uint32_t>(cutoff));
  strassen::Multiplier multiplier(operands, o.task_options());
  const strassen::Plan& plan = operands.host_plan();
  const auto a = strassen::Matrix::random(rows, plan.side, values, o.seed);
  const auto b = strassen::Matrix::random(rows, plan.side, values, o.seed + 1);
  strassen::Matrix c{rows, plan.side, std::vector<float>(a.elements.size())};
  std::optional<strassen::Expected> expected;
  if (o.verify) expected.emplace(a, b, values, operands.tolerance(), o.seed);
  operands.put(a, b);
  std::fprintf(o.json == "-" ? stderr : stdout,
               "strassen: %u levels of seven products, %zu bytes for sums and products in one arena\n",
               plan.levels, operands.arena_bytes());
  const auto measured = task_apps::measure(
      o,
      [&] {
        operands.forget();
        multiplier.run();
        if (!o.verify) return true;
        operands.get(c);
        return expected->is(c);
      },
      [&]() -> const auto& { return multiplier.report(); });
  const double work = 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
  nlohmann::json facts = {{"n", n},
                          {"cutoff", cutoff},
                          {"values", values},
                          {"levels", plan.levels},
                          {"side", plan.side},
                          {"arena_bytes", operands.arena_bytes()},
                          {"device_bytes", operands.device_bytes()}};
  if (expected) {
    facts["largest_error"] = expected->largest_error();
    facts["tolerance"] = expected->tolerance();
    facts["worst_error"] = operands.tolerance().worst_error();
  }
  return task_apps::finish(o, device, "strassen", measured, work, "FLOP", facts);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-strassen", argc, argv, run); }
