// Copy-kernel-copy, by esker::Device: the calls of the vendor's runtime and nothing more.
#include "rivals.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "words.hpp"

namespace esker::bench {

namespace {
using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}
LaunchShape shape_of(std::uint64_t quads) { return {std::clamp<std::uint64_t>(quads, 32, 1 << 18), 256}; }
}  // namespace

double copy_kernel_copy(const Device& device, std::uint64_t frame_bytes, std::uint64_t frames,
                        std::uint32_t streams) {
  const std::uint64_t quads = frame_bytes / sizeof(Quad);
  struct Way {
    Stream stream;
    DeviceArray<Quad> in, out;
    PinnedArray<Quad> host_in, host_out;
  };
  std::vector<Way> ways;
  for (std::uint32_t s = 0; s < streams; ++s) {
    ways.push_back({device.stream(), device.memory<Quad>(quads), device.memory<Quad>(quads),
                    device.pinned<Quad>(quads), device.pinned<Quad>(quads)});
    fill_slot(ways.back().host_in.data(), quads, s);
  }
  const auto began = Clock::now();
  for (std::uint64_t f = 0; f < frames; ++f) {
    const Way& way = ways[f % streams];
    device.copy_async(way.in.data(), way.host_in.data(), quads * sizeof(Quad), way.stream);
    device.launch(shape_of(quads),
                  DoubleKernel{way.in.data(), way.out.data(), static_cast<std::uint32_t>(quads)}, way.stream);
    device.copy_async(way.host_out.data(), way.out.data(), quads * sizeof(Quad), way.stream);
    if (streams == 1) way.stream.synchronize();
  }
  for (const Way& way : ways) way.stream.synchronize();
  const double seconds = seconds_since(began);
  for (std::uint32_t s = 0; s < std::min<std::uint64_t>(streams, frames); ++s) {
    if (!is_right(ways[s].host_out.data(), quads, s, 2, true))
      throw std::runtime_error("copy-kernel-copy gave a wrong word");
  }
  return seconds;
}

double kernel_over_managed(const Device& device, std::uint64_t frame_bytes, std::uint64_t frames) {
  const std::uint64_t quads = frame_bytes / sizeof(Quad);
  const Stream stream = device.stream();
  const ManagedArray<Quad> in = device.managed<Quad>(quads), out = device.managed<Quad>(quads);
  const auto began = Clock::now();
  for (std::uint64_t f = 0; f < frames; ++f) {
    // Either side touches each page of a frame, as it would with a new one.
    for (std::uint64_t i = 0; i < quads; i += 256) in[i].words[0] = word_of(f, 4 * i);
    device.launch(shape_of(quads), DoubleKernel{in.data(), out.data(), static_cast<std::uint32_t>(quads)},
                  stream);
    stream.synchronize();
    for (std::uint64_t i = 0; i < quads; i += 256) {
      if (out[i].words[0] != 2 * word_of(f, 4 * i))
        throw std::runtime_error("managed memory gave a wrong word");
    }
  }
  return seconds_since(began);
}

}  // namespace esker::bench
