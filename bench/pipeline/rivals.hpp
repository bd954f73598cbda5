// What people do without a library: a copy, a kernel and a copy for each frame, by the calls of the vendor's
// runtime and nothing more.
//
// `Work` is what a frame is worked on by: work(in, out, quads, lane, lanes), ESKER_HD. `Slots` knows what
// frames hold: fill(at, quads, slot), and check(at, quads, slot, all), which throws if a result is wrong.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include <esker/device.hpp>
#include <esker/lane.hpp>

#include "words.hpp"

namespace esker::bench {

template <class Work>
struct QuadKernel {
  Work work;
  const Quad* in;
  Quad* out;
  std::uint32_t n;
  ESKER_HD void operator()(Lane lane) const {
    work(in, out, n, static_cast<std::uint32_t>(lane.global_id()), static_cast<std::uint32_t>(lane.lanes()));
  }
};
inline LaunchShape shape_of(std::uint64_t quads) {
  return {(std::clamp<std::uint64_t>(quads, 32, 1 << 18) + 31) / 32 * 32, 256};
}

struct CopyPlan {
  std::uint32_t streams = 1;
  bool returns_each_time = false;  // of several kernels: what one has made goes to the host and comes back
};
/// Works on `frames` frames of so many bytes by copy-kernel-copy on some streams; with one stream it
/// waits after each frame. `more`: kernels that follow, each on what the one before has made. Returns
/// seconds.
template <class Slots, class Work, class... More>
double by_copies(const Device& device, const Slots& slots, std::uint64_t frame_bytes, std::uint64_t frames,
                 const CopyPlan& plan, const Work& work, const More&... more) {
  using Clock = std::chrono::steady_clock;
  const std::uint64_t quads = frame_bytes / sizeof(Quad);
  const auto n = static_cast<std::uint32_t>(quads);
  struct Way {
    Stream stream;
    DeviceArray<Quad> memory[2];
    PinnedArray<Quad> host_in, host_out;
  };
  std::vector<Way> ways;
  for (std::uint32_t s = 0; s < plan.streams; ++s) {
    ways.push_back({device.stream(),
                    {device.memory<Quad>(quads), device.memory<Quad>(quads)},
                    device.pinned<Quad>(quads),
                    device.pinned<Quad>(quads)});
    slots.fill(ways.back().host_in.data(), quads, s);
  }
  const auto began = Clock::now();
  for (std::uint64_t f = 0; f < frames; ++f) {
    const Way& way = ways[f % plan.streams];
    Quad *in = way.memory[0].data(), *out = way.memory[1].data();
    device.copy_async(in, way.host_in.data(), quads * sizeof(Quad), way.stream);
    const auto launch = [&](const auto& one) {
      device.launch(shape_of(quads), QuadKernel<std::decay_t<decltype(one)>>{one, in, out, n}, way.stream);
      std::swap(in, out);
    };
    launch(work);
    [[maybe_unused]] const auto follow = [&](const auto& one) {
      if (plan.returns_each_time) {
        device.copy_async(way.host_out.data(), in, quads * sizeof(Quad), way.stream);
        device.copy_async(in, way.host_out.data(), quads * sizeof(Quad), way.stream);
      }
      launch(one);
    };
    (follow(more), ...);
    device.copy_async(way.host_out.data(), in, quads * sizeof(Quad), way.stream);
    if (plan.streams == 1) way.stream.synchronize();
  }
  for (const Way& way : ways) way.stream.synchronize();
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  for (std::uint32_t s = 0; s < std::min<std::uint64_t>(plan.streams, frames); ++s)
    slots.check(ways[s].host_out.data(), quads, s, true);
  return seconds;
}

/// The same by kernels over managed memory, one a frame. Either side touches each page of a frame, as it
/// would with a new one.
template <class Slots, class Work>
double over_managed(const Device& device, const Slots& slots, std::uint64_t frame_bytes, std::uint64_t frames,
                    const Work& work) {
  using Clock = std::chrono::steady_clock;
  constexpr std::uint64_t kPage = 4096 / sizeof(Quad);
  const std::uint64_t quads = frame_bytes / sizeof(Quad);
  const Stream stream = device.stream();
  const ManagedArray<Quad> in = device.managed<Quad>(quads), out = device.managed<Quad>(quads);
  std::vector<Quad> values(quads);
  slots.fill(values.data(), quads, 0);
  std::copy(values.begin(), values.end(), in.data());
  const auto began = Clock::now();
  std::uint32_t first = 0;
  for (std::uint64_t f = 0; f < frames; ++f) {
    for (std::uint64_t i = 0; i < quads; i += kPage) in[i] = values[i];
    device.launch(shape_of(quads),
                  QuadKernel<Work>{work, in.data(), out.data(), static_cast<std::uint32_t>(quads)}, stream);
    stream.synchronize();
    std::uint32_t sum = 0;
    for (std::uint64_t i = 0; i < quads; i += kPage) sum += out[i].words[0];
    if (f == 0) first = sum;
    if (sum != first) throw std::runtime_error("managed memory gave a wrong word");
    slots.check(out.data(), quads, 0, f + 1 == frames);
  }
  return std::chrono::duration<double>(Clock::now() - began).count();
}

/// Doubles words; verified.
double copy_kernel_copy(const Device& device, std::uint64_t frame_bytes, std::uint64_t frames,
                        std::uint32_t streams);
/// Doubles them n times, 1 to 4.
double chain_of_copies(const Device& device, std::uint64_t frame_bytes, std::uint64_t frames, std::uint32_t n,
                       const CopyPlan& plan);
double kernel_over_managed(const Device& device, std::uint64_t frame_bytes, std::uint64_t frames);
#if defined(ESKER_BENCH_GRAPHS)
/// The same by CUDA graphs of 8 branches, each a copy, a kernel and a copy.
double graph_of_branches(std::uint64_t frame_bytes, std::uint64_t frames);
#endif

}  // namespace esker::bench
