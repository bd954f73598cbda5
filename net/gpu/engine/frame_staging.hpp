// Laying out a frame of the network for the device, and the frame that the replies to its requests are.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/aggregator/wire.hpp>
#include <esker/net/gpu/frame_layout.hpp>

namespace esker::gpu {

/// Writes the table of the chunks of a frame, which find_defect() has passed, into a slot of that layout:
/// each run as chunks of at most kChunkMessages messages. Returns how many chunks; the table starts that many
/// in front of the frame. `slot` is aligned to 8 bytes.
///
/// The replies to its requests are a frame of PE `pe`, of which all but the messages is written to `replies`:
/// a run for each run of requests. Without requests it has no runs. Error{kNetwork} if it is longer than a
/// frame.
std::uint32_t cut_frame(const wire::FrameHeader& header, const std::byte* frame, const FrameLayout& layout,
                        std::byte* slot, std::uint32_t pe, std::byte* replies);

}  // namespace esker::gpu
