// Laying out a frame of the network for the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <esker/aggregator/wire.hpp>
#include <esker/net/gpu/frame_layout.hpp>

namespace esker::gpu {

/// Writes the table of the chunks of a frame, which find_defect() has passed, into a slot of that layout:
/// each run as chunks of at most kChunkMessages messages. Returns how many chunks; the table starts that many
/// in front of the frame. `slot` is aligned to 8 bytes. Adds where replies will stand to `replies`.
std::uint32_t cut_frame(const wire::FrameHeader& header, const std::byte* frame, const FrameLayout& layout,
                        std::byte* slot, std::vector<ReplyRun>& replies);

}  // namespace esker::gpu
