// fib: the naive Fibonacci number, a task a call (thesis, 4.2 and 4.3). With joins each call waits for its
// two children and adds what they give (Figure 4-6); without, leaves are counted (Figure 4-5).
//
// Verified against the closed recurrence: fib(n), and 2 fib(n + 1) - 1 calls.
#include <esker/tasks.hpp>

#include "../harness/application.hpp"
#include "../harness/failure.hpp"
#include "../tasks/application.hpp"
#include "fib_task.hpp"

namespace {

using fibonacci::Fib;
using fibonacci::FibLeaves;

std::uint64_t fib(std::uint64_t n) {
  std::uint64_t a = 0, b = 1;
  for (std::uint64_t i = 0; i < n; ++i) {
    b += a;
    a = b - a;
  }
  return a;
}

int run(int argc, char** argv) {
  task_apps::Options o;
  std::uint64_t n = 0;
  std::string form = "joins";
  esker::CommandLine line("esker-fib", "Computes a Fibonacci number the naive way, a task a call.");
  o.add_to(line);
  line.add("n", &n, "which number; 0: as --size says")
      .add("form", &form, "whether calls wait for the calls that they make", {"joins", "leaves"});
  const esker::Device device = o.parse(line, argc, argv);
  if (n > 80) harness::usage("--n is at most 80");
  if (n == 0) n = o.size == "small" ? 27 : o.size == "medium" ? 35 : 40;
  const double calls = 2.0 * static_cast<double>(fib(n + 1)) - 1;
  const auto expected = fib(n);
  const nlohmann::json more = {{"n", n}, {"form", form}, {"fib", expected}};
  if (form == "joins") {
    esker::tasks::ForkJoin<Fib> tasks(device, o.task_options());
    const auto measured = task_apps::measure(
        o, [&] { return static_cast<std::uint64_t>(tasks.run(Fib{static_cast<int>(n)})) == expected; },
        [&]() -> const auto& { return tasks.report(); });
    return task_apps::finish(o, device, "fib", measured, calls, "calls", more);
  }
  esker::tasks::ForkJoin<FibLeaves> tasks(device, o.task_options());
  const auto measured = task_apps::measure(
      o,
      [&] {
        tasks.run(FibLeaves{static_cast<int>(n)});
        return tasks.report().sum == expected;
      },
      [&]() -> const auto& { return tasks.report(); });
  return task_apps::finish(o, device, "fib", measured, calls, "calls", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-fib", argc, argv, run); }
