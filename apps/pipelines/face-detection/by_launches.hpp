// What the pipeline is compared with: a picture is copied to the device, a launch for each level scales it,
// one codes all levels, one scans them, and one for each later stage of the cascade classifies what is left.
// The windows that were found are copied back (the scheme of Hetero-Mark; HiWayLib, section 4).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <vector>

#include <esker/device.hpp>
#include <esker/lane.hpp>

#include "../../harness/application.hpp"
#include "../application.hpp"
#include "picture.hpp"
#include "serial.hpp"
#include "workspace.hpp"

namespace faces {

namespace detail {

/// In the device's memory, with room for all windows of a picture.
struct WindowList {
  Window* windows;
  Workspace::Count* count;

  ESKER_HD void add(const Window& window) const { windows[count->fetch_add_relaxed(1)] = window; }
};

/// A lane a pixel of one level.
struct ScaleKernel {
  Workspace work;
  std::uint32_t slot, level;

  ESKER_HD void operator()(esker::Lane lane) const {
    const std::uint32_t width = work.level(level).width, above = work.level(level - 1).width;
    const auto i = static_cast<std::uint32_t>(lane.global_id());
    work.pixels_of(slot, level)[i] =
        scaled_pixel(work.pixels_of(slot, level - 1), above, i % width, i / width);
  }
};
/// function(level's number, x, y) for pixel i of all levels.
template <class Function>
ESKER_HD void with_place(const Pyramid& pyramid, std::uint32_t i, const Function& function) {
  std::uint32_t l = pyramid.n_levels - 1;
  while (i < pyramid.levels[l].first_pixel) --l;
  const std::uint32_t in_level = i - pyramid.levels[l].first_pixel, width = pyramid.levels[l].width;
  if (in_level < width * pyramid.levels[l].height) function(l, in_level % width, in_level / width);
}
/// A lane a pixel of all levels.
struct CodeKernel {
  Workspace work;
  std::uint32_t slot;

  ESKER_HD void operator()(esker::Lane lane) const {
    with_place(*work.pyramid, static_cast<std::uint32_t>(lane.global_id()),
               [this](std::uint32_t l, std::uint32_t x, std::uint32_t y) {
                 const Level& level = work.level(l);
                 if (x == 0 || y == 0 || x + 1 == level.width || y + 1 == level.height) return;
                 work.codes_of(slot, l)[std::size_t{y} * level.width + x] =
                     code_of(work.pixels_of(slot, l), level.width, x, y);
               });
  }
};
/// Likewise: the window whose upper left is there, if there is one.
struct ScanKernel {
  Workspace work;
  std::uint32_t slot;
  WindowList passed;

  ESKER_HD void operator()(esker::Lane lane) const {
    with_place(*work.pyramid, static_cast<std::uint32_t>(lane.global_id()),
               [this](std::uint32_t l, std::uint32_t x, std::uint32_t y) {
                 if (x + kWindow > work.level(l).width || y + kWindow > work.level(l).height) return;
                 const Window window{static_cast<std::uint16_t>(slot), static_cast<std::uint16_t>(l),
                                     static_cast<std::uint16_t>(x), static_cast<std::uint16_t>(y)};
                 if (work.passes(0, window)) passed.add(window);
               });
  }
};
/// Any number of lanes: they share the windows of a list, whose number the host does not know.
struct ClassifyKernel {
  Workspace work;
  std::uint32_t stage, lanes;
  WindowList from, passed;

  ESKER_HD void operator()(esker::Lane lane) const {
    const std::uint32_t n = from.count->load_relaxed();
    for (auto i = static_cast<std::uint32_t>(lane.global_id()); i < n; i += lanes) {
      if (work.passes(stage, from.windows[i])) passed.add(from.windows[i]);
    }
  }
};

}  // namespace detail

/// The schemes that ByLaunches knows: run_baseline()'s.
class ByLaunches {
 public:
  ByLaunches(const esker::Device& device, const pipe_apps::Options& options,
             const std::vector<Picture>& pictures, const Pyramid& pyramid, const Cascade& cascade)
      : device_{device},
        scheme_{options.scheme},
        pictures_{pictures},
        pyramid_{pyramid},
        memory_{device, pyramid, cascade,
                scheme_ == pipe_apps::Scheme::kStreams ? static_cast<std::uint32_t>(options.streams) : 1,
                is_managed() ? WorkspaceMemory::Kind::kManaged : WorkspaceMemory::Kind::kDevice} {
    for (std::uint32_t slot = 0; slot < memory_.slots(); ++slot) turns_.push_back(make_turn());
  }

  double run(std::vector<Detections>& found) {
    const harness::Stopwatch watch;
    std::future<void> grouping;
    for (std::uint32_t picture = 0; picture < pictures_.size(); ++picture) {
      const std::uint32_t slot = picture % memory_.slots();
      if (picture >= memory_.slots()) take(slot, picture - memory_.slots(), found, grouping);
      start(slot, picture);
    }
    const auto n = static_cast<std::uint32_t>(pictures_.size());
    for (std::uint32_t picture = n - std::min(n, memory_.slots()); picture < n; ++picture)
      take(picture % memory_.slots(), picture, found, grouping);
    if (grouping.valid()) grouping.get();
    return watch.seconds();
  }

 private:
  static constexpr std::uint32_t kClassifyLanes = 1 << 14;

  /// A picture's stream and lists: windows that passed an even number of stages, and an odd one.
  struct Turn {
    esker::Stream stream;
    esker::PinnedArray<std::uint8_t> picture;
    esker::DeviceArray<Window> windows[2];
    esker::ManagedArray<Window> managed[2];
    esker::DeviceArray<Workspace::Count> counts;  // one a stage
    esker::PinnedArray<std::uint32_t> host_counts;
    esker::PinnedArray<Window> found;
  };

  bool is_managed() const { return scheme_ == pipe_apps::Scheme::kManaged; }

  Turn make_turn() const {
    Turn turn{device_.stream(),
              {},
              {},
              {},
              device_.memory<Workspace::Count>(Cascade::kStages),
              device_.pinned<std::uint32_t>(Cascade::kStages),
              {}};
    for (int i = 0; i < 2; ++i) {
      if (is_managed()) {
        turn.managed[i] = device_.managed<Window>(pyramid_.n_pixels, {"windows", false});
      } else {
        turn.windows[i] = device_.memory<Window>(pyramid_.n_pixels, {"windows", false});
      }
    }
    if (!is_managed()) {
      turn.picture = device_.pinned<std::uint8_t>(pictures_[0].pixels.size());
      turn.found = device_.pinned<Window>(pyramid_.n_pixels, {"windows that were found", false});
    }
    return turn;
  }
  /// Of the windows that have passed a stage.
  detail::WindowList list_of(const Turn& turn, std::uint32_t stage) const {
    const std::uint32_t i = stage % 2;
    return {is_managed() ? turn.managed[i].data() : turn.windows[i].data(), turn.counts.data() + stage};
  }

  /// Puts all that the device does with a picture into the turn's stream.
  void start(std::uint32_t slot, std::uint32_t picture) {
    const Turn& turn = turns_[slot];
    const Workspace work = memory_.view();
    const auto& pixels = pictures_[picture].pixels;
    if (is_managed()) {
      std::memcpy(work.pixels + std::size_t{slot} * pyramid_.n_pixels, pixels.data(), pixels.size());
    } else {
      std::memcpy(turn.picture.data(), pixels.data(), pixels.size());
      device_.copy_async(work.pixels + std::size_t{slot} * pyramid_.n_pixels, turn.picture.data(),
                         pixels.size(), turn.stream);
    }
    device_.fill(turn.counts.data(), 0, turn.counts.size_bytes(), turn.stream);
    for (std::uint32_t l = 1; l < pyramid_.n_levels; ++l) {
      const Level& level = pyramid_.levels[l];
      device_.launch(std::uint64_t{level.width} * level.height, detail::ScaleKernel{work, slot, l},
                     turn.stream);
    }
    device_.launch(pyramid_.n_pixels, detail::CodeKernel{work, slot}, turn.stream);
    device_.launch(pyramid_.n_pixels, detail::ScanKernel{work, slot, list_of(turn, 0)}, turn.stream);
    const std::uint32_t lanes =
        device_.backend() == esker::Backend::kCpu ? device_.properties().processors : kClassifyLanes;
    for (std::uint32_t stage = 1; stage < Cascade::kStages; ++stage) {
      device_.launch(
          lanes, detail::ClassifyKernel{work, stage, lanes, list_of(turn, stage - 1), list_of(turn, stage)},
          turn.stream);
    }
    device_.copy_async(turn.host_counts.data(), turn.counts.data(), turn.counts.size_bytes(), turn.stream);
  }
  /// Waits for a picture, and groups what was found: of chunks on another thread, while the device goes on.
  void take(std::uint32_t slot, std::uint32_t picture, std::vector<Detections>& found,
            std::future<void>& grouping) {
    constexpr std::uint32_t kLast = Cascade::kStages - 1;
    const Turn& turn = turns_[slot];
    turn.stream.synchronize();
    const std::uint32_t n = turn.host_counts[kLast];
    const Window* windows = list_of(turn, kLast).windows;
    if (!is_managed() && n != 0) {
      device_.copy_async(turn.found.data(), windows, n * sizeof(Window), turn.stream);
      turn.stream.synchronize();
      windows = turn.found.data();
    }
    Detections& detections = found[picture];
    for (std::uint32_t i = 0; i < n; ++i)
      detections.windows.push_back(box_of(windows[i].level, windows[i].x, windows[i].y));
    if (scheme_ != pipe_apps::Scheme::kChunks) {
      detections.faces = grouped(detections.windows);
      return;
    }
    if (grouping.valid()) grouping.get();
    grouping =
        std::async(std::launch::async, [&detections] { detections.faces = grouped(detections.windows); });
  }

  const esker::Device& device_;
  const pipe_apps::Scheme scheme_;
  const std::vector<Picture>& pictures_;
  const Pyramid pyramid_;
  WorkspaceMemory memory_;
  std::vector<Turn> turns_;
};

}  // namespace faces
