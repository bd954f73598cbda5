// esker-bench-tasks: tasks without a cut-off on the host's cores, beside oneTBB. Both sides take turns in one
// run.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <esker/command_line.hpp>
#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include "../harness/report.hpp"
#include "problems.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Side {
  std::string name;
  std::function<std::uint64_t()> run;
  std::vector<double> seconds;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Case {
  std::string name;
  double tasks;  // of Esker's form of the problem
  std::vector<Side> sides;
};

}  // namespace

int main(int argc, char** argv) try {
  std::uint64_t fib = 35, queens = 13, threads = 2, repeats = 7;
  std::string json;
  esker::CommandLine line("esker-bench-tasks",
                          "Tasks on the host's cores beside oneTBB: fib and queens, a task a call.");
  line.add("fib", &fib, "which Fibonacci number")
      .add("queens", &queens, "queens, and rows of the board")
      .add("threads", &threads, "of each side")
      .add("repeats", &repeats, "runs of each side, in turn")
      .add("json", &json, "write one JSON object to this file; - is standard output");
  (void)line.parse(argc, argv);
  if (fib > 60 || queens == 0 || queens > 18 || threads == 0 || threads > 1024 || repeats == 0) {
    std::fprintf(stderr,
                 "esker-bench-tasks: --fib is at most 60, --queens 1 to 18, --threads 1 to 1024, --repeats "
                 "at least 1\n");
    return 2;
  }
  nlohmann::json report = esker::bench::provenance("tasks");

  esker::tasks::Options options;
  options.domains = static_cast<std::uint32_t>(threads);
  const esker::Device device = esker::Device::open("cpu");
  esker::tasks::ForkJoin<esker::bench::Fib> our_fib(device, options);
  esker::tasks::ForkJoin<esker::bench::Queens> our_queens(device, options);
  esker::bench::tbb_side::use_threads(static_cast<unsigned>(threads));
  const auto all = static_cast<std::uint32_t>((std::uint64_t{1} << queens) - 1);

  std::vector<Case> cases;
  cases.push_back(
      {fmt::format("fib({})", fib),
       0,
       {{"esker", [&] { return static_cast<std::uint64_t>(our_fib.run({static_cast<int>(fib)})); }, {}},
        {"oneTBB",
         [&] { return static_cast<std::uint64_t>(esker::bench::tbb_side::fib(static_cast<int>(fib))); },
         {}}}});
  cases.push_back(
      {fmt::format("queens({})", queens),
       0,
       {{"esker",
         [&] {
           our_queens.run({0, 0, 0, all, all});
           return our_queens.report().sum;
         },
         {}},
        {"oneTBB", [&] { return esker::bench::tbb_side::queens(static_cast<std::uint32_t>(queens)); }, {}}}});

  for (Case& one : cases) {
    // A warm-up of both, which must agree.
    const std::uint64_t found = one.sides[0].run(), theirs = one.sides[1].run();
    if (found != theirs) {
      std::fprintf(stderr, "esker-bench-tasks: %s is %llu and %llu\n", one.name.c_str(),
                   static_cast<unsigned long long>(found), static_cast<unsigned long long>(theirs));
      return 1;
    }
    one.tasks = static_cast<double>(one.name[0] == 'f' ? our_fib.report().tasks : our_queens.report().tasks);
    for (std::uint64_t i = 0; i < repeats; ++i) {
      for (std::size_t s = 0; s < one.sides.size(); ++s) {
        Side& side = one.sides[(s + i) % one.sides.size()];
        const auto start = Clock::now();
        (void)side.run();
        side.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      }
    }
    for (const Side& side : one.sides) {
      const auto [least, most] = std::minmax_element(side.seconds.begin(), side.seconds.end());
      fmt::print("{:12} {:8} {:9.4f} s ({:.4f} to {:.4f}), {:8.2f} M tasks/s\n", one.name, side.name,
                 median(side.seconds), *least, *most, one.tasks / median(side.seconds) / 1e6);
    }
    const double ratio = median(one.sides[1].seconds) / median(one.sides[0].seconds);
    fmt::print("{:12} esker / oneTBB {:.2f}\n", one.name, ratio);
    report["results"].push_back({{"problem", one.name},
                                 {"result", found},
                                 {"tasks", one.tasks},
                                 {"esker_seconds", one.sides[0].seconds},
                                 {"onetbb_seconds", one.sides[1].seconds},
                                 {"esker_over_onetbb", ratio}});
  }
  report["settings"] = {{"threads", threads}, {"repeats", repeats}};
  if (!json.empty()) esker::bench::write_json(report, json);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "esker-bench-tasks: %s\n", error.what());
  return 1;
}
