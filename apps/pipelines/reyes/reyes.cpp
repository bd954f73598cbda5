// pipe-reyes: draws teapots as Reyes does (Cook, Carpenter and Catmull, 1987; HiWayLib, figure 1): the host
// makes bicubic patches, the device splits them until they are small, a stage that feeds itself, then dices
// and shades them and draws micropolygons into a depth buffer. --png writes the picture.
//
// Verified by a serial renderer. Which patches are drawn is the same on all processors; their points, which a
// GPU may round in another way, are not: one pixel in 500 may differ, and their number is in the report.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "../../harness/application.hpp"
#include "../../pictures/png.hpp"
#include "../application.hpp"
#include "by_levels.hpp"
#include "device_stages.hpp"
#include "serial.hpp"
#include "teapots.hpp"

namespace {

using pipe_apps::Scheme;
using reyes::Patch;
using reyes::Sample;

class Renderer {
 public:
  Renderer(const esker::Device& device, const pipe_apps::Options& options, const reyes::Table& table)
      : device_{device},
        options_{options},
        table_{table},
        pixels_{device.memory<reyes::Pixel>(std::size_t{table.screen.width} * table.screen.height,
                                            {"the picture", false})},
        picture_(pixels_.size()) {}

  /// Seconds to the picture in the host's memory.
  double run() {
    const esker::Stream stream = device_.stream();
    device_.fill(pixels_.data(), 0xff, pixels_.size_bytes(), stream);
    stream.synchronize();
    double seconds = 0;
    if (options_.scheme == Scheme::kEsker) {
      seconds = run_pipeline();
    } else {
      reyes::ByLevels by_levels(device_, table_, std::min(table_.pots, 4u));
      const harness::Stopwatch watch;
      by_levels.run(pixels_.data(), options_.scheme == Scheme::kChunks);
      seconds = watch.seconds();
    }
    const harness::Stopwatch watch;
    device_.copy(picture_.data(), pixels_.data(), pixels_.size_bytes());
    return seconds + watch.seconds();
  }
  const std::vector<Sample>& picture() const { return picture_; }
  const nlohmann::json& report() const { return report_; }

 private:
  double run_pipeline() {
    namespace pipeline = esker::pipeline;
    pipeline::Pipeline p(device_, options_.pipeline_options());
    const auto patches = p.topic<Patch>(options_.topic_options("patches"));
    // A team works on a frame, so frames of few patches keep more teams busy. Whatever is to be split has to
    // find room.
    pipeline::TopicOptions of_halves = options_.topic_options("halves"),
                           of_small = options_.topic_options("small");
    for (pipeline::TopicOptions* const of : {&of_halves, &of_small}) {
      of->frame_bytes = std::min(of->frame_bytes, std::uint64_t{4096});
      of->frames = std::max(of->frames, 4096u);
    }
    const auto halves = p.topic<Patch>(of_halves), small = p.topic<Patch>(of_small);
    std::uint32_t next = 0;
    const auto make = [&](auto& stage) {
      if (next == table_.pots) return false;
      for (const Patch& patch : reyes::pot(table_, next)) stage.emit(patches, patch);
      ++next;
      return true;
    };
    using Topic = pipeline::Topic<Patch>;
    const pipeline::Report& report =
        p.run(pipeline::on_host::source("make", make).into(patches),
              pipeline::on_device::items("split", reyes::Split<Topic, Topic>{table_.screen, halves, small})
                  .from(patches, halves)
                  .into(halves, small)
                  .staged(),
              pipeline::on_device::frames("draw", reyes::Draw{table_.screen, pixels_.data()}).from(small));
    report_ = nlohmann::json::parse(report.json());
    return std::chrono::duration<double>(report.time).count();
  }

  const esker::Device& device_;
  const pipe_apps::Options& options_;
  const reyes::Table& table_;
  esker::DeviceArray<reyes::Pixel> pixels_;
  std::vector<Sample> picture_;
  nlohmann::json report_;
};

std::vector<std::uint8_t> bytes_of(const std::vector<Sample>& picture) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(picture.size() * 3);
  for (const Sample sample : picture) {
    const auto colour = sample == reyes::kNothing ? 0x303848u : static_cast<std::uint32_t>(sample);
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(colour >> shift));
  }
  return bytes;
}

int run(int argc, char** argv) {
  pipe_apps::Options o;
  o.frame_bytes = 16 << 10;
  o.frames = 256;
  std::uint64_t width = 0, height = 0, pots = 0;
  std::string path;
  esker::CommandLine line("esker-pipe-reyes", "Draws teapots as Reyes does.");
  o.add_to(line);
  line.add("width", &width, "pixels; 0: as --size says")
      .add("height", &height, "pixels; 0: three quarters of --width")
      .add("pots", &pots, "teapots; 0: as --size says")
      .add("png", &path, "write the picture to this file");
  const esker::Device device = o.parse(line, argc, argv);
  o.require_scheme({Scheme::kEsker, Scheme::kCopyKernelCopy, Scheme::kChunks});
  if (width == 0) width = o.by_size(256, 1280, 2560);
  if (height == 0) height = width * 3 / 4;
  if (pots == 0) pots = o.by_size(2, 9, 36);
  if (width < 16 || height < 16 || width > 8192 || height > 8192)
    harness::usage("--width and --height are 16 to 8192");
  if (pots > 4096) harness::usage("--pots is at most 4096");
  if (o.frame_bytes < sizeof(Patch)) harness::usage("--frame-bytes is at least 200");
  std::optional<harness::OutputFile> picture_file;  // refused before any work
  if (!path.empty()) picture_file.emplace(path);

  const reyes::Table table{
      static_cast<std::uint32_t>(pots),
      {static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height), static_cast<float>(width)}};
  const std::vector<Sample> expected = o.verify ? reyes::serial_picture(table) : std::vector<Sample>{};
  Renderer renderer(device, o, table);
  std::uint64_t different = 0;
  const auto measured = pipe_apps::measure(
      o, [&] { return renderer.run(); },
      [&] {
        different = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const auto colour = [](Sample s) {
            return s == reyes::kNothing ? ~0u : static_cast<std::uint32_t>(s);
          };
          different += colour(expected[i]) != colour(renderer.picture()[i]) ? 1 : 0;
        }
        return different * 500 <= expected.size();
      });
  if (picture_file)
    png::write(*picture_file, table.screen.width, table.screen.height, bytes_of(renderer.picture()));
  const double pixels = static_cast<double>(width * height);
  return pipe_apps::finish(o, device, "pipe-reyes", measured, {pixels, "pixels", pixels * sizeof(Sample)},
                           {{"width", width},
                            {"height", height},
                            {"pots", pots},
                            {"different_pixels", different},
                            {"pipeline", renderer.report()}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pipe-reyes", argc, argv, run); }
