// faces: finds faces in a picture by LBP codes (HiWayLib's face detection). The program draws the picture
// itself: faces on noise. Stages: grey and the pyramid on the device, by recursion; codes of 3 x 3 pixels on
// the host; a cascade over histograms of codes on the device; the windows that are left are grouped. --by
// regions sends each pixel to the host once; --by items sends with each pixel a copy of those around it,
// which is the paper's baseline.
//
// Verified: the windows are those of a serial detector, and every face that was drawn is found.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "../../harness/application.hpp"
#include "../../harness/failure.hpp"
#include "../../mandelbrot/png.hpp"
#include "../application.hpp"
#include "detector.hpp"
#include "picture.hpp"
#include "serial.hpp"
#include "stages.hpp"

namespace {

using namespace faces;
namespace on_host = pipeline::on_host;
namespace on_device = pipeline::on_device;

/// What a level's regions are in.
struct LevelMemory {
  LevelMemory(const esker::Device& device, const Extent& size, const Extent& region, bool by_items)
      : grid{RegionGrid::of(size, region)},
        scaled{device, pipeline::RegionSide::kDevice, grid},
        pixels{device, by_items ? pipeline::RegionSide::kDevice : pipeline::RegionSide::kHost, grid,
               Halo{{-1, -1, 0}, {1, 1, 0}}},
        coded{device, pipeline::RegionSide::kHost, grid},
        codes{device, pipeline::RegionSide::kDevice, grid, Halo{{}, {kSide - 1, kSide - 1, 0}}} {}
  Level view() const { return {grid.cells, scaled.view(), pixels.view(), coded.view(), codes.view()}; }

  RegionGrid grid;
  pipeline::RegionSource<Pixel> scaled;
  pipeline::RegionTable<Pixel> pixels;
  pipeline::RegionSource<Pixel> coded;
  pipeline::RegionTable<Pixel> codes;
};

class Detector {
 public:
  static constexpr std::uint32_t kBandRows = 32;

  Detector(const esker::Device& device, const pipeline::Options& options, const Picture& picture,
           const Extent& region, bool by_items, const pipe_apps::Options& o)
      : picture_{picture},
        pyramid_{Pyramid::of(picture.width, picture.height)},
        workers_{static_cast<std::uint32_t>(o.workers)},
        levels_on_device_{device.memory<Level>(pyramid_.n, {"the levels"})},
        face_{device.memory<Face>(1, {"the face"})},
        pipeline_{device, options} {
    for (std::uint32_t l = 0; l < pyramid_.n; ++l) {
      memory_.push_back(std::make_unique<LevelMemory>(device, pyramid_.levels[l], region, by_items));
      levels_.push_back(memory_.back()->view());
    }
    device.copy(levels_on_device_.data(), levels_.data(), levels_on_device_.size_bytes());
    const Face face = model();
    device.copy(face_.data(), &face, sizeof face);

    const auto frames = static_cast<std::uint32_t>(o.frames);
    const std::uint32_t bands = (picture.height + kBandRows - 1) / kBandRows;
    bands_ = pipeline_.topic<Pixel>(
        {.name = "bands", .frame_bytes = std::uint64_t{kBandRows} * picture.width * 3, .frames = frames});
    // All rows of a run, and half as much left: a loop that has no room ends the run.
    rows_ = pipeline_.topic<Pixel>({.name = "rows",
                                    .frame_bytes = std::uint64_t{kBandRows} * picture.width,
                                    .frames = 2 * bands * pyramid_.n});
    const std::uint64_t region_bytes = region.volume();
    pixels_ = pipeline_.topic<Pixel>({.name = "pixels", .frame_bytes = region_bytes, .frames = frames});
    tasks_ = pipeline_.topic<PixelTask>({.name = "tasks", .frame_bytes = o.frame_bytes, .frames = frames});
    codes_ = pipeline_.topic<Pixel>({.name = "codes", .frame_bytes = region_bytes, .frames = frames});
    hits_ = pipeline_.topic<Hit>({.name = "hits", .frame_bytes = 4096, .frames = frames});
  }

  const pipeline::Report& run_by_regions() {
    return run(Scale<SendWhole>{levels_on_device_.data(), pyramid_.n, rows_, {pixels_}, round_}, pixels_,
               on_host::frames("lbp", CodeRegions{levels_.data(), codes_, round_}).from(pixels_));
  }
  const pipeline::Report& run_by_items() {
    return run(Scale<SendItems>{levels_on_device_.data(), pyramid_.n, rows_, {tasks_}, round_}, tasks_,
               on_host::items("lbp", CodeItems{levels_.data(), codes_, round_}).from(tasks_));
  }
  /// Of the last run, in order.
  const std::vector<Hit>& hits() const { return found_; }
  const std::vector<Rectangle>& found() const { return grouped_; }
  std::uint64_t pixels() const {
    std::uint64_t n = 0;
    for (std::uint32_t l = 0; l < pyramid_.n; ++l) n += pyramid_.levels[l].volume();
    return n;
  }

 private:
  const pipeline::Report& run(const auto& scale, const auto& sent, const auto& lbp) {
    std::uint32_t next_row = 0;
    found_.clear();
    const auto end = [&](auto&) {
      std::sort(found_.begin(), found_.end());
      grouped_ = group(found_);
    };
    const std::uint32_t round = round_++;
    return pipeline_.run(
        on_host::source("read", Read{&picture_, bands_, kBandRows, &next_row}).into(bands_),
        on_device::frames("grey", Grey{rows_}).from(bands_).into(rows_),
        on_device::frames("scale", scale).from(rows_).into(rows_, sent), lbp.into(codes_).workers(workers_),
        on_device::frames("match", Match{levels_on_device_.data(), face_.data(), hits_, round})
            .from(codes_)
            .into(hits_),
        on_host::items("group", [&](auto&, const Hit& hit) { found_.push_back(hit); })
            .from(hits_)
            .at_end(end));
  }

  const Picture& picture_;
  const Pyramid pyramid_;
  const std::uint32_t workers_;
  std::vector<std::unique_ptr<LevelMemory>> memory_;
  std::vector<Level> levels_;
  esker::DeviceArray<Level> levels_on_device_;
  esker::DeviceArray<Face> face_;
  pipeline::Pipeline pipeline_;
  Topic<Pixel> bands_, rows_, pixels_, codes_;
  Topic<PixelTask> tasks_;
  Topic<Hit> hits_;
  std::uint32_t round_ = 0;
  std::vector<Hit> found_;
  std::vector<Rectangle> grouped_;
};

void write_png(const std::string& path, const Picture& picture, const std::vector<Rectangle>& found) {
  std::vector<std::uint8_t> pixels = picture.pixels;
  const auto mark = [&](std::uint32_t x, std::uint32_t y) {
    if (x >= picture.width || y >= picture.height) return;
    const std::uint8_t green[] = {0, 255, 0};
    std::copy(green, green + 3, &pixels[(std::size_t{y} * picture.width + x) * 3]);
  };
  for (const Rectangle& r : found) {
    for (std::uint32_t x = r.left; x < r.right; ++x) mark(x, r.top), mark(x, r.bottom - 1);
    for (std::uint32_t y = r.top; y < r.bottom; ++y) mark(r.left, y), mark(r.right - 1, y);
  }
  png::write(path, picture.width, picture.height, pixels);
}

int run(int argc, char** argv) {
  pipe_apps::Options o;
  std::string by = "regions", path;
  std::uint64_t width = 0, height = 0, n_faces = 12, region_width = 64, region_height = 32;
  esker::CommandLine line("esker-pipe-faces", "Finds faces in a picture that it draws.");
  o.add_to(line);
  line.add("by", &by, "how pixels are sent to the stage that makes codes", {"regions", "items"})
      .add("width", &width, "pixels; 0: as --size says")
      .add("height", &height, "pixels; 0: as --size says")
      .add("faces", &n_faces, "that are drawn, at most")
      .add("region-width", &region_width, "pixels")
      .add("region-height", &region_height, "pixels")
      .add("png", &path, "write the picture, and what was found, to this file");
  const esker::Device device = o.parse(line, argc, argv);
  o.require_scheme({pipe_apps::Scheme::kEsker});
  if (width == 0) width = o.by_size(320, 640, 1280);
  if (height == 0) height = o.by_size(180, 360, 720);
  if (width < kSide || height < kSide || width > 16384 || height > 16384)
    harness::usage("--width and --height are 24 to 16384");
  if (n_faces > 1000) harness::usage("--faces is at most 1000");
  if (region_width == 0 || region_height == 0 || region_width > 16384 || region_height > 16384)
    harness::usage("--region-width and --region-height are 1 to 16384");

  const Picture picture = Picture::draw(static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height),
                                        static_cast<std::uint32_t>(n_faces), o.seed);
  const std::vector<Hit> expected = o.verify ? detect_serially(picture, model()) : std::vector<Hit>();
  esker::pipeline::Options options;
  options.hang_after = std::chrono::seconds{o.hang_seconds};
  Detector detector(device, options, picture,
                    {static_cast<std::uint32_t>(region_width), static_cast<std::uint32_t>(region_height), 1},
                    by == "items", o);
  nlohmann::json more = {
      {"by", by}, {"width", width}, {"height", height}, {"drawn_faces", picture.faces.size()}};
  const auto measured = pipe_apps::measure(
      o,
      [&] {
        const pipeline::Report& report = by == "items" ? detector.run_by_items() : detector.run_by_regions();
        more["pipeline"] = nlohmann::json::parse(report.json());
        return std::chrono::duration<double>(report.time).count();
      },
      [&] {
        return detector.hits() == expected &&
               found_of(picture.faces, detector.found()) == picture.faces.size();
      });
  more["windows"] = detector.hits().size();
  more["found_faces"] = detector.found().size();
  more["drawn_and_found"] = found_of(picture.faces, detector.found());
  if (!path.empty()) write_png(path, picture, detector.found());
  const double pixels = static_cast<double>(detector.pixels());
  return pipe_apps::finish(o, device, "pipe-faces", measured,
                           {pixels, "pixels", pixels * (by == "items" ? sizeof(PixelTask) : 1)}, more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pipe-faces", argc, argv, run); }
