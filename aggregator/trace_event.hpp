// What a trace holds: one event, and the kinds that there are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace esker {

/// What an event is about; trace_kinds() says how each is written.
enum class TraceWhat : std::uint8_t {
  kLaunch,      // a kernel, on the user's thread
  kRun,         // groups of a kernel on one lane thread
  kPublish,     // a package goes into the queue
  kRepack,      // messages of a package go into node buffers
  kClose,       // a node buffer is closed
  kGather,      // a node buffer from its first message to its closing
  kShip,        // a buffer is handed to the transport
  kSend,        // from there until the transport reports it sent
  kReceive,     // a frame is taken and checked
  kApply,       // a frame's messages are applied
  kWait,        // a thread waits
  kOccupied,    // packages in the queue
  kBuffersOut,  // buffers closed and not yet sent
  kMessages,    // a buffer's way through the stages
};
inline constexpr std::size_t kTraceWhats = 14;

enum class TracePhase : std::uint8_t {
  kSpan,
  kAsyncBegin,
  kAsyncEnd,
  kCounter,
  kFlowStart,
  kFlowStep,
  kFlowEnd,
};

/// Names a node buffer in the whole job: `sequence` is the wire header's, which counts for a pair of PEs.
struct BufferId {
  std::uint32_t source;
  std::uint32_t destination;
  std::uint64_t sequence;
};

/// One event, as its thread keeps it. `text` lives as long as the tracer.
struct TraceEvent {
  std::int64_t at_ns;        // steady clock
  std::int64_t duration_ns;  // kSpan
  const char* text;          // null: none
  BufferId buffer;           // sequence 0: none
  std::array<std::uint32_t, 4> values;
  std::uint32_t track;
  TraceWhat what;
  TracePhase phase;
};
static_assert(sizeof(TraceEvent) == 64 && std::is_trivially_copyable_v<TraceEvent>);

/// How events of one kind are written. A name that is null ends a list.
struct TraceKind {
  const char* name;
  const char* text_name;  // of the argument that holds the text; null: the text belongs to the event's name
  std::array<const char*, 4> value_names;
};
const std::array<TraceKind, kTraceWhats>& trace_kinds();

/// When a package was published and when repacked, and on which tracks. Times of 0: not known.
struct PackageLife {
  std::int64_t published_ns = 0;
  std::int64_t repacked_ns = 0;
  std::uint32_t published_on = 0;
  std::uint32_t repacked_on = 0;
};

/// What a node buffer brings along about its own way so far.
struct BufferJourney {
  std::int64_t opened_ns = 0;
  std::int64_t closed_ns = 0;
  std::int64_t taken_ns = 0;  // by the transport; by the network if its messages stay on this PE
  // While tracing:
  std::uint32_t closed_on = 0;  // track
  PackageLife life;             // of a sampled package whose first message is in this buffer
};

}  // namespace esker
