// pipe-rasterisation: pictures of cubes that turn (HiWayLib, table 1; Piko). The host sets triangles up and
// sorts them into tiles, the device rasterises tiles, the host composes pictures of them. In a loop: a
// picture that is done starts the next one, so that a few are under way. --png writes the first.
//
// Verified by a serial renderer without tiles: all pixels of all pictures are the same.
#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "../../harness/application.hpp"
#include "../../pictures/png.hpp"
#include "../application.hpp"
#include "../baselines.hpp"
#include "../device_teams.hpp"
#include "rasterise.hpp"
#include "scene.hpp"
#include "serial.hpp"
#include "tiles.hpp"

namespace {

using raster::Triangle;
using Pixel = std::uint32_t;
template <class T>
using Frame = esker::pipeline::Frame<T>;

/// State    All pictures, in the host's memory, and how many tiles of each are there.
/// Contract A stage on the host each: set_up() once a picture, compose() once a tile, on any threads.
/// Ordering [tiles] pixels of a picture's tiles are written before it is complete.
class Pictures {
 public:
  Pictures(const raster::Scene& scene, const raster::Tiles& tiles)
      : scene_{scene}, tiles_{tiles}, pixels_(scene.pictures), n_tiles_(scene.pictures), next_{0} {
    for (auto& picture : pixels_) picture.resize(std::size_t{scene.width} * scene.height);
  }
  void clear() {
    for (auto& picture : pixels_) std::fill(picture.begin(), picture.end(), ~Pixel{0});
    for (auto& n : n_tiles_) n.store(0, std::memory_order_relaxed);
    next_ = 0;
  }
  const std::vector<Pixel>& picture(std::uint32_t number) const { return pixels_[number]; }
  const raster::Scene& scene() const { return scene_; }
  const raster::Tiles& tiles() const { return tiles_; }

  std::vector<std::vector<Triangle>> set_up(std::uint32_t picture) const {
    return raster::binned(tiles_, raster::primitives_of(scene_, picture));
  }
  /// Calls done(picture) for each that is complete with this tile, if those before it are: in their order.
  template <class Done>
  void compose(std::uint64_t tile, const Pixel* pixels, const Done& done) {
    const raster::Tiles::Box box = tiles_.box(tile);
    const std::uint64_t number = tile / tiles_.of_picture();
    for (std::uint32_t y = 0; y < box.height; ++y) {
      std::memcpy(&pixels_[number][std::size_t{box.top + y} * scene_.width + box.left],
                  pixels + y * box.width, box.width * sizeof(Pixel));
    }
    if (n_tiles_[number].fetch_add(1, std::memory_order_acq_rel) + 1 != tiles_.of_picture())
      return;  // [tiles]
    const std::scoped_lock lock(mutex_);
    for (; next_ < scene_.pictures && is_complete(next_); ++next_) done(next_);
  }

 private:
  bool is_complete(std::uint32_t number) const {
    return n_tiles_[number].load(std::memory_order_acquire) == tiles_.of_picture();  // [tiles]
  }

  raster::Scene scene_;
  raster::Tiles tiles_;
  std::vector<std::vector<Pixel>> pixels_;
  std::vector<std::atomic<std::uint32_t>> n_tiles_;  // of each picture, that are there
  std::mutex mutex_;
  std::uint32_t next_;  // the first picture that is not complete; guarded by mutex_
};

class Rasterisation {
 public:
  Rasterisation(const esker::Device& device, const pipe_apps::Options& options, Pictures& pictures,
                std::uint32_t under_way)
      : device_{device},
        options_{options},
        pictures_{pictures},
        under_way_{std::min(under_way, pictures.scene().pictures)},
        most_triangles_{raster::most_triangles(pictures.scene(), pictures.tiles())},
        // While a picture is not complete, the last one to begin is less than `under_way` further; and when
        // it began, none was set up but complete ones and those less than `under_way` after these. These are
        // set up in any order, between its own tiles: a frame finds room if the topic holds twice as many.
        n_frames_{std::bit_ceil(2 * under_way_ * pictures.tiles().of_picture())},
        near_{device.memory<Triangle>(std::uint64_t{n_frames_} * most_triangles_, {"triangles of tiles"})} {}

  double run() { return options_.scheme == pipe_apps::Scheme::kEsker ? run_pipeline() : run_compared(); }
  std::uint32_t most_triangles() const { return most_triangles_; }
  const nlohmann::json& report() const { return report_; }

 private:
  raster::Rasterise rasterise() { return {pictures_.tiles(), near_.data(), n_frames_, most_triangles_}; }
  std::uint32_t tile_pixels() const { return pictures_.tiles().side * pictures_.tiles().side; }

  double run_pipeline() {
    namespace pipeline = esker::pipeline;
    pipeline::Pipeline p(device_, options_.pipeline_options());
    const auto topic_of = [&]<class T>(const char* name, std::uint64_t items, std::uint32_t frames, T) {
      pipeline::TopicOptions options = options_.topic_options(name);
      options.frame_bytes = items * sizeof(T);
      options.frames = frames;
      return p.topic<T>(options);
    };
    const auto first = topic_of("first", 1, under_way_, std::uint32_t{});
    const auto next = topic_of("next", 1, 2 * under_way_, std::uint32_t{});
    const auto triangles = topic_of("triangles", most_triangles_, n_frames_, Triangle{});
    const auto pixels = topic_of("pixels", tile_pixels(), n_frames_, Pixel{});
    const std::uint32_t of_picture = pictures_.tiles().of_picture();

    const auto give = [](auto& stage, const auto& to, std::uint32_t picture) {
      auto frame = stage.open(to);
      if (frame.data == nullptr) return;
      frame[0] = picture;
      frame.count = 1;
      stage.publish(to, frame);
    };
    std::uint32_t started = 0;
    const auto start = [&](auto& stage) {
      if (started == under_way_) return false;
      give(stage, first, started++);
      return true;
    };
    const auto set_up = [&](auto& stage, const std::uint32_t& picture) {
      const auto bins = pictures_.set_up(picture);
      for (std::uint32_t tile = 0; tile < of_picture; ++tile) {
        auto frame = stage.open(triangles);
        if (frame.data == nullptr) return;
        std::copy(bins[tile].begin(), bins[tile].end(), frame.data);
        frame.count = static_cast<std::uint32_t>(bins[tile].size());
        frame.tag = std::uint64_t{picture} * of_picture + tile;
        stage.publish(triangles, frame);
      }
    };
    const auto compose = [&](auto& stage, const Frame<const Pixel>& frame) {
      pictures_.compose(frame.tag, frame.data, [&](std::uint32_t picture) {
        if (picture + under_way_ < pictures_.scene().pictures) give(stage, next, picture + under_way_);
      });
    };
    const auto workers = static_cast<std::uint32_t>(options_.workers);
    const pipeline::Report& report =
        p.run(pipeline::on_host::source("start", start).into(first),
              pipeline::on_host::items("set up", set_up).from(first, next).into(triangles).workers(workers),
              pipeline::on_device::map("rasterise", triangles, pixels, rasterise())
                  .staged()
                  .workers(pipe_apps::device_teams(device_)),
              pipeline::on_host::frames("compose", compose).from(pixels).into(next).workers(workers));
    report_ = nlohmann::json::parse(report.json());
    return std::chrono::duration<double>(report.time).count();
  }

  /// A chunk is a picture.
  double run_compared() {
    const std::uint32_t of_picture = pictures_.tiles().of_picture();
    std::vector<std::vector<Triangle>> bins;
    pipe_apps::FrameRun<Triangle, Pixel> run;
    run.frames = std::uint64_t{pictures_.scene().pictures} * of_picture;
    run.in_items = most_triangles_;
    run.out_items = tile_pixels();
    run.team = {options_.group_lanes, 1};
    run.launch_frames = options_.scheme == pipe_apps::Scheme::kChunks ? of_picture : 1;
    run.read = [&](Frame<Triangle>& in, Frame<Pixel>&) {
      const auto tile = static_cast<std::uint32_t>(in.number % of_picture);
      if (tile == 0) bins = pictures_.set_up(static_cast<std::uint32_t>(in.number / of_picture));
      std::copy(bins[tile].begin(), bins[tile].end(), in.data);
      in.count = static_cast<std::uint32_t>(bins[tile].size());
      in.tag = in.number;
    };
    run.write = [&](const Frame<const Pixel>& out) {
      pictures_.compose(out.tag, out.data, [](std::uint32_t) {});
    };
    return pipe_apps::run_baseline(device_, options_, run, rasterise());
  }

  const esker::Device& device_;
  const pipe_apps::Options& options_;
  Pictures& pictures_;
  std::uint32_t under_way_, most_triangles_, n_frames_;
  esker::DeviceArray<Triangle> near_;
  nlohmann::json report_;
};

std::vector<std::uint8_t> bytes_of(const std::vector<Pixel>& picture) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(picture.size() * 3);
  for (const Pixel pixel : picture) {
    for (const int shift : {16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(pixel >> shift));
  }
  return bytes;
}

int run(int argc, char** argv) {
  pipe_apps::Options o;
  o.frame_bytes = 16 << 10;
  std::uint64_t width = 0, height = 0, pictures = 0, squares = 8, under_way = 4;
  std::string path;
  esker::CommandLine line("esker-pipe-rasterisation", "Draws pictures of cubes that turn.");
  o.add_to(line);
  line.add("width", &width, "pixels; 0: as --size says")
      .add("height", &height, "pixels; 0: nine sixteenths of --width")
      .add("pictures", &pictures, "to draw; 0: as --size says")
      .add("squares", &squares, "of a cube's side, each way")
      .add("under-way", &under_way, "pictures that are drawn at a time")
      .add("png", &path, "write the first picture to this file");
  const esker::Device device = o.parse(line, argc, argv);
  if (width == 0) width = o.by_size(320, 1280, 1920);
  if (height == 0) height = width * 9 / 16;
  if (pictures == 0) pictures = o.by_size(8, 32, 64);
  if (width < 16 || height < 16 || width > 8192 || height > 8192)
    harness::usage("--width and --height are 16 to 8192");
  if (pictures > 65536) harness::usage("--pictures is at most 65536");
  if (squares == 0 || squares > 256) harness::usage("--squares is 1 to 256");
  if (under_way == 0 || under_way > 64) harness::usage("--under-way is 1 to 64");
  // The largest square that a frame has room for.
  const auto side = static_cast<std::uint32_t>(std::sqrt(static_cast<double>(o.frame_bytes / sizeof(Pixel))));
  if (side < 4) harness::usage("--frame-bytes is at least 64");
  std::optional<harness::OutputFile> picture_file;  // refused before any work
  if (!path.empty()) picture_file.emplace(path);

  const raster::Scene scene{static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height),
                            static_cast<std::uint32_t>(pictures), static_cast<std::uint32_t>(squares)};
  const raster::Tiles tiles{scene.width, scene.height, side};
  std::vector<std::vector<Pixel>> expected;
  for (std::uint32_t i = 0; i < scene.pictures && o.verify; ++i) expected.push_back(serial_picture(scene, i));

  Pictures drawn(scene, tiles);
  Rasterisation rasterisation(device, o, drawn, static_cast<std::uint32_t>(under_way));
  const auto measured = pipe_apps::measure(
      o,
      [&] {
        drawn.clear();
        return rasterisation.run();
      },
      [&] {
        for (std::uint32_t i = 0; i < scene.pictures; ++i) {
          if (drawn.picture(i) != expected[i]) return false;
        }
        return true;
      });
  if (picture_file) png::write(*picture_file, scene.width, scene.height, bytes_of(drawn.picture(0)));
  const double pixels = static_cast<double>(width * height) * static_cast<double>(pictures);
  return pipe_apps::finish(o, device, "pipe-rasterisation", measured,
                           {pixels, "pixels", pixels * sizeof(Pixel)},
                           {{"width", width},
                            {"height", height},
                            {"pictures", pictures},
                            {"tile_side", side},
                            {"most_triangles", rasterisation.most_triangles()},
                            {"pipeline", rasterisation.report()}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pipe-rasterisation", argc, argv, run); }
