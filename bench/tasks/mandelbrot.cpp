// Mariani and Silver's method, by tasks and by launches from kernels. A side's result is 1 if at most one
// pixel in a thousand differs from a plain loop, in the rows that are looked at.
#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "../../apps/mandelbrot/mandelbrot_task.hpp"
#include "figures.hpp"

#if defined(ESKER_BENCH_LAUNCHES)
#include "launches.hpp"
#endif

namespace esker::bench {
namespace {

using mandelbrot::Picture;
using mandelbrot::Rectangle;

constexpr std::uint32_t kSteps = 512;
constexpr std::uint32_t kRowsApart = 17;  // of those that are looked at: no multiple of a rectangle's side

/// A square picture, and what some of its rows must be.
class Drawing {
 public:
  Drawing(const Device& device, std::uint32_t side)
      : device_{device},
        pixels_{device.memory<std::uint32_t>(std::size_t{side} * side, {"the picture", false})},
        picture_{Picture::of_all(pixels_.data(), side, side, kSteps)},
        row_(side) {
    for (std::uint32_t y = 0; y < side; y += kRowsApart) {
      for (std::uint32_t x = 0; x < side; ++x) expected_.push_back(picture_.steps_at(x, y));
    }
  }
  const Picture& picture() const { return picture_; }
  void clear() const {
    const Stream stream = device_.stream();
    device_.fill(pixels_.data(), 0xff, pixels_.size_bytes(), stream);
    stream.synchronize();
  }
  std::uint64_t check() {
    const std::uint32_t side = picture_.width;
    std::uint64_t different = 0;
    for (std::uint32_t y = 0; y < side; y += kRowsApart) {
      device_.copy(row_.data(), pixels_.data() + std::size_t{y} * side, row_.size() * sizeof row_[0]);
      const std::uint32_t* const expected = expected_.data() + std::size_t{y / kRowsApart} * side;
      for (std::uint32_t x = 0; x < side; ++x) different += row_[x] != expected[x] ? 1 : 0;
    }
    return different * 1000 <= expected_.size() ? 1 : 0;
  }

 private:
  const Device device_;
  DeviceArray<std::uint32_t> pixels_;
  const Picture picture_;
  std::vector<std::uint32_t> row_, expected_;
};

class DrawProgram final : public Program {
 public:
  DrawProgram(const Device& device, std::shared_ptr<Drawing> drawing, const tasks::Options& options)
      : drawing_{std::move(drawing)}, picture_{device.memory<Picture>(1)}, tasks_{device, options} {
    device.copy(picture_.data(), &drawing_->picture(), sizeof(Picture));
  }
  void prepare() override { drawing_->clear(); }
  std::uint64_t run() override {
    const std::uint32_t side = drawing_->picture().width;
    tasks_.run(Rectangle{picture_.data(), 0, 0, side, side});
    return 0;
  }
  std::uint64_t check(std::uint64_t) override { return drawing_->check(); }
  const tasks::Report& report() const override { return tasks_.report(); }

 private:
  const std::shared_ptr<Drawing> drawing_;
  DeviceArray<Picture> picture_;
  tasks::ForkJoin<Rectangle> tasks_;
};

}  // namespace

nlohmann::json take_mandelbrot(const Bench& bench) {
  const auto side = static_cast<std::uint32_t>(bench.sizes.mandelbrot);
  const auto drawing = std::make_shared<Drawing>(bench.device, side);
  std::vector<Side> sides = {
      side_of("esker", std::make_shared<DrawProgram>(bench.device, drawing, bench.options()))};
#if defined(ESKER_BENCH_LAUNCHES)
  if (bench.is_on_gpu()) {
    sides.push_back({"dynamic parallelism", [drawing, draw = draw_by_launches(drawing->picture())] {
                       drawing->clear();
                       Outcome outcome = timed([&] {
                         draw();
                         return 0;
                       });
                       outcome.result = drawing->check();
                       return outcome;
                     }});
  }
#endif
  nlohmann::json turns = take_turns(fmt::format("mandelbrot({})", side), 1, static_cast<double>(side) * side,
                                    sides, bench.effort, "pixels");
  add_ratios(turns);
  return {{"cases", {turns}}};
}

}  // namespace esker::bench
