// mandelbrot: how soon points leave the Mandelbrot set, by Mariani and Silver's method. A wave computes the
// border of a rectangle. If the border has one value, the inside gets it too; else the rectangle is divided
// in four, until it is so small that the wave computes each pixel. --png writes a picture.
//
// Verified against a plain loop over all pixels on the host. The method assumes that what a border of one
// value encloses has that value, which holds for the set and need not hold for its pixels, and the host
// rounds in another way than a GPU does: so at most one pixel in a thousand may differ, and their number is
// in the report.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/lane.hpp>
#include <esker/tasks.hpp>

#include "../harness/application.hpp"
#include "../harness/failure.hpp"
#include "../pictures/png.hpp"
#include "../tasks/application.hpp"
#include "mandelbrot_task.hpp"

namespace {

using mandelbrot::Picture;
using mandelbrot::Rectangle;

std::vector<std::uint8_t> colours_of(const std::vector<std::uint32_t>& steps, std::uint32_t most) {
  std::vector<std::uint8_t> pixels;
  pixels.reserve(steps.size() * 3);
  for (const std::uint32_t n : steps) {
    const bool is_inside = n == most;
    for (const std::uint32_t factor : {5u, 9u, 17u})
      pixels.push_back(is_inside ? 0 : static_cast<std::uint8_t>(n * factor));
  }
  return pixels;
}

int run(int argc, char** argv) {
  task_apps::Options o;
  std::uint64_t width = 0, height = 0, most = 512;
  std::string path;
  esker::CommandLine line("esker-mandelbrot",
                          "Draws the Mandelbrot set: rectangles with borders of one colour are filled.");
  o.add_to(line);
  line.add("width", &width, "pixels; 0: as --size says")
      .add("height", &height, "pixels; 0: as many as --width")
      .add("steps", &most, "after so many a point is inside")
      .add("png", &path, "write the picture to this file");
  const esker::Device device = o.parse(line, argc, argv);
  if (width == 0) width = o.size == "small" ? 512 : o.size == "medium" ? 2048 : 8192;
  if (height == 0) height = width;
  if (width > 65536 || height > 65536) harness::usage("--width and --height are at most 65536");
  if (most == 0 || most > 1'000'000) harness::usage("--steps is 1 to 1000000");
  std::optional<harness::OutputFile> picture_file;  // refused before any work
  if (!path.empty()) picture_file.emplace(path);

  const std::uint64_t pixels = width * height;
  const auto steps = device.memory<std::uint32_t>(pixels, {"the picture", false});
  const auto picture = device.memory<Picture>(1, {"what the picture is of"});
  const Picture host = Picture::of_all(steps.data(), static_cast<std::uint32_t>(width),
                                       static_cast<std::uint32_t>(height), static_cast<std::uint32_t>(most));
  device.copy(picture.data(), &host, sizeof host);
  std::vector<std::uint32_t> expected(o.verify ? pixels : 0), seen(pixels);
  if (o.verify) {
    for (std::uint32_t y = 0; y < host.height; ++y) {
      for (std::uint32_t x = 0; x < host.width; ++x) expected[y * width + x] = host.steps_at(x, y);
    }
  }

  esker::tasks::ForkJoin<Rectangle> tasks(device, o.task_options());
  std::uint64_t different = 0;
  const auto measured = task_apps::measure(
      o,
      [&] {
        const esker::Stream stream = device.stream();
        device.fill(steps.data(), 0xff, steps.size_bytes(), stream);
        stream.synchronize();
        tasks.run(Rectangle{picture.data(), 0, 0, host.width, host.height});
        device.copy(seen.data(), steps.data(), steps.size_bytes());
        different = 0;
        for (std::size_t i = 0; i < expected.size(); ++i) different += seen[i] != expected[i] ? 1 : 0;
        return different * 1000 <= pixels;
      },
      [&]() -> const auto& { return tasks.report(); });
  if (picture_file) png::write(*picture_file, host.width, host.height, colours_of(seen, host.most));
  return task_apps::finish(o, device, "mandelbrot", measured, static_cast<double>(pixels), "pixels",
                           {{"width", width},
                            {"height", height},
                            {"steps", most},
                            {"computed_pixels", measured.report.sum},
                            {"different_pixels", different}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-mandelbrot", argc, argv, run); }
