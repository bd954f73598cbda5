// Where frames are applied: on the owner's thread, by helper threads, or by a GPU.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <esker/aggregator/wire.hpp>

namespace esker {

/// A frame that is to be applied. Helpers each go through the whole frame.
struct ApplyJob {
  wire::FrameHeader header;
  const std::byte* frame;
  std::uint64_t heap_bytes;         // when it arrived
  std::atomic<std::uint32_t> left;  // appliers that have not finished; [job] release / acquire
};

/// Contract. The network's owner calls, in the order of arrival. A job stays valid until its `left` is 0: on
///           return, or later.
/// Progress. Never waits.
class FrameApplier {
 public:
  virtual ~FrameApplier() = default;
  /// False: not now, and nothing of the job is begun.
  virtual bool try_submit(ApplyJob& job) = 0;
};

}  // namespace esker
