// Tracks, and the spans that stages leave on them.
#include <esker/aggregator/trace.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <vector>

#include <esker/device/ranges.hpp>

namespace esker {
namespace {

constexpr std::uint32_t kChunkEvents = 256;

/// Tells tracers apart that stood at one address one after the other.
std::atomic<std::uint64_t> tracers_made{0};

/// The calling thread's track in the tracer that it used last.
struct LastTrack {
  std::uint64_t tracer = 0;
  void* track = nullptr;
};
thread_local LastTrack last_track;

std::uint32_t clamped(std::int64_t value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(value, 0, kMost));
}

}  // namespace

const std::array<TraceKind, kTraceWhats>& trace_kinds() {
  static constexpr std::array<TraceKind, kTraceWhats> kinds{{
      {"launch", nullptr, {"groups"}},
      {"run", nullptr, {}},
      {"publish", nullptr, {"messages", "command", "ticket"}},
      {"repack", nullptr, {"messages", "command", "ticket", "waited_ns"}},
      {"close", "why", {"destination", "messages", "bytes"}},
      {"gather", nullptr, {}},
      {"ship", nullptr, {"messages", "bytes"}},
      {"send", nullptr, {}},
      {"receive", nullptr, {"messages", "bytes"}},
      {"apply", nullptr, {"messages", "bytes"}},
      {"wait", nullptr, {}},
      {"packages in the queue", nullptr, {"packages"}},
      {"buffers out", nullptr, {"buffers"}},
      {"messages", nullptr, {}},
  }};
  return kinds;
}

struct Tracer::Track {
  struct Chunk {
    std::array<TraceEvent, kChunkEvents> events;
  };
  std::uint32_t index;
  std::thread::id thread;
  std::string name;                                                             // guarded by State::mutex
  std::array<std::unique_ptr<Chunk>, kMostEventsATrack / kChunkEvents> chunks;  // its thread's
  std::atomic<std::uint64_t> count{0};  // its thread's; [event] release / acquire
  std::atomic<std::uint64_t> dropped{0};
};

struct Tracer::State {
  struct Stamp {
    std::int64_t at_ns = 0;
    std::uint32_t track = 0;
  };
  std::uint64_t number;
  bool recording;
  std::uint32_t events_a_track;
  std::vector<Stamp> stamps;  // one a slot
  mutable std::mutex mutex;
  std::vector<std::unique_ptr<Track>> tracks;  // guarded by mutex
  std::set<std::string, std::less<>> texts;    // guarded by mutex
  std::atomic<std::uint64_t> dropped{0};       // of threads without a track
};

Tracer::Tracer(std::uint32_t slots, bool recording, std::uint32_t events_a_track)
    : state_{std::make_unique<State>()} {
  state_->number = tracers_made.fetch_add(1, std::memory_order_relaxed) + 1;
  state_->recording = recording;
  state_->events_a_track = std::min(events_a_track, kMostEventsATrack);
  state_->stamps.resize(slots);
}

Tracer::~Tracer() = default;

/// Null: there are too many threads.
Tracer::Track* Tracer::own_track() {
  if (last_track.tracer == state_->number) return static_cast<Track*>(last_track.track);
  const std::thread::id thread = std::this_thread::get_id();
  const std::lock_guard lock(state_->mutex);
  Track* track = nullptr;
  for (const auto& other : state_->tracks) {
    if (other->thread == thread) track = other.get();
  }
  if (track == nullptr && state_->tracks.size() < kMostTracks) {
    state_->tracks.push_back(std::make_unique<Track>());
    track = state_->tracks.back().get();
    track->index = static_cast<std::uint32_t>(state_->tracks.size() - 1);
    track->thread = thread;
    track->name = "thread " + std::to_string(track->index);
  }
  last_track = {state_->number, track};
  return track;
}

std::uint32_t Tracer::track() {
  const Track* const track = own_track();
  return track != nullptr ? track->index : 0;
}

void Tracer::name_thread(std::string name) {
  Track* const track = own_track();
  const std::lock_guard lock(state_->mutex);
  if (track != nullptr) track->name = std::move(name);
}

const char* Tracer::keep(std::string_view text) {
  const std::lock_guard lock(state_->mutex);
  auto found = state_->texts.find(text);
  if (found == state_->texts.end()) found = state_->texts.emplace(text).first;
  return found->c_str();
}

void Tracer::add(const TraceEvent& event) {
  if (!state_->recording) return;
  Track* const track = own_track();
  if (track == nullptr) {
    state_->dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::uint64_t n = track->count.load(std::memory_order_relaxed);
  auto& chunk = track->chunks[std::min<std::uint64_t>(n / kChunkEvents, track->chunks.size() - 1)];
  if (n < state_->events_a_track && chunk == nullptr) chunk.reset(new (std::nothrow) Track::Chunk);
  if (n >= state_->events_a_track || chunk == nullptr) {
    track->dropped.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  chunk->events[n % kChunkEvents] = event;
  track->count.store(n + 1, std::memory_order_release);  // [event]
}

void Tracer::add_counter(TraceWhat what, std::uint32_t value) {
  add({steady_ns(), 0, nullptr, {}, {value}, track(), what, TracePhase::kCounter});
}

void Tracer::add_async(TraceWhat what, TracePhase phase, const BufferId& buffer, std::int64_t at_ns) {
  add({at_ns, 0, nullptr, buffer, {}, track(), what, phase});
}

void Tracer::add_flow(TracePhase phase, const BufferId& buffer, std::int64_t at_ns, std::uint32_t track) {
  add({at_ns, 0, nullptr, buffer, {}, track, TraceWhat::kMessages, phase});
}

void Tracer::add_journey(const BufferJourney& journey, const BufferId& buffer) {
  add_async(TraceWhat::kGather, TracePhase::kAsyncBegin, buffer, journey.opened_ns);
  add_async(TraceWhat::kGather, TracePhase::kAsyncEnd, buffer, journey.closed_ns);
  if (journey.life.published_ns == 0) {
    add_flow(TracePhase::kFlowStart, buffer, journey.closed_ns, journey.closed_on);
    return;
  }
  add_flow(TracePhase::kFlowStart, buffer, journey.life.published_ns, journey.life.published_on);
  add_flow(TracePhase::kFlowStep, buffer, journey.life.repacked_ns, journey.life.repacked_on);
  add_flow(TracePhase::kFlowStep, buffer, journey.closed_ns, journey.closed_on);
}

void Tracer::stamp(std::uint64_t ticket, std::int64_t now_ns) {
  state_->stamps[ticket % state_->stamps.size()] = {now_ns, track()};
}

PackageLife Tracer::stamp_of(std::uint64_t ticket) const {
  const State::Stamp& stamp = state_->stamps[ticket % state_->stamps.size()];
  return {.published_ns = stamp.at_ns, .published_on = stamp.track};
}

void Tracer::clear_stamp(std::uint64_t ticket) { state_->stamps[ticket % state_->stamps.size()] = {}; }

void Tracer::visit(const std::function<void(const TrackView&)>& on_track,
                   const std::function<void(const TraceEvent&)>& on_event) const {
  const std::lock_guard lock(state_->mutex);
  for (const auto& track : state_->tracks) {
    const std::uint64_t count = track->count.load(std::memory_order_acquire);  // [event]
    on_track({track->index, track->name, count, track->dropped.load(std::memory_order_relaxed)});
    for (std::uint64_t n = 0; n < count; ++n) {
      on_event(track->chunks[n / kChunkEvents]->events[n % kChunkEvents]);
    }
  }
}

std::uint64_t Tracer::dropped_without_track() const {
  return state_->dropped.load(std::memory_order_relaxed);
}

void TraceSpan::begin(TraceWhat what, const char* text) {
  const TraceKind& kind = trace_kinds()[static_cast<std::size_t>(what)];
  ranges::push(text != nullptr && kind.text_name == nullptr ? text : kind.name);
  event_ = {steady_ns(), 0, text, {}, {}, tracer_->track(), what, TracePhase::kSpan};
}

void TraceSpan::end() {
  ranges::pop();
  if (discarded_) return;
  event_.duration_ns = steady_ns() - event_.at_ns;
  tracer_->add(event_);
}

void RepackSpan::begin() {
  const PackageLife stamp = tracer_->stamp_of(ticket_);
  published_ns_ = stamp.published_ns;
  if (stamp.published_ns == 0 || ticket_ % Tracer::kSampleEvery != 0) return;
  life_ = {stamp.published_ns, span_.begin_ns(), stamp.published_on, tracer_->track()};
}

void RepackSpan::end(std::uint32_t messages) {
  if (messages == 0) {
    span_.discard();
    return;
  }
  std::int64_t waited = 0;
  if (published_ns_ != 0) {
    waited = span_.begin_ns() - published_ns_;
    tracer_->package_wait.record(waited);
    tracer_->clear_stamp(ticket_);
  }
  span_.set_values({messages, command_, static_cast<std::uint32_t>(ticket_), clamped(waited)});
}

}  // namespace esker
