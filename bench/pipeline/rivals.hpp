// What people do without a library: a copy, a kernel and a copy for each frame.
#pragma once

#include <cstdint>

#include <esker/device.hpp>

namespace esker::bench {

/// Doubles `frames` frames of so many bytes by copy-kernel-copy on `streams` streams; with one stream it
/// waits after each frame. Verified. Returns seconds.
double copy_kernel_copy(const Device& device, std::uint64_t frame_bytes, std::uint64_t frames,
                        std::uint32_t streams);
/// The same by kernels over managed memory, one a frame.
double kernel_over_managed(const Device& device, std::uint64_t frame_bytes, std::uint64_t frames);
#if defined(ESKER_BENCH_GRAPHS)
/// The same by CUDA graphs of 8 branches, each a copy, a kernel and a copy.
double graph_of_branches(std::uint64_t frame_bytes, std::uint64_t frames);
#endif

}  // namespace esker::bench
