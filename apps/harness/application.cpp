#include "application.hpp"

#include <cstdio>
#include <exception>

#include <fmt/format.h>

namespace harness {

void Options::add_to(esker::CommandLine& line) {
  line.add("style", &style, "how messages travel", styles::names())
      .add("size", &size, "of the generated input: seconds on two cores, a minute, the thesis's",
           {"small", "medium", "paper"})
      .add("seed", &seed, "of what is generated")
      .add("repeats", &repeats, "timed runs; the median counts")
      .add("verify", &verify, "compare with a serial reference")
      .add("json", &json, "write one JSON object to this file; - is standard output");
}

void usage(const std::string& message) { throw esker::UsageError(message); }

int main_of(const char* program, int argc, char** argv, const std::function<int(int, char**)>& run) {
  const auto tell = [&](const std::exception& error) {
    std::fputs(fmt::format("{}: {}\n", program, error.what()).c_str(), stderr);
  };
  try {
    const int status = run(argc, argv);
    styles::finish();  // not after an exception: MPI would wait for PEs that have none
    return status;
  } catch (const esker::UsageError& error) {
    tell(error);
    return 2;
  } catch (const std::exception& error) {
    tell(error);
    return 1;
  }
}

Measured measure(esker::Runtime& rt, styles::Superstep& superstep, const Options& options,
                 const std::function<void()>& prepare, const std::function<void()>& body,
                 const std::function<std::uint64_t()>& count_wrong) {
  Measured measured;
  for (std::uint64_t i = 0; i < options.repeats; ++i) {
    prepare();
    const Traffic before = superstep.traffic();
    rt.barrier_all();
    const Stopwatch stopwatch;
    body();
    rt.barrier_all();
    measured.seconds.push_back(stopwatch.seconds());
    measured.traffic = superstep.traffic() - before;
    if (!options.verify) continue;
    std::uint64_t wrong[1] = {count_wrong()};
    rt.all_reduce(std::span<std::uint64_t>(wrong), esker::Reduction::kSum);
    measured.verified = measured.verified && wrong[0] == 0;
    if (wrong[0] != 0 && rt.pe() == 0)
      std::fputs(fmt::format("{} results are wrong\n", wrong[0]).c_str(), stderr);
  }
  return measured;
}

int finish(esker::Runtime& rt, const Options& options, const std::string& app, const Measured& measured,
           double work, const std::string& work_unit, nlohmann::json more) {
  more["size"] = options.size;
  more["seed"] = options.seed;
  more["repeats"] = options.repeats;
  more["memory"] = to_json(memory_of_pes(rt, measured.input_bytes));
  write_report(rt,
               {app, options.style, spread_of(measured.seconds), work, work_unit, options.verify,
                measured.verified, measured.traffic, measured.accesses},
               options.json, more);
  return measured.verified ? 0 : 1;
}

}  // namespace harness
