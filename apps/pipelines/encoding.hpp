// An array that is encoded frame by frame, by the pipeline or by what it is compared with (XeFlow, figure
// 16): a stage on the host reads, one on the device encodes, one on the host writes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "../harness/json.hpp"
#include "application.hpp"
#include "baselines.hpp"

namespace pipe_apps {

/// A frame that stays where it is, in pinned memory.
template <class In, class Out>
struct FramePlace {
  const In* in;
  Out* out;
};
/// Encodes such frames. What it hands on says no more than that they are done.
template <class In, class Out, class F>
struct EncodeInPlace {
  F encode;
  std::uint32_t in_items, out_items;

  template <class Stage>
  ESKER_HD void operator()(Stage& stage, const Frame<const FramePlace<In, Out>>& in,
                           Frame<std::uint32_t>& out) const {
    for (std::uint32_t i = 0; i < in.count; ++i) {
      const FramePlace<In, Out> place = in[i];
      const Frame<const In> from{place.in, in_items, in_items, in.number, in.tag};
      Frame<Out> to{place.out, in_items, out_items, in.number, in.tag};
      encode(stage, from, to);
      if (stage.lane() == 0) out[i] = to.count;
    }
  }
};

/// State    Input and output, in pinned memory; whole frames.
/// Contract run() any number of times, with a function as run_baseline() takes it.
template <class In, class Out>
class Encoding {
 public:
  Encoding(const esker::Device& device, const Options& options, std::uint64_t frames, std::uint32_t in_items,
           std::uint32_t out_items)
      : device_{device},
        options_{options},
        frames_{frames},
        in_items_{in_items},
        out_items_{out_items},
        input_{device.pinned<In>(frames * in_items, {"the input"})},
        output_{device.pinned<Out>(frames * out_items, {"the output"})} {}

  std::span<In> input() const { return input_.span(); }
  std::span<Out> output() const { return output_.span(); }
  /// Of the pipeline's last run; null before.
  const nlohmann::json& report() const { return report_; }

  /// Encodes all; returns the seconds. `in_place`: frames stay where they are in the arrays. Else the stages
  /// of the host copy from and to the arrays, as they would from and to files. `parts`: teams that work on a
  /// frame, of a function that makes an item of each, by itself.
  template <class F>
  double run(const F& encode, const Team& team, std::uint32_t parts, bool in_place) {
    if (options_.scheme != Scheme::kEsker) return run_compared(encode, team, in_place);
    return in_place ? run_in_place(encode) : run_pipeline(encode, parts);
  }

 private:
  template <class F>
  double run_compared(const F& encode, const Team& team, bool in_place) const {
    FrameRun<In, Out> run;
    run.frames = frames_;
    run.in_items = in_items_;
    run.out_items = out_items_;
    run.team = team;
    run.in_place = in_place;
    run.read = [&](Frame<In>& in, Frame<Out>& out) {
      if (in_place) {
        in.data = input_of(in.number);
        out.data = output_of(in.number);
      } else {
        std::memcpy(in.data, input_of(in.number), in_items_ * sizeof(In));
      }
      in.count = in_items_;
    };
    run.write = [&](const Frame<const Out>& out) {
      if (!in_place) std::memcpy(output_of(out.number), out.data, out_items_ * sizeof(Out));
    };
    return run_baseline(device_, options_, run, encode);
  }

  template <class F>
  double run_pipeline(const F& encode, std::uint32_t parts) {
    namespace pipeline = esker::pipeline;
    pipeline::Pipeline p(device_, options_.pipeline_options());
    pipeline::TopicOptions to = options_.topic_options("encoded");
    to.frame_bytes = out_items_ * sizeof(Out);
    const auto plain = p.topic<In>(options_.topic_options("plain"));
    const auto encoded = p.topic<Out>(to);
    std::atomic<std::uint64_t> next{0};
    const auto read = [&](auto& stage) {
      const std::uint64_t number = next.fetch_add(1, std::memory_order_relaxed);
      if (number >= frames_) return false;
      auto frame = stage.open(plain);
      if (frame.data == nullptr) return false;
      std::memcpy(frame.data, input_of(number), in_items_ * sizeof(In));
      frame.count = in_items_;
      frame.tag = number;
      stage.publish(plain, frame);
      return true;
    };
    const auto write = [&](auto&, const Frame<const Out>& frame) {
      std::memcpy(output_of(frame.tag), frame.data, frame.count * sizeof(Out));
    };
    return seconds_of(
        p.run(pipeline::on_host::source("read", read).into(plain).workers(host_threads()),
              pipeline::on_device::map("encode", plain, encoded, encode).parts(parts).workers(device_teams()),
              pipeline::on_host::frames("write", write).from(encoded).workers(host_threads())));
  }

  template <class F>
  double run_in_place(const F& encode) {
    namespace pipeline = esker::pipeline;
    using Place = FramePlace<In, Out>;
    pipeline::Pipeline p(device_, options_.pipeline_options());
    pipeline::TopicOptions of = options_.topic_options("places");
    of.frame_bytes = sizeof(Place);
    const auto places = p.topic<Place>(of);
    of.name = "done";
    const auto done = p.topic<std::uint32_t>(of);
    std::uint64_t next = 0;
    const auto read = [&](auto& stage) {
      if (next == frames_) return false;
      auto frame = stage.open(places);
      if (frame.data == nullptr) return false;
      frame[0] = {input_of(next), output_of(next)};
      frame.count = 1;
      stage.publish(places, frame);
      ++next;
      return true;
    };
    const auto see = [](auto&, const Frame<const std::uint32_t>&) {};
    return seconds_of(p.run(pipeline::on_host::source("read", read).into(places),
                            pipeline::on_device::map("encode", places, done,
                                                     EncodeInPlace<In, Out, F>{encode, in_items_, out_items_})
                                .workers(device_teams()),
                            pipeline::on_host::frames("see", see).from(done)));
  }

  In* input_of(std::uint64_t frame) const { return input_.data() + frame * in_items_; }
  Out* output_of(std::uint64_t frame) const { return output_.data() + frame * out_items_; }
  std::uint32_t host_threads() const { return static_cast<std::uint32_t>(options_.workers); }
  /// Of the stage on the device: all that fit a GPU; on the CPU a thread a core.
  std::uint32_t device_teams() const {
    return device_.backend() == esker::Backend::kCpu ? device_.properties().processors : 0;
  }
  double seconds_of(const esker::pipeline::Report& report) {
    report_ = nlohmann::json::parse(report.json());
    return std::chrono::duration<double>(report.time).count();
  }

  const esker::Device& device_;
  const Options& options_;
  std::uint64_t frames_;
  std::uint32_t in_items_, out_items_;
  esker::PinnedArray<In> input_;
  esker::PinnedArray<Out> output_;
  nlohmann::json report_;
};

}  // namespace pipe_apps
