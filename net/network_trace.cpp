// What the network's owner counts and traces of each buffer.
#include <esker/net/network.hpp>

#include <cstring>

namespace esker {
namespace {

BufferId id_of(const wire::FrameHeader& header) {
  return {header.source, header.destination, header.sequence};
}

}  // namespace

void Network::enter_thread() {
  if (device_ != nullptr) use_fine_timers();
  if (settings_.tracer != nullptr) settings_.tracer->name_thread("network");
}

void Network::now_waits_for(const char* what) {
  const char* const before = doing_.exchange(what, std::memory_order_relaxed);
  if (settings_.tracer == nullptr || before == what) return;
  const std::int64_t now = steady_ns();
  if (*before != 0) {
    TraceEvent event{};
    event.at_ns = doing_since_ns_;
    event.duration_ns = now - event.at_ns;
    event.text = before;
    event.track = settings_.tracer->track();
    event.what = TraceWhat::kWait;
    event.phase = TracePhase::kSpan;
    settings_.tracer->add(event);
  }
  doing_since_ns_ = now;
}

void Network::trace_routed(Buffer& buffer, const wire::FrameHeader& header, bool local) {
  BufferJourney& journey = buffer.journey;
  stages_.gather.record(journey.closed_ns - journey.opened_ns);
  stages_.fill.record(buffer.used, buffer.capacity);
  if (local) journey.taken_ns = steady_ns();
  if (settings_.tracer != nullptr) settings_.tracer->add_journey(journey, id_of(header));
}

void Network::trace_shipped(const Buffer& buffer, TracePhase phase, std::int64_t at_ns) {
  Tracer* const tracer = settings_.tracer;
  if (tracer == nullptr || buffer.messages == 0) return;  // control frames are not followed
  wire::FrameHeader header;
  std::memcpy(&header, buffer.bytes.get(), sizeof header);
  if (phase == TracePhase::kAsyncBegin) {
    const std::uint32_t track = tracer->track();
    tracer->add({at_ns,
                 steady_ns() - at_ns,
                 nullptr,
                 id_of(header),
                 {buffer.messages, buffer.used},
                 track,
                 TraceWhat::kShip,
                 TracePhase::kSpan});
    tracer->add_flow(TracePhase::kFlowStep, id_of(header), at_ns, track);
  }
  tracer->add_async(TraceWhat::kSend, phase, id_of(header), at_ns);
  tracer->add_counter(TraceWhat::kBuffersOut, queued_ + in_flight_);
}

void Network::trace_received(const wire::FrameHeader& header, std::int64_t taken_ns) {
  Tracer* const tracer = settings_.tracer;
  if (tracer == nullptr) return;
  const std::uint32_t track = tracer->track();
  tracer->add({taken_ns,
               steady_ns() - taken_ns,
               nullptr,
               id_of(header),
               {header.messages, header.bytes},
               track,
               TraceWhat::kReceive,
               TracePhase::kSpan});
  tracer->add_flow(TracePhase::kFlowStep, id_of(header), taken_ns, track);
}

void Network::trace_applied(const wire::FrameHeader& header, std::int64_t taken_ns) {
  const std::int64_t now = steady_ns();
  stages_.apply.record(now - taken_ns);
  // Host threads have left a span each; the device's progress kernels take several frames at a time.
  Tracer* const tracer = settings_.tracer;
  if (tracer == nullptr || !device_applies_) return;
  tracer->add_async(TraceWhat::kApply, TracePhase::kAsyncBegin, id_of(header), taken_ns);
  tracer->add_async(TraceWhat::kApply, TracePhase::kAsyncEnd, id_of(header), now);
  tracer->add_flow(TracePhase::kFlowEnd, id_of(header), taken_ns, tracer->track());
}

}  // namespace esker
