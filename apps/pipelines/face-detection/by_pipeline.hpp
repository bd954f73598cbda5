// The pipeline: the host reads pictures in bands; the device scales them, codes them, scans them and
// classifies what is left; the host groups what was found.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "../../harness/json.hpp"
#include "../application.hpp"
#include "../device_teams.hpp"
#include "picture.hpp"
#include "serial.hpp"
#include "stages.hpp"

namespace faces {

/// The last stage, which reduces the windows of a picture to faces.
///
/// Contract add() on one thread, in the order of the topic; is_free() on any.
class Collector {
 public:
  Collector(std::uint32_t slots, std::vector<Detections>& found) : next_(slots), found_{found} {
    for (std::uint32_t slot = 0; slot < slots; ++slot) next_[slot].store(slot, std::memory_order_relaxed);
  }
  void add(const Window& window) {
    const std::uint32_t picture = next_[window.slot].load(std::memory_order_relaxed);
    Detections& detections = found_[picture];
    if (window.level != Window::kDone) {
      detections.windows.push_back(box_of(window.level, window.x, window.y));
      return;
    }
    detections.faces = grouped(detections.windows);
    next_[window.slot].store(picture + static_cast<std::uint32_t>(next_.size()),
                             std::memory_order_release);  // [slot]
  }
  std::uint32_t slot_of(std::uint32_t picture) const {
    return picture % static_cast<std::uint32_t>(next_.size());
  }
  /// The picture that had its slot before it is done.
  bool is_free(std::uint32_t picture) const {
    return next_[slot_of(picture)].load(std::memory_order_acquire) == picture;  // [slot]
  }

 private:
  std::vector<std::atomic<std::uint32_t>> next_;  // the picture that is in a slot, or will be
  std::vector<Detections>& found_;
};

class ByPipeline {
 public:
  ByPipeline(const esker::Device& device, const pipe_apps::Options& options,
             const std::vector<Picture>& pictures, const Pyramid& pyramid, const Cascade& cascade,
             std::uint32_t under_way)
      : device_{device},
        options_{options},
        pictures_{pictures},
        pyramid_{pyramid},
        memory_{device, pyramid, cascade, under_way} {}

  /// Frames of the topic of bands to scale. It is in a loop, where nobody waits for room, and no bound is
  /// known on how long a team keeps a frame after its last effect: so it has room for all of the run, and
  /// those outside of the loop, who leave half of it free, have, too.
  static std::uint64_t loop_frames(const Pyramid& pyramid, std::uint64_t pictures) {
    return std::max<std::uint64_t>(2 * pictures * pyramid.n_bands, 2);
  }

  double run(std::vector<Detections>& found) {
    pipeline::Pipeline p(device_, options_.pipeline_options());
    const auto topic_of = [&]<class T>(const char* name, std::uint64_t items, std::uint64_t frames, T) {
      pipeline::TopicOptions topic = options_.topic_options(name);
      topic.frame_bytes = items * sizeof(T);
      topic.frames = static_cast<std::uint32_t>(frames);
      return p.topic<T>(topic);
    };
    const std::uint64_t band_pixels = std::uint64_t{pyramid_.band_rows} * pyramid_.levels[0].width;
    // A window for each lane of a team, at most.
    const std::uint64_t windows =
        std::clamp<std::uint64_t>(options_.frame_bytes / sizeof(Window), 1, options_.group_lanes);
    const auto rows = topic_of("rows", band_pixels, options_.frames, std::uint8_t{});
    Outputs<pipeline::Topic<Band>, pipeline::Topic<Window>> out{
        topic_of("to scale", 1, loop_frames(pyramid_, pictures_.size()), Band{}),
        topic_of("to code", 1, options_.frames, Band{}),
        topic_of("to scan", 1, options_.frames, Band{}),
        {}};
    const char* const names[Cascade::kStages] = {"passed 1", "passed 2", "passed 3", "found"};
    for (std::uint32_t i = 0; i < Cascade::kStages; ++i)
      out.passed[i] = topic_of(names[i], windows, options_.frames, Window{});
    const auto& found_windows = out.passed[Cascade::kStages - 1];

    memory_.reset();
    const Workspace work = memory_.view();
    using Out = decltype(out);
    Collector collector(memory_.slots(), found);
    const std::uint32_t bands = pyramid_.bands_of({0, pyramid_.levels[0].height}).count();
    std::atomic<std::uint64_t> next{0};
    const auto read = [&](auto& stage) {
      const std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
      const auto picture = static_cast<std::uint32_t>(number / bands),
                 band = static_cast<std::uint32_t>(number % bands);
      if (picture >= pictures_.size()) return false;
      // Not by a topic of free slots: that would close a loop around all stages, where nobody waits for room.
      while (!collector.is_free(picture)) {
        if (stage.stop_requested()) return false;
        std::this_thread::sleep_for(std::chrono::microseconds{20});
      }
      auto frame = stage.open(rows);
      if (frame.data == nullptr) return false;
      const Rows of_band = pyramid_.rows_of(Step::kCode, 0, band);
      const std::size_t width = pyramid_.levels[0].width;
      frame.count = static_cast<std::uint32_t>(of_band.count() * width);
      frame.tag = Store<Out>::tag_of(collector.slot_of(picture), band);
      std::memcpy(frame.data, &pictures_[picture].pixels[of_band.first * width], frame.count);
      stage.publish(rows, frame);
      return true;
    };
    const auto group = [&](auto&, const Window& window) { collector.add(window); };
    const auto classify = [&](const char* name, std::uint32_t number) {
      const auto stage = pipeline::on_device::items(name, Classify<Out>{work, out, number})
                             .from(out.passed[number - 1])
                             .into(out.passed[number]);
      return number + 1 == Cascade::kStages ? stage : stage.into(found_windows);
    };
    static_assert(Cascade::kStages == 4, "a stage of the pipeline each");
    const pipeline::Report& report = p.run(
        pipeline::on_host::source("read", read)
            .into(rows)
            .workers(static_cast<std::uint32_t>(options_.workers)),
        pipeline::on_device::frames("store", Store<Out>{work, out}).from(rows).into(out.scale, out.code),
        pipeline::on_device::frames("scale", Scale<Out>{work, out}).from(out.scale).into(out.scale, out.code),
        pipeline::on_device::frames("code", Code<Out>{work, out})
            .from(out.code)
            .into(out.scan, found_windows),
        pipeline::on_device::frames("scan", Scan<Out>{work, out})
            .from(out.scan)
            .into(out.passed[0], found_windows)
            .workers(pipe_apps::device_teams(device_)),
        classify("classify 2", 1), classify("classify 3", 2), classify("classify 4", 3),
        pipeline::on_host::items("group", group).from(found_windows));
    report_ = nlohmann::json::parse(report.json());
    return std::chrono::duration<double>(report.time).count();
  }
  /// Of the last run.
  const nlohmann::json& report() const { return report_; }

 private:
  const esker::Device& device_;
  const pipe_apps::Options& options_;
  const std::vector<Picture>& pictures_;
  const Pyramid pyramid_;
  WorkspaceMemory memory_;
  nlohmann::json report_;
};

}  // namespace faces
