// What the mains of applications have in common: options, repeats, the report, the exit status.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <esker/config.hpp>
#include <esker/esker.hpp>

#include "../styles/superstep.hpp"
#include "failure.hpp"
#include "json.hpp"
#include "output.hpp"
#include "report.hpp"

namespace harness {

/// Options that every application takes.
struct Options {
  std::string style = "gravel";
  std::string size = "small";
  std::uint64_t seed = 1;
  std::uint64_t repeats = 1;
  bool verify = true;
  std::string json;
  std::string output;
  // What PE 0 writes, from open() on; null where it is not asked for, and on other PEs.
  std::unique_ptr<OutputFile> json_file, output_file;

  /// To size's alternatives an application's own options are defaults.
  void add_to(esker::CommandLine& line);
  /// For applications that write what they have found. `what` is one line of it: "a vertex and its rank".
  void add_output_to(esker::CommandLine& line, const std::string& what);
  /// CommandLine::parse(), and checks what add_to() has added. Throws esker::UsageError.
  esker::Config parse(esker::CommandLine& line, int argc, char** argv);
  /// Collective, before any work: a file that cannot be written is an error on every PE.
  void open(esker::Runtime& rt);
  /// Collective. write_in_order() to --output, if it was given.
  void write_output(
      esker::Runtime& rt, std::uint64_t count, const std::function<std::uint64_t(std::uint64_t i)>& word_of,
      const std::function<void(std::string& text, std::uint64_t i, std::uint64_t word)>& line) const;

  styles::Style chosen_style() const { return styles::style_of(style); }
  /// For applications whose handlers and requests travel in no other style. Throws esker::UsageError.
  void require_gravel() const;
};

/// The body of main(): calls `run` and turns what it throws into a line and an exit status: 2 after a
/// UsageError, else 1.
int main_of(const char* program, int argc, char** argv, const std::function<int(int, char**)>& run);

/// What a program has measured.
struct Measured {
  std::vector<double> seconds;    // a repeat
  Traffic traffic;                // of the last repeat
  std::uint64_t accesses = 0;     // of other PEs' memory and one's own, in that repeat; 0: each call sends
  bool verified = true;           // every repeat
  std::uint64_t input_bytes = 0;  // of the input, that this PE has had in arrays beside the heap
};

/// Seconds since it was made.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Collective. Repeats: `prepare`, then `body` between barriers, timed, then, where verification is on,
/// `count_wrong`, which returns what is wrong on this PE.
Measured measure(esker::Runtime& rt, styles::Superstep& superstep, const Options& options,
                 const std::function<void()>& prepare, const std::function<void()>& body,
                 const std::function<std::uint64_t()>& count_wrong);

/// Collective. The line, the JSON object with `more`, and the exit status. `work` in `work_unit`s.
int finish(esker::Runtime& rt, const Options& options, const std::string& app, const Measured& measured,
           double work, const std::string& work_unit, nlohmann::json more);

}  // namespace harness
