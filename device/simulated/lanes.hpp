// Lanes of a simulated GPU: a group's are fibers of one thread, and waves meet as a GPU's do, by masks.
#pragma once

#include <cstdint>

namespace esker::simulated {

inline constexpr std::uint32_t kWaveLanes = 32;

/// Where the lane that runs on this thread stands.
struct Here {
  struct Index {
    std::uint32_t x = 0;
  };
  Index group, lane, groups, lanes;
  bool is_lane = false;  // else the host's
};
extern thread_local Here here;

/// For a test, before any kernel runs, under ThreadSanitizer: lanes are threads to it, though they take turns
/// on one, and what they do to each other's plain words is a race unless they have met in sync_wave() or
/// sync_group(), or scratch_fence() is between. Other collectives order nothing, as on a GPU.
struct Strictness {
  bool lanes_are_threads = false;
  bool has_scratch_fence = true;  // false: a mutant
};
inline Strictness strictness;

/// Runs a group of a kernel on the calling thread: `body(argument)` once a lane, with `lent_bytes` of
/// scratchpad beside what it declares.
///
/// Contract. A lane may be interrupted wherever it calls one of the functions below. Lanes of a wave come
/// together, as on a GPU that schedules lanes independently, where they name each other. One whose partners
/// can never come ends the program with a report of which lane waits where.
void run_group(std::uint32_t group, std::uint32_t groups, std::uint32_t lanes, std::uint32_t lent_bytes,
               void (*body)(const void*), const void* argument);

// For lanes. `members` are lanes of the caller's wave, the caller among them; those that have ended are not
// waited for.

/// Flags of the members, a bit a lane.
std::uint32_t ballot(std::uint32_t members, bool flag);
/// The word of `lane`, which is a member.
std::uint64_t shuffle(std::uint32_t members, std::uint64_t word, std::uint32_t lane);
void sync_wave(std::uint32_t members);
void sync_group();
/// Lanes of the wave that are in this call now, called from the same place in the code.
std::uint32_t converged();
std::uint64_t* lent_scratch();
/// Of one lane happens before another's that comes later.
void scratch_fence();

// For lanes, and for others, whom they do nothing to.

/// Gives way, since the lane waits for something outside its group.
void yield();
/// The lane is about to touch what others share: now and then another runs first.
void interrupt();

}  // namespace esker::simulated
