// esker-bench-tasks: figures of tasks on one device, with rivals in the same run. Sides are verified, and
// then take turns.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <esker/config.hpp>
#include <esker/device.hpp>

#include "../harness/figures.hpp"
#include "../harness/report.hpp"
#include "figures.hpp"

namespace {

using esker::bench::Bench;
using esker::bench::Sizes;

[[noreturn]] void usage(const std::string& message) {
  fmt::print(stderr, "esker-bench-tasks: {}\n", message);
  std::exit(2);
}

void check(const Sizes& sizes) {
  if (std::max(sizes.sort, sizes.speedup_sort) > 1u << 31) usage("words to sort are at most 2^31");
  if (std::max(sizes.strassen, sizes.speedup_strassen) > 32768) usage("matrices have at most 32768 rows");
  if (sizes.strassen_cutoff != 0 && (sizes.strassen_cutoff < 64 || sizes.strassen_cutoff > 32768))
    usage("--strassen-cutoff is 64 to 32768");
  if (sizes.sptrsv > 1u << 28) usage("--sptrsv is at most 2^28");
  if (sizes.mandelbrot > 32768) usage("--mandelbrot is at most 32768");
  for (const std::uint64_t fib : {sizes.fib, sizes.queue_fib, sizes.channel_fib, sizes.speedup_fib}) {
    if (fib < 2 || fib > esker::bench::kMostFib) usage("fib(n) has n from 2 to 60");
  }
  if (sizes.launch_fib < 2 || sizes.launch_fib > 23) usage("--launch-fib is 2 to 23: launches nest 24 deep");
  for (const std::uint64_t queens :
       {sizes.queens, sizes.queue_queens, sizes.channel_queens, sizes.speedup_queens}) {
    if (queens < 4 || queens > esker::bench::kMostQueens) usage("queens are 4 to 18");
  }
}

esker::Device open(esker::DeviceKind kind) {
  switch (kind) {
    case esker::DeviceKind::kCpu:
      return esker::Device::open("cpu");
    case esker::DeviceKind::kCuda:
      return esker::Device::open("cuda");
    case esker::DeviceKind::kHip:
      return esker::Device::open("hip");
    case esker::DeviceKind::kAuto:
      break;
  }
  return esker::Device::open();
}

}  // namespace

int main(int argc, char** argv) try {
  Sizes sizes;
  esker::bench::Effort effort;
  std::uint64_t threads = 2;
  std::string names = "fib,queens", json;
  esker::CommandLine line("esker-bench-tasks",
                          "Tasks without a cut-off on one device, beside rivals. Figures:" +
                              esker::bench::list_of(esker::bench::figures()));
  line.add("figure", &names, "which, with commas between them, or all")
      .add("fib", &sizes.fib, "which Fibonacci number; 0: 40 on a GPU, 35 on a CPU")
      .add("queens", &sizes.queens, "queens, and rows of the board; 0: 16 on a GPU, 13 on a CPU")
      .add("queue-fib", &sizes.queue_fib, "which by one queue in device memory")
      .add("queue-queens", &sizes.queue_queens, "how many by one queue in device memory")
      .add("launch-fib", &sizes.launch_fib, "which by dynamic parallelism")
      .add("channel-fib", &sizes.channel_fib, "which in Figures 4-15 and 4-16")
      .add("channel-queens", &sizes.channel_queens, "how many there")
      .add("speedup-fib", &sizes.speedup_fib,
           "which in Figure 4-13 and with little memory; 0: 38 on a GPU, 32 on a CPU")
      .add("speedup-queens", &sizes.speedup_queens, "how many there; 0: 16 on a GPU, 12 on a CPU")
      .add("speedup-sort", &sizes.speedup_sort, "words there; 0: 32 M on a GPU, 2 M on a CPU")
      .add("sort", &sizes.sort, "words to sort; 0: 100 M on a GPU, 10 M on a CPU")
      .add("strassen", &sizes.strassen, "rows of matrices to multiply; 0: 8192 on a GPU, 1024 on a CPU")
      .add("speedup-strassen", &sizes.speedup_strassen,
           "how many in Figure 4-13 and overhead; 0: 6144 on a GPU, 1024 on a CPU")
      .add("strassen-cutoff", &sizes.strassen_cutoff,
           "rows of blocks that are not divided; 0: 1024 on a GPU, 128 on a CPU")
      .add("mandelbrot", &sizes.mandelbrot, "pixels of a side; 0: 8192 on a GPU, 1024 on a CPU")
      .add("sptrsv", &sizes.sptrsv, "rows of the triangular systems; 0: 1 M on a GPU, 250 000 on a CPU")
      .add("stops", &sizes.stops, "runs that are ended early, of each kind")
      .add("threads", &threads, "of each side, on a CPU")
      .add("repeats", &effort.repeats, "runs of each side, in turn")
      .add("seconds", &effort.seconds, "of a side's runs: no more are started")
      .add("json", &json, "write one JSON object to this file; - is standard output");
  const esker::Config config = line.parse(argc, argv);
  if (threads == 0 || threads > 1024) usage("--threads is 1 to 1024");
  if (sizes.stops == 0) usage("--stops is at least 1");
  if (effort.repeats == 0 || effort.repeats > 10'000) usage("--repeats is 1 to 10000");
  const auto figures = esker::bench::figures_named(names, esker::bench::figures());
  nlohmann::json report = esker::bench::provenance("tasks");
  const esker::Device device = open(config.device);
  const bool is_on_gpu = device.backend() != esker::Backend::kCpu;
  const auto use = [](std::uint64_t& size, std::uint64_t otherwise) { size = size != 0 ? size : otherwise; };
  use(sizes.fib, is_on_gpu ? 40 : 35);
  use(sizes.queens, is_on_gpu ? 16 : 13);
  use(sizes.speedup_fib, is_on_gpu ? 38 : 32);
  use(sizes.speedup_queens, is_on_gpu ? 16 : 12);
  use(sizes.sort, is_on_gpu ? 100'000'000 : 10'000'000);
  use(sizes.speedup_sort, is_on_gpu ? 32'000'000 : 2'000'000);
  use(sizes.strassen, is_on_gpu ? 8192 : 1024);
  use(sizes.speedup_strassen, is_on_gpu ? 6144 : 1024);
  use(sizes.sptrsv, is_on_gpu ? 1'000'000 : 250'000);
  use(sizes.mandelbrot, is_on_gpu ? 8192 : 1024);
  check(sizes);
  const Bench bench{device, static_cast<std::uint32_t>(threads), sizes, effort};

  report["device"] = device.name();
  report["settings"] = {{"threads", threads}, {"repeats", effort.repeats}, {"seconds", effort.seconds}};
  return esker::bench::take_figures(figures, bench, report, json, "esker-bench-tasks");
} catch (const esker::UsageError& error) {
  usage(error.what());
} catch (const std::exception& error) {
  std::fprintf(stderr, "esker-bench-tasks: %s\n", error.what());
  return 1;
}
