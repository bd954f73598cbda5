// The events of a buffer's way through the network.
#include <esker/net/buffer_trace.hpp>

#include <cstring>

namespace esker {
namespace {

BufferId id_of(const wire::FrameHeader& header) {
  return {header.source, header.destination, header.sequence};
}

}  // namespace

void BufferTrace::name_thread() const {
  if (tracer_ != nullptr) tracer_->name_thread("network");
}

void BufferTrace::routed(Buffer& buffer, const wire::FrameHeader& header, bool stays) {
  BufferJourney& journey = buffer.journey;
  counters_.gather.record(journey.closed_ns - journey.opened_ns);
  counters_.fill.record(buffer.used, buffer.capacity);
  if (stays) journey.taken_ns = steady_ns();
  if (tracer_ != nullptr) tracer_->add_journey(journey, id_of(header));
}

void BufferTrace::send(const Buffer& buffer, TracePhase phase, std::int64_t at_ns, std::uint32_t under_way) {
  if (tracer_ == nullptr || buffer.messages == 0) return;
  wire::FrameHeader header;
  std::memcpy(&header, buffer.bytes.get(), sizeof header);
  if (phase == TracePhase::kAsyncBegin) {
    const std::uint32_t track = tracer_->track();
    tracer_->add({at_ns,
                  steady_ns() - at_ns,
                  nullptr,
                  id_of(header),
                  {buffer.messages, buffer.used},
                  track,
                  TraceWhat::kShip,
                  TracePhase::kSpan});
    tracer_->add_flow(TracePhase::kFlowStep, id_of(header), at_ns, track);
  }
  tracer_->add_async(TraceWhat::kSend, phase, id_of(header), at_ns);
  tracer_->add_counter(TraceWhat::kBuffersOut, under_way);
}

void BufferTrace::send_ends(const Buffer& buffer, std::int64_t now, std::uint32_t under_way) {
  counters_.send.record(now - buffer.journey.taken_ns);
  send(buffer, TracePhase::kAsyncEnd, now, under_way);
}

void BufferTrace::received(const wire::FrameHeader& header, std::int64_t taken_ns) {
  if (tracer_ == nullptr) return;
  const std::uint32_t track = tracer_->track();
  tracer_->add({taken_ns,
                steady_ns() - taken_ns,
                nullptr,
                id_of(header),
                {header.messages, header.bytes},
                track,
                TraceWhat::kReceive,
                TracePhase::kSpan});
  tracer_->add_flow(TracePhase::kFlowStep, id_of(header), taken_ns, track);
}

void BufferTrace::applied(const wire::FrameHeader& header, std::int64_t taken_ns) {
  const std::int64_t now = steady_ns();
  counters_.apply.record(now - taken_ns);
  if (tracer_ == nullptr || !applied_elsewhere_) return;
  tracer_->add_async(TraceWhat::kApply, TracePhase::kAsyncBegin, id_of(header), taken_ns);
  tracer_->add_async(TraceWhat::kApply, TracePhase::kAsyncEnd, id_of(header), now);
  tracer_->add_flow(TracePhase::kFlowEnd, id_of(header), taken_ns, tracer_->track());
}

}  // namespace esker
