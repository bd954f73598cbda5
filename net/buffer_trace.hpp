// What the network's owner counts of each buffer on its way, and where there is a tracer leaves as events.
#pragma once

#include <cstdint>

#include <esker/aggregator/buffer.hpp>
#include <esker/aggregator/trace.hpp>
#include <esker/aggregator/wire.hpp>
#include <esker/net/stage_counters.hpp>

namespace esker {

/// Contract. The network's owner calls; counters() is for any thread. Control frames are not followed.
class BufferTrace {
 public:
  explicit BufferTrace(Tracer* tracer) : tracer_{tracer} {}

  /// Frames are applied by a GPU, several at a time: their spans are the owner's to leave. Host threads leave
  /// their own.
  void set_applied_elsewhere() { applied_elsewhere_ = true; }

  void name_thread() const;
  /// The buffer has its sequence number; `stays`: on this PE.
  void routed(Buffer& buffer, const wire::FrameHeader& header, bool stays);
  void send_begins(const Buffer& buffer, std::uint32_t under_way) {
    send(buffer, TracePhase::kAsyncBegin, buffer.journey.taken_ns, under_way);
  }
  void send_ends(const Buffer& buffer, std::int64_t now, std::uint32_t under_way);
  void received(const wire::FrameHeader& header, std::int64_t taken_ns);
  void applied(const wire::FrameHeader& header, std::int64_t taken_ns);

  const StageCounters& counters() const { return counters_; }

 private:
  void send(const Buffer& buffer, TracePhase phase, std::int64_t at_ns, std::uint32_t under_way);

  Tracer* const tracer_;
  bool applied_elsewhere_ = false;
  StageCounters counters_;
};

}  // namespace esker
