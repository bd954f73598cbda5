// Where stages leave their events: a thread's own buffer, bounded, without locks.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <esker/aggregator/histogram.hpp>
#include <esker/aggregator/trace_event.hpp>

namespace esker {

inline std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// The events of one PE. Tracing is off where there is none: whoever has a `Tracer*` tests it for null,
/// reads no clock and allocates nothing then.
///
/// Contract. Any thread adds events; each has a track of its own from its first call on. A track takes
///           `events_a_track` events, then counts what it drops. Threads may go on adding while another
///           reads: it sees what was there before it asked.
/// Ordering. [event]  an event's words before its count  happen before  the reading of that many.
/// Progress. add() takes a lock only on a thread's first event; memory comes in chunks of 256 events, and
///           where there is none the event is dropped.
class Tracer {
 public:
  static constexpr std::uint32_t kMostEventsATrack = 1u << 18;
  static constexpr std::uint32_t kMostTracks = 1024;  // a thread beyond has its events dropped
  static constexpr std::uint64_t kSampleEvery = 16;   // packages a life is followed of

  /// `slots` of the package queue. With `recording` off only the device's profiler sees anything.
  Tracer(std::uint32_t slots, bool recording, std::uint32_t events_a_track = kMostEventsATrack);
  ~Tracer();
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  /// Names the calling thread's track.
  void name_thread(std::string name);
  /// The calling thread's track.
  std::uint32_t track();
  /// A copy that lives as long as the tracer.
  const char* keep(std::string_view text);

  /// `event.track` is the calling thread's, unless the event belongs to another's.
  void add(const TraceEvent& event);
  void add_counter(TraceWhat what, std::uint32_t value);
  void add_async(TraceWhat what, TracePhase phase, const BufferId& buffer, std::int64_t at_ns);
  void add_flow(TracePhase phase, const BufferId& buffer, std::int64_t at_ns, std::uint32_t track);
  /// What is known of a buffer once it has its number: its gathering, and its messages' way up to here.
  void add_journey(const BufferJourney& journey, const BufferId& buffer);

  /// By the lane that is about to publish into the slot / by the aggregator between taking the package and
  /// releasing it. Ordered by the queue's [fill] and [reuse]. A package that nobody stamped has time 0.
  void stamp(std::uint64_t ticket, std::int64_t now_ns);
  PackageLife stamp_of(std::uint64_t ticket) const;
  void clear_stamp(std::uint64_t ticket);

  /// Publishing to repacking. Counted while tracing only, since it takes a clock reading a package.
  DurationCounters package_wait;

  struct TrackView {
    std::uint32_t index;
    std::string name;
    std::uint64_t events;
    std::uint64_t dropped;
  };
  /// Each track, in order of its first event; `on_event` is then called for its events. Any thread.
  void visit(const std::function<void(const TrackView&)>& on_track,
             const std::function<void(const TraceEvent&)>& on_event) const;
  /// Events of threads beyond kMostTracks.
  std::uint64_t dropped_without_track() const;

 private:
  struct Track;
  struct State;
  Track* own_track();

  const std::unique_ptr<State> state_;
};

/// A stretch of the calling thread's time, from construction to destruction: one event, and a range for
/// the device's profiler. Does nothing where the tracer is null.
class TraceSpan {
 public:
  TraceSpan(Tracer* tracer, TraceWhat what, const char* text = nullptr) : tracer_{tracer} {
    if (tracer_ != nullptr) [[unlikely]]
      begin(what, text);
  }
  ~TraceSpan() {
    if (tracer_ != nullptr) [[unlikely]]
      end();
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  bool is_on() const { return tracer_ != nullptr; }
  // The rest only where it is.
  std::int64_t begin_ns() const { return event_.at_ns; }
  void set_values(std::array<std::uint32_t, 4> values) { event_.values = values; }
  void set_buffer(const BufferId& buffer) { event_.buffer = buffer; }
  /// Nothing happened that is worth an event.
  void discard() { discarded_ = true; }

 private:
  void begin(TraceWhat what, const char* text);
  void end();

  Tracer* tracer_;
  bool discarded_ = false;
  TraceEvent event_;  // valid where the tracer is not null
};

/// A lane publishes a package: the span, and the stamp that its aggregator will find.
class PublishSpan {
 public:
  PublishSpan(Tracer* tracer, std::uint64_t ticket, std::uint32_t command, std::uint32_t count)
      : span_{tracer, TraceWhat::kPublish} {
    if (tracer != nullptr) [[unlikely]] {
      span_.set_values({count, command, static_cast<std::uint32_t>(ticket), 0});
      tracer->stamp(ticket, span_.begin_ns());
    }
  }

 private:
  TraceSpan span_;
};

/// An aggregator repacks a package, or the rest of it.
class RepackSpan {
 public:
  /// `first`: the message that it begins with.
  RepackSpan(Tracer* tracer, std::uint64_t ticket, std::uint32_t command, std::uint32_t first)
      : tracer_{tracer},
        span_{tracer, TraceWhat::kRepack},
        ticket_{ticket},
        command_{command},
        is_first_{first == 0} {
    if (tracer_ != nullptr && is_first_) [[unlikely]]
      begin();
  }
  /// The package's life if it is followed, else null.
  const PackageLife* life() const { return life_.repacked_ns != 0 ? &life_ : nullptr; }
  /// Some messages were taken, or none: then a pool is empty and the package is tried again.
  void set_taken(std::uint32_t messages) {
    if (tracer_ != nullptr) [[unlikely]]
      end(messages);
  }

 private:
  void begin();
  void end(std::uint32_t messages);

  Tracer* tracer_;
  TraceSpan span_;
  std::uint64_t ticket_;
  std::uint32_t command_;
  bool is_first_;
  std::int64_t published_ns_ = 0;
  PackageLife life_;
};

}  // namespace esker
