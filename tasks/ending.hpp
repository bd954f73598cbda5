// How a run ends: what every run of tasks shares.
#pragma once

#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>

namespace esker::tasks::detail {

/// kThrew: a task on the CPU, whose exception run() throws in its own PE.
enum class Outcome : std::uint32_t {
  kRunning,
  kDone,
  kStopped,
  kFailed,
  kThrew,
  kOutOfMemory,
  kMisuse,
  kFull
};

/// How a run ended, and what whoever ended it says.
struct RunEnd {
  Outcome outcome;
  std::int32_t error_code;
  std::uint32_t error_type;
  std::uint64_t error_values[2];
};

/// Contract Any lane or thread. Whoever ends a run first says why.
struct Ending {
  const SystemAtomic<std::uint32_t>* stop;  // not 0: the user ends the run
  SystemAtomic<std::uint32_t> stop_word;    // on a GPU what `stop` points to: the host writes it by a copy

  alignas(kLineBytes)
      DeviceAtomic<std::uint32_t> outcome;  // an Outcome; the first that is not kRunning stays
  std::int32_t error_code;                  // of whoever set the outcome
  std::uint32_t error_type;
  std::uint64_t error_values[2];

  /// `stop_of_user`: a StopToken's word; null: the run has its own.
  ESKER_HD void begin(const SystemAtomic<std::uint32_t>* stop_of_user) {
    stop_word.store_relaxed(0);
    stop = stop_of_user != nullptr ? stop_of_user : &stop_word;
    outcome.store_relaxed(static_cast<std::uint32_t>(Outcome::kRunning));
  }
  ESKER_HD bool has_ended() const {
    return outcome.load_relaxed() != static_cast<std::uint32_t>(Outcome::kRunning);
  }
  /// True for the first.
  ESKER_HD bool end(Outcome how) {
    auto running = static_cast<std::uint32_t>(Outcome::kRunning);
    return outcome.compare_exchange_acq_rel(running, static_cast<std::uint32_t>(how));
  }
  /// The same, with what is known of it. `type` is the kind of task that it happened to.
  ESKER_HD void end(Outcome how, std::uint32_t type, std::int32_t code, std::uint64_t a, std::uint64_t b) {
    if (!end(how)) return;
    error_code = code;
    error_type = type;
    error_values[0] = a;
    error_values[1] = b;
  }
  RunEnd how() const {
    return {static_cast<Outcome>(outcome.load_relaxed()),
            error_code,
            error_type,
            {error_values[0], error_values[1]}};
  }
  /// Looks whether the user wants it to end, too.
  ESKER_HD bool has_ended_or_should() {
    const bool should = stop->load_relaxed() != 0, has = has_ended();  // both are on their way at a time
    if (should && !has) (void)end(Outcome::kStopped);
    return should || has;
  }
};

}  // namespace esker::tasks::detail
