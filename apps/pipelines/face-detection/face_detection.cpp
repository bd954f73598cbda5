// pipe-face-detection: finds faces in pictures by local binary patterns (HiWayLib, table 1; Oh, Yi and Yi,
// 2015). The host reads a picture in bands of rows; the device scales it, a stage that feeds itself, codes
// each pixel, and looks at all windows of all levels by a cascade of classifiers, whose stages hand on what
// they have not rejected; the host groups windows that show the same face. --png writes the first picture.
//
// Pictures are synthetic, with planted faces, and the cascade's tables are trained on others of that kind
// when the program starts (training.hpp). So figures are of pipelines, not of how well faces are found in
// photographs.
//
// Verified by a serial detector with the same tables: windows and faces are the same, and each planted face
// is among them.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "../../harness/application.hpp"
#include "../../pictures/png.hpp"
#include "../application.hpp"
#include "../baselines.hpp"
#include "by_launches.hpp"
#include "by_pipeline.hpp"
#include "picture.hpp"
#include "serial.hpp"
#include "training.hpp"

namespace {

using faces::Box;
using faces::Detections;
using faces::Picture;
using pipe_apps::Scheme;

/// The command line.
struct Arguments {
  pipe_apps::Options common;
  std::uint64_t width = 0, height = 0, pictures = 0, planted = 0, under_way = 4;
  std::string png;

  Arguments() {
    common.frame_bytes = 8 << 10;
    common.frames = 1024;
  }
  esker::Device parse(int argc, char** argv) {
    esker::CommandLine line("esker-pipe-face-detection", "Finds faces in pictures by local binary patterns.");
    common.add_to(line);
    line.add("width", &width, "pixels; 0: as --size says")
        .add("height", &height, "pixels; 0: nine sixteenths of --width")
        .add("pictures", &pictures, "to look at; 0: as --size says")
        .add("faces", &planted, "of a picture, as far as there is space; 0: as --size says")
        .add("under-way", &under_way, "pictures that are on the device at a time")
        .add("png", &png, "write the first picture, and what was found, to this file");
    esker::Device device = common.parse(line, argc, argv);
    std::vector<Scheme> schemes = pipe_apps::kBaselines;
    schemes.insert(schemes.begin(), Scheme::kEsker);
    common.require_scheme(schemes);
    if (width == 0) width = common.by_size(320, 640, 1280);
    if (height == 0) height = width * 9 / 16;
    if (pictures == 0) pictures = common.by_size(4, 8, 16);
    if (planted == 0) planted = common.by_size(6, 8, 12);
    if (width < 2 * faces::kWindow || height < 2 * faces::kWindow || width > faces::kLargest ||
        height > faces::kLargest)
      harness::usage("--width and --height are 40 to 4096");
    if (planted > 1024) harness::usage("--faces is at most 1024");
    if (under_way == 0 || under_way > 256) harness::usage("--under-way is 1 to 256");
    if (common.frame_bytes < width) harness::usage("--frame-bytes is at least --width: a row");
    if (pictures > 65536) harness::usage("--pictures is at most 65536");
    return device;
  }
  faces::Scene scene() const {
    return {static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height),
            static_cast<std::uint32_t>(planted), common.seed};
  }
  faces::Pyramid pyramid() const {
    const std::uint64_t rows = std::min(common.frame_bytes / width, height);
    return faces::Pyramid::of(scene().width, scene().height, static_cast<std::uint32_t>(rows));
  }
};

bool are_same(const Detections& a, const Detections& b) {
  const auto sorted = [](std::vector<Box> boxes) {
    std::sort(boxes.begin(), boxes.end(), [](const Box& p, const Box& q) {
      return std::tie(p.y, p.x, p.side) < std::tie(q.y, q.x, q.side);
    });
    return boxes;
  };
  return a.faces == b.faces && sorted(a.windows) == sorted(b.windows);
}

/// In grey, with red boxes around what was found.
std::vector<std::uint8_t> bytes_of(const Picture& picture, const std::vector<faces::Face>& found) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(picture.pixels.size() * 3);
  for (const std::uint8_t pixel : picture.pixels) bytes.insert(bytes.end(), 3, pixel);
  const auto mark = [&](std::uint32_t x, std::uint32_t y) {
    if (x >= picture.width || y >= picture.height) return;
    std::uint8_t* const pixel = &bytes[(std::size_t{y} * picture.width + x) * 3];
    pixel[0] = 255;
    pixel[1] = pixel[2] = 0;
  };
  for (const faces::Face& face : found) {
    const Box& box = face.box;
    for (std::uint32_t i = 0; i < box.side; ++i) {
      mark(box.x + i, box.y);
      mark(box.x + i, box.y + box.side - 1);
      mark(box.x, box.y + i);
      mark(box.x + box.side - 1, box.y + i);
    }
  }
  return bytes;
}

/// What the JSON object says of a run's pictures, beside how they were found.
nlohmann::json counts_of(const std::vector<Picture>& pictures, const std::vector<Detections>& found) {
  std::uint64_t planted = 0, seen = 0, faces = 0, windows = 0;
  for (std::size_t i = 0; i < pictures.size(); ++i) {
    planted += pictures[i].planted.size();
    for (const Box& box : pictures[i].planted) seen += faces::is_found(box, found[i].faces) ? 1 : 0;
    faces += found[i].faces.size();
    windows += found[i].windows.size();
  }
  return {{"faces_planted", planted},
          {"faces_planted_found", seen},
          {"faces_found", faces},
          {"windows_found", windows}};
}

int run(int argc, char** argv) {
  Arguments a;
  const esker::Device device = a.parse(argc, argv);
  const pipe_apps::Options& o = a.common;
  const faces::Pyramid pyramid = a.pyramid();
  if (o.scheme == Scheme::kEsker && faces::ByPipeline::loop_frames(pyramid, a.pictures) > 1 << 19)
    harness::usage(
        "fewer --pictures, or larger --frame-bytes: a topic has room for 2^19 bands of all pictures");

  std::optional<harness::OutputFile> picture_file;  // refused before any work
  if (!a.png.empty()) picture_file.emplace(a.png);
  std::vector<Picture> pictures;
  for (std::uint32_t i = 0; i < a.pictures; ++i) pictures.push_back(faces::make_picture(a.scene(), i));
  const faces::Cascade cascade = faces::trained_cascade();
  std::vector<Detections> expected, found;
  for (std::uint32_t i = 0; i < a.pictures && o.verify; ++i)
    expected.push_back(faces::serial_detections(cascade, pictures[i]));

  nlohmann::json more;
  const auto is_right = [&] {
    for (std::size_t i = 0; i < pictures.size(); ++i) {
      if (!are_same(found[i], expected[i])) return false;
      for (const Box& box : pictures[i].planted) {
        if (!faces::is_found(box, found[i].faces)) return false;
      }
    }
    return true;
  };
  const auto measure = [&](auto&& detector) {
    return pipe_apps::measure(
        o,
        [&] {
          found.assign(pictures.size(), {});
          return detector.run(found);
        },
        is_right);
  };
  pipe_apps::Measured measured;
  if (o.scheme == Scheme::kEsker) {
    const auto under_way = static_cast<std::uint32_t>(std::min(a.under_way, a.pictures));
    faces::ByPipeline detector(device, o, pictures, pyramid, cascade, under_way);
    measured = measure(detector);
    more["pipeline"] = detector.report();
  } else {
    measured = measure(faces::ByLaunches(device, o, pictures, pyramid, cascade));
  }
  if (picture_file)
    png::write(*picture_file, pictures[0].width, pictures[0].height, bytes_of(pictures[0], found[0].faces));
  const double pixels = static_cast<double>(a.width * a.height) * static_cast<double>(a.pictures);
  more.update(
      {{"width", a.width}, {"height", a.height}, {"pictures", a.pictures}, {"levels", pyramid.n_levels}});
  more.update(counts_of(pictures, found));
  if (o.verify) {
    std::vector<std::uint64_t> passed(faces::Cascade::kStages + 1);
    for (const Detections& detections : expected) {
      for (std::size_t i = 0; i < passed.size(); ++i) passed[i] += detections.passed[i];
    }
    more["windows"] = passed;
  }
  return pipe_apps::finish(o, device, "pipe-face-detection", measured, {pixels, "pixels", pixels}, more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pipe-face-detection", argc, argv, run); }
