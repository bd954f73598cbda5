#include "application.hpp"

#include <cstdio>
#include <exception>
#include <memory>

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

void Options::add_output_to(esker::CommandLine& line, const std::string& what) {
  line.add("output", &output, "write text to this file, a line for " + what + "; - is standard output");
}

esker::Config Options::parse(esker::CommandLine& line, int argc, char** argv) {
  esker::Config config = line.parse(argc, argv);
  require_within("repeats", repeats, 1, 20);
  if (!json.empty() && json == output) usage("--json and --output name one file, " + json);
  return config;
}

void Options::require_gravel() const {
  if (chosen_style() != styles::Style::kGravel)
    usage("--style " + style + ": this program has no style but gravel");
}

void Options::open(esker::Runtime& rt) {
  agree(rt, [&] {
    if (rt.pe() != 0) return;
    if (!json.empty()) json_file = std::make_unique<OutputFile>(json);
    if (!output.empty()) output_file = std::make_unique<OutputFile>(output);
  });
}

void Options::write_output(
    esker::Runtime& rt, std::uint64_t count, const std::function<std::uint64_t(std::uint64_t)>& word_of,
    const std::function<void(std::string&, std::uint64_t, std::uint64_t)>& line) const {
  if (!output.empty()) write_in_order(rt, output_file.get(), count, word_of, line);
}

int main_of(const char* program, int argc, char** argv, const std::function<int(int, char**)>& run) {
  name_program(program);
  try {
    const int status = run(argc, argv);
    styles::finish();  // not after an exception of this PE alone: MPI would wait for PEs that have none
    return status;
  } catch (const Agreed& agreed) {
    styles::finish();
    return agreed.status();
  } catch (...) {
    const Ending ending = ending_of(std::current_exception());
    tell(ending.message);
    return ending.status;
  }
}

Measured measure(esker::Runtime& rt, styles::Superstep& superstep, const Options& options,
                 const std::function<void()>& prepare, const std::function<void()>& body,
                 const std::function<std::uint64_t()>& count_wrong) {
  Measured measured;
  for (std::uint64_t i = 0; i < options.repeats; ++i) {
    doing("running", "smaller sizes, or more PEs");
    prepare();
    const Traffic before = superstep.traffic();
    rt.barrier_all();
    const Stopwatch stopwatch;
    body();
    rt.barrier_all();
    measured.seconds.push_back(stopwatch.seconds());
    measured.traffic = superstep.traffic() - before;
    if (!options.verify) continue;
    doing("comparing with a serial reference, which each PE may hold whole", "--verify off");
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
               options.json_file.get(), options.json == "-" || options.output == "-", more);
  return measured.verified ? 0 : 1;
}

}  // namespace harness
