// mandelbrot: how soon points leave the Mandelbrot set, by Mariani and Silver's method. A wave computes the
// border of a rectangle. If the border has one value, the inside gets it too; else the rectangle is divided
// in four, until it is so small that the wave computes each pixel. --png writes a picture.
//
// Verified against a plain loop over all pixels on the host. The method assumes that what a border of one
// value encloses has that value, which holds for the set and need not hold for its pixels, and the host
// rounds in another way than a GPU does: so at most one pixel in a thousand may differ, and their number is
// in the report.
#include <cstdint>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/lane.hpp>
#include <esker/tasks.hpp>

#include "../harness/application.hpp"
#include "../harness/failure.hpp"
#include "../tasks/application.hpp"
#include "png.hpp"

namespace {

constexpr std::uint32_t kTilePixels = 128;  // a side of rectangles whose border is computed, at most
constexpr std::uint32_t kSmallPixels = 16;  // a side of rectangles that are computed pixel by pixel, at most

/// Of all rectangles. In the device's memory.
struct Picture {
  std::uint32_t* steps;  // width * height, rows from the top: until a point is outside, `most` if it never is
  std::uint32_t width, height, most;
  double left, top, apart;  // of the first pixel, and how far apart pixels are

  ESKER_HD std::uint32_t steps_at(std::uint32_t x, std::uint32_t y) const {
    const double a = left + x * apart, b = top - y * apart;
    double re = 0, im = 0;
    std::uint32_t n = 0;
    while (n < most && re * re + im * im <= 4) {
      const double next = re * re - im * im + a;
      im = 2 * re * im + b;
      re = next;
      ++n;
    }
    return n;
  }
};

struct Rectangle {
  using Result = void;
  static constexpr int kMaxSpawns = 4;
  static constexpr bool kWholeWave = true;
  const Picture* picture;
  std::uint32_t x, y, width, height;  // at least 1

  ESKER_HD void operator()(auto& task) const {
    if (width > kTilePixels || height > kTilePixels) return divide(task, *this);
    const Picture all = *picture;
    if (width <= kSmallPixels && height <= kSmallPixels) {
      task.for_each(width * height,
                    [&](std::uint32_t i) { (void)compute(all, x + i % width, y + i / width); });
      return task.add(std::uint64_t{width} * height);
    }
    std::uint32_t least = ~0u, most = 0;
    task.for_each(border(), [&](std::uint32_t i) {
      std::uint32_t dx = 0, dy = 0;
      find(i, dx, dy);
      const std::uint32_t steps = compute(all, x + dx, y + dy);
      least = steps < least ? steps : least;
      most = steps > most ? steps : most;
    });
    task.add(border());
    least = task.wave().reduce(least, esker::Min{});
    most = task.wave().reduce(most, esker::Max{});
    if (width <= 2 || height <= 2) return;
    const Rectangle inside{picture, x + 1, y + 1, width - 2, height - 2};
    if (least != most) return divide(task, inside);
    for (std::uint32_t row = 0; row < inside.height; ++row) {
      std::uint32_t* const steps = all.steps + std::size_t{inside.y + row} * all.width + inside.x;
      task.for_each(inside.width, [&](std::uint32_t i) { steps[i] = least; });
    }
  }

 private:
  ESKER_HD std::uint32_t border() const {
    return width == 1 || height == 1 ? width * height : 2 * (width + height) - 4;
  }
  /// Pixel i of the border: the rows, and what is left of the columns.
  ESKER_HD void find(std::uint32_t i, std::uint32_t& dx, std::uint32_t& dy) const {
    if (width == 1 || i < width) {
      dx = width == 1 ? 0 : i;
      dy = width == 1 ? i : 0;
    } else if (i < 2 * width) {
      dx = i - width;
      dy = height - 1;
    } else {
      const std::uint32_t left_over = i - 2 * width;
      dx = left_over % 2 * (width - 1);
      dy = 1 + left_over / 2;
    }
  }
  ESKER_HD static std::uint32_t compute(const Picture& all, std::uint32_t x, std::uint32_t y) {
    const std::uint32_t steps = all.steps_at(x, y);
    all.steps[std::size_t{y} * all.width + x] = steps;
    return steps;
  }
  ESKER_HD static void divide(auto& task, const Rectangle& all) {
    const std::uint32_t left = (all.width + 1) / 2, top = (all.height + 1) / 2;
    task.spawn(Rectangle{all.picture, all.x, all.y, left, top});
    if (all.width > left) task.spawn(Rectangle{all.picture, all.x + left, all.y, all.width - left, top});
    if (all.height > top) task.spawn(Rectangle{all.picture, all.x, all.y + top, left, all.height - top});
    if (all.width > left && all.height > top)
      task.spawn(Rectangle{all.picture, all.x + left, all.y + top, all.width - left, all.height - top});
  }
};

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

  const std::uint64_t pixels = width * height;
  const auto steps = device.memory<std::uint32_t>(pixels, {"the picture", false});
  const auto picture = device.memory<Picture>(1, {"what the picture is of"});
  // From -2.25 to 0.75, and as much to both sides of 0.
  const double apart = 3.0 / static_cast<double>(width);
  Picture host{steps.data(),
               static_cast<std::uint32_t>(width),
               static_cast<std::uint32_t>(height),
               static_cast<std::uint32_t>(most),
               -2.25,
               apart * static_cast<double>(height) / 2,
               apart};
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
  if (!path.empty()) png::write(path, host.width, host.height, colours_of(seen, host.most));
  return task_apps::finish(o, device, "mandelbrot", measured, static_cast<double>(pixels), "pixels",
                           {{"width", width},
                            {"height", height},
                            {"steps", most},
                            {"computed_pixels", measured.report.sum},
                            {"different_pixels", different}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-mandelbrot", argc, argv, run); }
