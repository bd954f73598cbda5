// What programs that run pipelines have in common: options, repeats, the report, the exit status.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <esker/config.hpp>
#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "../harness/failure.hpp"
#include "../harness/json.hpp"
#include "../harness/output.hpp"

namespace pipe_apps {

/// How frames get to the device and back.
enum class Scheme : std::uint8_t {
  kEsker,           // the pipeline
  kCopyKernelCopy,  // one stream, which is waited for after each frame
  kStreams,         // the same on several streams
  kChunks,          // several streams, many frames a launch (Hetero-Mark)
  kGraph,           // a graph of launches and copies
  kManaged,         // kernels on managed memory
};
/// As --scheme takes it.
const char* to_string(Scheme scheme);

/// Options that every one of them takes. What an application sets before add_to() is its default.
struct Options {
  std::string size = "small";
  std::uint64_t seed = 1;
  std::uint64_t repeats = 3;
  bool verify = true;
  std::string json;
  std::shared_ptr<harness::OutputFile> json_file;  // from parse() on; null: none
  std::string trace;                               // a file for the last run's; "": none
  std::uint64_t frame_bytes = 64 << 10;
  std::uint64_t frames = 64;  // of a topic
  std::uint64_t streams = 4;  // of the schemes that have several
  std::uint64_t workers = 1;  // threads of each stage on the host
  std::uint64_t hang_seconds = 0;
  std::uint32_t group_lanes = 256;  // of a team of the GPU
  Scheme scheme = Scheme::kEsker;
  esker::pipeline::Crossing crossing = esker::pipeline::Crossing::kAuto;

  void add_to(esker::CommandLine& line);
  /// The device that --device names: opened.
  esker::Device parse(esker::CommandLine& line, int argc, char** argv);
  /// Of --size's three values.
  std::uint64_t by_size(std::uint64_t small, std::uint64_t medium, std::uint64_t paper) const;
  /// Throws esker::UsageError unless --scheme is one of these.
  void require_scheme(const std::vector<Scheme>& supported) const;
  esker::pipeline::Options pipeline_options() const;
  /// Of a topic with --frames frames of --frame-bytes.
  esker::pipeline::TopicOptions topic_options(const std::string& name) const;

 private:
  std::string scheme_name_, crossing_name_;
};

/// What a program has measured.
struct Measured {
  std::vector<double> seconds;
  bool verified = true;
};

/// One run that is not timed, then `repeats` that are. `run` returns its seconds. `is_right` says whether the
/// last run's result is right; it is called after each run, and never with --verify off.
Measured measure(const Options& options, const std::function<double()>& run,
                 const std::function<bool()>& is_right);

/// What a run has done.
struct Work {
  double amount;
  std::string unit;  // "bytes", "rows", "pixels", ...
  double bytes;      // that went to the device and back: the larger of the two, for GB/s each way
};

/// The line, the JSON object with `more`, and the exit status. A pipeline's report goes into `more`, as its
/// member "pipeline".
int finish(const Options& options, const esker::Device& device, const std::string& app,
           const Measured& measured, const Work& work, nlohmann::json more);

}  // namespace pipe_apps
