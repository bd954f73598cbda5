// What all stages of a run are told, wherever they run.
#pragma once

#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>
#include <esker/pipeline/latency.hpp>
#include <esker/pipeline/topic_view.hpp>

namespace esker::pipeline::detail {

inline constexpr std::uint32_t kMostInputs = 4, kMostTopics = 24, kMostStages = 24;
inline constexpr std::uint32_t kNone = ~0u, kGone = kNone - 1;

/// How a run ended.
enum class Outcome : std::uint32_t { kRunning, kDone, kStopped, kFailed, kFull, kMisuse };

/// What a stage did wrong: the code of Outcome::kMisuse.
inline constexpr std::int32_t kNotNamed = 0, kLoopHasEnded = 1, kOtherPipeline = 2, kTooManyItems = 3;

/// A failed frame, on its way to the user: number n is in place n modulo kMostFailures.
struct FailedFrame {
  std::uint32_t stage;
  std::int32_t code;
  std::uint64_t frame, tag, values[2];
  Word is_there;  // its number + 1
};
inline constexpr std::uint32_t kMostFailures = 1024;

/// What one side says to the host, in pinned memory: read by the host while the run goes on.
struct SideState {
  PolledWord outcome;  // an Outcome, once
  std::uint32_t stage;
  std::int32_t code;
  std::uint64_t values[2];
  FailedFrame failed[kMostFailures];  // a ring
  PolledWord taken;                   // of these, by the host

  Outcome how() const { return static_cast<Outcome>(outcome.word.load_acquire()); }  // [outcome]
};

/// Sums over the teams of a stage.
enum StageCount : std::uint32_t {
  kFrames,   // that it has taken
  kItems,    // in them
  kBusyNs,   // in the user's function, and without room
  kSkipped,  // frames that an earlier stage had marked as failed
  kJoined,   // teams that have come from other stages
  kLeft,     // teams that have gone to other stages
  kStageCounts
};

/// A stage, in memory of the side that runs it.
struct StageState {
  PolledWord active;  // teams that may still work for it
  Word counts[kStageCounts];
  Word starved_ns[kMostInputs];  // without input, by the input that came next
  Word blocked_ns[kMostTopics];  // without room, by the topic that had none
  // Of a stage of the host without outputs: frames by their time since they were opened.
  Word latencies[LatencyBuckets::kNumber];
  Word longest_ns;
};

/// What a stage takes from and publishes into.
struct StageView {
  SubscriptionView inputs[kMostInputs];
  std::uint32_t n_inputs;
  std::uint32_t outputs;     // a bit a topic that it may emit into
  std::uint32_t inside;      // of these and maps_to, those in its own loop
  std::uint32_t maps_to;     // of a map: its output; else kNone
  std::uint32_t parts;       // of a map: a frame is done in so many
  std::uint32_t loop;        // that it is part of; kNone
  std::uint32_t teams;       // to begin with
  std::uint32_t most_teams;  // that come to it while it runs; 0: they stay where they are
  std::byte* staging;  // a frame of an input for each of its teams, or for each of the kernel's where they
                       // move: what they copy before they work on it; null: they read frames where they are
  std::uint64_t staging_stride;
  std::uint64_t flush_ns;
};

/// Stages that feed each other, and the end of that (docs/design/exact-end.md).
struct LoopView {
  static constexpr std::uint32_t kMost = 16;
  std::uint32_t n_outside, n_inside;
  std::uint32_t is_judged_here;  // by this side's stages: those of its GPU, where it has one. Of a loop over
                                 // several GPUs the host's monitor judges
  struct End {
    std::uint32_t topic, shift;
    PolledWord* done;  // how far its stage has read it
    PolledWord *tail, *end;
    PolledWord* outside_producers;
  };
  End outside[kMost];  // topics that feed it
  End inside[kMost];   // its own

  /// All that feeds the loop has ended, and nothing is in it. `finished`: frames of its topics then. What
  /// `read_first(word)` says is from before what `read_then(word)` says.
  template <class ReadFirst, class ReadThen>
  ESKER_HD bool has_ended(const ReadFirst& read_first, const ReadThen& read_then,
                          std::uint64_t* finished) const {
    for (std::uint32_t i = 0; i < n_outside; ++i) {
      const std::uint64_t n = read_first(outside[i].end);
      if (n == kOpen || read_first(outside[i].done) != n) return false;
    }
    for (std::uint32_t i = 0; i < n_inside; ++i) {
      if (read_first(inside[i].outside_producers) != 0) return false;
    }
    // First all that has been finished, then all that has been created: docs/design/exact-end.md.
    for (std::uint32_t i = 0; i < n_inside; ++i) finished[i] = read_first(inside[i].done);
    for (std::uint32_t i = 0; i < n_inside; ++i) {
      if (read_then(inside[i].tail) != finished[i] << inside[i].shift) return false;
    }
    return true;
  }
};

/// One side's view of the run. In that side's memory.
struct RunView {
  TopicView topics[kMostTopics];
  StageView stages[kMostStages];
  StageState* states[kMostStages];
  PolledWord* open_producers[kMostTopics];     // stages that may still publish
  PolledWord* outside_producers[kMostTopics];  // of them, those outside of the topic's loop
  const LoopView* loops[kMostStages];
  SideState* side;
  PolledWord* claimed;    // in this side's memory: not 0, one of it has ended the run
  PolledWord* failures;   // likewise: how often it has marked a frame as failed
  PolledWord* passed_on;  // likewise: of these, those for which there was a place
  PolledWord* drain;      // of the host: not 0: sources end
  PolledWord* stop;       // in this side's memory: not 0, another side has ended the run
  std::uint32_t n_topics, n_stages;
  std::uint32_t pipeline;  // whose it is: of a Topic, too

  ESKER_HD bool is_over() const {
    return stop->word.load_relaxed() != 0 || claimed->word.load_relaxed() != 0;
  }
  /// Ends the run. The first one of a side says why.
  ESKER_HD void end(Outcome how, std::uint32_t stage, std::int32_t code, std::uint64_t a,
                    std::uint64_t b) const {
    std::uint64_t none = 0;
    if (!claimed->word.compare_exchange_relaxed(none, 1)) return;
    side->stage = stage;
    side->code = code;
    side->values[0] = a;
    side->values[1] = b;
    side->outcome.word.store_release(static_cast<std::uint64_t>(how));  // [outcome]
  }
  ESKER_HD void add_failure(std::uint32_t stage, std::int32_t code, std::uint64_t frame, std::uint64_t tag,
                            std::uint64_t a, std::uint64_t b) const {
    (void)failures->word.fetch_add_relaxed(1);
    std::uint64_t number = passed_on->word.load_relaxed();
    do {
      if (number >= side->taken.word.load_acquire() + kMostFailures) return;  // [taken]
    } while (!passed_on->word.compare_exchange_relaxed(number, number + 1));
    FailedFrame& to = side->failed[number % kMostFailures];
    to.stage = stage;
    to.code = code;
    to.frame = frame;
    to.tag = tag;
    to.values[0] = a;
    to.values[1] = b;
    to.is_there.store_release(number + 1);  // [failure]
  }

  ESKER_HD bool is_inside(std::uint32_t topic, std::uint32_t loop) const {
    for (std::uint32_t i = 0; i < loops[loop]->n_inside; ++i) {
      if (loops[loop]->inside[i].topic == topic) return true;
    }
    return false;
  }

  /// All that feed the loop have ended, and nothing is in it: closes its topics. Any team that is idle calls.
  ESKER_HD bool try_end_loop(std::uint32_t number) const {
    const LoopView& loop = *loops[number];
    if (loop.is_judged_here == 0) return false;
    std::uint64_t finished[LoopView::kMost];
    const auto read = [](const PolledWord* at) { return at->word.load_acquire(); };
    if (!loop.has_ended(read, read, finished)) return false;
    for (std::uint32_t i = 0; i < loop.n_inside; ++i) loop.inside[i].end->word.store_release(finished[i]);
    return true;
  }
};

}  // namespace esker::pipeline::detail
