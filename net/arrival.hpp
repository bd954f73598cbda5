// A frame of messages that is to be applied here: one that has arrived, or a buffer that stays on this PE.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/aggregator/buffer.hpp>
#include <esker/aggregator/wire.hpp>
#include <esker/net/transport.hpp>

namespace esker {

/// The bytes stay valid until Shipping::finish() or release().
struct Arrival {
  wire::FrameHeader header;
  const std::byte* bytes = nullptr;
  Buffer* buffer = nullptr;  // this PE's own; null: `frame` is the transport's
  Frame frame;

  std::int64_t taken_ns() const { return buffer != nullptr ? buffer->journey.taken_ns : frame.taken_ns; }
};

}  // namespace esker
