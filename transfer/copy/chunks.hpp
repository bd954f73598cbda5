// Copies in chunks: a small one waits no longer than a few chunks of a large one.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <esker/device/device.hpp>
#include <esker/device/platform.hpp>
#include <esker/transfer/copy/copies.hpp>

namespace esker::transfer {

struct CopyQueueOptions {
  /// Of one copy alone in this direction (LinkRate): with `chunk_time` it gives the size of a chunk.
  double bytes_per_s = 0;
  std::chrono::nanoseconds chunk_time = std::chrono::microseconds(20);
  /// Chunks that the engine has at a time. One fewer is a chunk less to wait, and gaps between chunks.
  std::uint32_t chunks_in_flight = 3;
};

/// A copy that is waiting, under way or done.
class ESKER_API CopyTicket {
 public:
  struct State;
  explicit CopyTicket(std::shared_ptr<State> state) : state_{std::move(state)} {}
  bool is_done() const;
  /// Waits until it is. Throws what the device said went wrong first; nothing of the copy runs any more.
  void synchronize() const;

 private:
  std::shared_ptr<State> state_;
};

/// Copies of one direction between the host and a device, by priority.
///
/// A copy of normal priority goes to the device in chunks, a few at a time, by a thread of the queue. One of
/// high priority goes there at once, on a stream of its own, from the thread that calls. A copy engine takes
/// what it has in turn, and has no more than those few chunks: so high priority waits for chunks_in_flight *
/// chunk_time at most, beside others of its own.
///
/// Contract Any thread may call submit(). Copies of one priority are done in the order of the calls; those of
///          high priority overtake, so the two name other memory. What a copy reads stays as it is, and what
///          it writes is not read, until it is done. The thread sleeps while chunks are under way. Destroyed,
///          it first ends what it has. On the CPU a copy of high priority is done when submit() returns.
/// Errors   Error{kTransfer}: no bytes_per_s, no chunk_time, no chunks in flight; a copy without an address.
class ESKER_API CopyQueue {
 public:
  CopyQueue(const Device& device, const CopyQueueOptions& options);
  ~CopyQueue();
  CopyQueue(const CopyQueue&) = delete;
  CopyQueue& operator=(const CopyQueue&) = delete;

  CopyTicket submit(const Copy& copy, StreamPriority priority = StreamPriority::kNormal);
  std::size_t chunk_bytes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace esker::transfer
