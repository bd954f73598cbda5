// An array that is encoded frame by frame, by the pipeline or by what it is compared with (XeFlow, figure
// 16): a stage on the host reads, one on the device encodes, one on the host writes.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include <esker/device.hpp>

#include "application.hpp"
#include "baselines.hpp"

namespace pipe_apps {

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
  std::uint64_t frames() const { return frames_; }

  /// Encodes all; returns the seconds. In-place: frames stay where they are in the arrays. Else the stages of
  /// the host copy from and to the arrays, as they would from and to files.
  template <class F>
  double run(const F& encode, const Team& team, bool in_place) const {
    FrameRun<In, Out> run;
    run.frames = frames_;
    run.in_items = in_items_;
    run.out_items = out_items_;
    run.team = team;
    run.in_place = in_place;
    run.read = [&](Frame<In>& in, Frame<Out>& out) {
      if (in_place) {
        in.data = input_.data() + in.number * in_items_;
        out.data = output_.data() + in.number * out_items_;
      } else {
        std::memcpy(in.data, input_.data() + in.number * in_items_, in_items_ * sizeof(In));
      }
      in.count = in_items_;
    };
    run.write = [&](const Frame<const Out>& out) {
      if (!in_place)
        std::memcpy(output_.data() + out.number * out_items_, out.data, out_items_ * sizeof(Out));
    };
    return run_baseline(device_, options_, run, encode);
  }

 private:
  const esker::Device& device_;
  const Options& options_;
  std::uint64_t frames_;
  std::uint32_t in_items_, out_items_;
  esker::PinnedArray<In> input_;
  esker::PinnedArray<Out> output_;
};

}  // namespace pipe_apps
