// Options, repeats, the report and the exit status of programs that run pipelines.
#include "application.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <esker/config.hpp>

namespace pipe_apps {

namespace {

constexpr Scheme kSchemes[] = {Scheme::kEsker,  Scheme::kCopyKernelCopy, Scheme::kStreams,
                               Scheme::kChunks, Scheme::kGraph,          Scheme::kManaged};
using esker::pipeline::Crossing;
constexpr Crossing kCrossings[] = {Crossing::kAuto, Crossing::kDirect, Crossing::kBatched,
                                   Crossing::kManaged};

}  // namespace

const char* to_string(Scheme scheme) {
  switch (scheme) {
    case Scheme::kEsker:
      return "esker";
    case Scheme::kCopyKernelCopy:
      return "copy-kernel-copy";
    case Scheme::kStreams:
      return "streams";
    case Scheme::kChunks:
      return "chunks";
    case Scheme::kGraph:
      return "graph";
    case Scheme::kManaged:
      return "managed";
  }
  return "?";
}

void Options::add_to(esker::CommandLine& line) {
  std::vector<std::string> schemes;
  for (const Scheme s : kSchemes) schemes.emplace_back(to_string(s));
  scheme_name_ = to_string(scheme);
  std::vector<std::string> crossings;
  for (const Crossing c : kCrossings) crossings.emplace_back(esker::pipeline::to_string(c));
  crossing_name_ = esker::pipeline::to_string(crossing);
  line.add("size", &size, "how much work", {"small", "medium", "paper"})
      .add("scheme", &scheme_name_, "how frames get to the device and back", schemes)
      .add("seed", &seed, "of whatever is random")
      .add("repeats", &repeats, "runs that are timed")
      .add("verify", &verify, "check the result")
      .add("json", &json, "write one JSON object to this file; - is standard output")
      .add("frame-bytes", &frame_bytes, "size of a frame")
      .add("frames", &frames, "frames that a topic holds")
      .add("crossing", &crossing_name_, "of a pipeline's frames between host and device", crossings)
      .add("streams", &streams, "of the schemes that have several")
      .add("workers", &workers, "threads of each stage on the host");
}

esker::Device Options::parse(esker::CommandLine& line, int argc, char** argv) {
  const esker::Config config = line.parse(argc, argv);
  for (const Scheme s : kSchemes) {
    if (scheme_name_ == to_string(s)) scheme = s;
  }
  for (const Crossing c : kCrossings) {
    if (crossing_name_ == esker::pipeline::to_string(c)) crossing = c;
  }
  const auto within = [](const char* name, std::uint64_t value, std::uint64_t most) {
    if (value == 0 || value > most)
      harness::usage("--" + std::string(name) + " is 1 to " + std::to_string(most) + ", not " +
                     std::to_string(value));
  };
  within("repeats", repeats, 1'000'000);
  within("frame-bytes", frame_bytes, 1 << 30);
  within("frames", frames, 1 << 20);
  within("streams", streams, 256);
  within("workers", workers, 256);
  trace = config.trace;
  if (!trace.empty() && scheme != Scheme::kEsker)
    harness::usage("--trace is for --scheme esker: the others have no pipeline");
  if (!json.empty()) json_file = std::make_shared<harness::OutputFile>(json);  // refused before any work
  hang_seconds = config.hang_seconds;
  group_lanes = config.group_lanes;
  switch (config.device) {
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

std::uint64_t Options::by_size(std::uint64_t small, std::uint64_t medium, std::uint64_t paper) const {
  return size == "small" ? small : size == "medium" ? medium : paper;
}

void Options::require_scheme(const std::vector<Scheme>& supported) const {
  if (std::find(supported.begin(), supported.end(), scheme) != supported.end()) return;
  std::string names;
  for (const Scheme s : supported) names += (names.empty() ? "" : ", ") + std::string(to_string(s));
  const char* why =
      scheme == Scheme::kGraph
          ? ", since esker::Device has no graphs of launches and copies (programs have them on CUDA)"
          : "";
  harness::usage("--scheme " + std::string(to_string(scheme)) + " is not there" + why + ": take one of " +
                 names);
}

esker::pipeline::Options Options::pipeline_options() const {
  esker::pipeline::Options options;
  options.group_lanes = group_lanes;
  options.hang_after = std::chrono::seconds{hang_seconds};
  options.trace = trace;
  return options;
}

esker::pipeline::TopicOptions Options::topic_options(const std::string& name) const {
  esker::pipeline::TopicOptions options;
  options.name = name;
  options.frame_bytes = frame_bytes;
  options.frames = static_cast<std::uint32_t>(frames);
  options.crossing = crossing;
  return options;
}

Measured measure(const Options& options, const std::function<double()>& run,
                 const std::function<bool()>& is_right) {
  Measured measured;
  for (std::uint64_t i = 0; i <= options.repeats; ++i) {
    const double seconds = run();
    if (i != 0) measured.seconds.push_back(seconds);
    if (options.verify) measured.verified = is_right() && measured.verified;
  }
  return measured;
}

int finish(const Options& options, const esker::Device& device, const std::string& app,
           const Measured& measured, const Work& work, nlohmann::json more) {
  std::vector<double> sorted = measured.seconds;
  std::sort(sorted.begin(), sorted.end());
  const double seconds = sorted[sorted.size() / 2];
  const bool right = !options.verify || measured.verified;
  std::FILE* const screen = options.json == "-" ? stderr : stdout;
  std::fprintf(screen, "%s on %s by %s: %.6f s, %.4g M %s/s, %.4g GB/s each way%s\n", app.c_str(),
               device.name().c_str(), to_string(options.scheme), seconds, work.amount / seconds / 1e6,
               work.unit.c_str(), work.bytes / seconds / 1e9,
               !options.verify ? ""
               : right         ? ", verified"
                               : ", WRONG");
  if (options.json_file != nullptr) {
    nlohmann::json object = {{"app", app},
                             {"backend", esker::to_string(device.backend())},
                             {"device", device.name()},
                             {"scheme", to_string(options.scheme)},
                             {"seconds", seconds},
                             {"seconds_min", sorted.front()},
                             {"seconds_max", sorted.back()},
                             {"work", work.amount},
                             {"work_unit", work.unit},
                             {"rate_per_s", work.amount / seconds},
                             {"bytes", work.bytes},
                             {"gb_per_s", work.bytes / seconds / 1e9},
                             {"version", esker::build_info().version + " " + esker::build_info().commit}};
    object["verified"] = options.verify ? nlohmann::json(right) : nlohmann::json(nullptr);
    object["config"] = {{"size", options.size},
                        {"scheme", to_string(options.scheme)},
                        {"frame_bytes", options.frame_bytes},
                        {"frames", options.frames},
                        {"crossing", esker::pipeline::to_string(options.crossing)},
                        {"group_lanes", options.group_lanes},
                        {"streams", options.streams},
                        {"workers", options.workers},
                        {"repeats", options.repeats},
                        {"seed", options.seed}};
    object.update(more);
    options.json_file->write(harness::json_text(object));
    options.json_file->close();
  }
  harness::flush_standard_output();
  return right ? 0 : 1;
}

}  // namespace pipe_apps
