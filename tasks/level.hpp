// A level of a domain's stack: tasks that wait, and the frames of tasks whose children are in the level
// above.
#pragma once

#include <cstdint>
#include <cstring>

#include <esker/device/platform.hpp>
#include <esker/tasks/task.hpp>

namespace esker::tasks::detail {

/// Where a task's result goes: a frame of the level below, and which of its children the task is. In level 0:
/// the task's number in the bundle that the stack was made of.
struct Ref {
  std::uint16_t frame;
  std::uint16_t child;
};

/// Nothing: no join record, no page, no bundle.
inline constexpr std::uint32_t kNone = ~0u;

/// The words of a level, for batches of `kBatch` tasks.
///
/// A level holds what one batch of the level below spawns: kMostSpawns * kBatch tasks of each type, and a
/// frame for each task of the batch that runs in it. Where no task of the set waits for children, levels have
/// no frames, and are pieces of one stack: tasks spawn into the level that they were in while there is space.
///
/// Columns: word w of element i is at column(w)[i], so lanes that take neighbouring elements touch
/// neighbouring words.
template <class Set, std::uint32_t kBatch, bool kJoins>
struct LevelLayout {
  static constexpr std::uint32_t kCapacity =
      (kJoins ? 1 : 4) * (Set::kMostSpawns == 0 ? 1 : Set::kMostSpawns) * kBatch;
  static_assert(Set::kMostSpawns * kBatch <= 65536);

  // --- The header, in words.
  static constexpr std::uint32_t kJoin = 0;       // the join record of tasks that were given away, or kNone
  static constexpr std::uint32_t kHasFrames = 1;  // a frame is live
  static constexpr std::uint32_t kCount = 2;      // of each type: tasks that wait
  static constexpr std::uint32_t kHeaderWords = kCount + Set::kTypes;

  // --- Tasks: of each type a column of Refs, and its payload.
  ESKER_HD static constexpr std::uint32_t columns_of(std::uint32_t type) {
    return 1 + Set::payload_words(type);
  }
  ESKER_HD static constexpr std::uint32_t tasks_at(std::uint32_t type) {
    std::uint32_t at = kHeaderWords;
    for (std::uint32_t t = 0; t < type; ++t) at += (1 + Set::payload_words(t)) * kCapacity;
    return at;
  }

  // --- Frames: how to go on (two words), the Ref of the task itself, what it keeps, its children's results.
  static constexpr std::uint32_t kFramesAt = (tasks_at(Set::kTypes) + 1) / 2 * 2;
  static constexpr std::uint32_t kResume = 0, kParent = 2, kKeep = 3;
  static constexpr std::uint32_t kResults = kKeep + Set::kKeepWords;
  static constexpr std::uint32_t kFrameWords = kJoins ? kResults + Set::kMostSpawns * Set::kResultWords : 0;
  ESKER_HD static constexpr std::uint32_t frame_column(std::uint32_t word) {
    return kFramesAt + word * kBatch;
  }
  ESKER_HD static constexpr std::uint32_t result_column(std::uint32_t child, std::uint32_t word) {
    return frame_column(kResults + child * Set::kResultWords + word);
  }

  static constexpr std::uint32_t kWords = (kFramesAt + kFrameWords * kBatch + 1) / 2 * 2;
};

/// A value's words, in a column-major table: word w is at first[w * stride].
template <class T>
ESKER_HD void store_columns(std::uint32_t* first, std::uint32_t stride, const T& value) {
  std::uint32_t copy[words(sizeof(T))] = {};
  __builtin_memcpy(copy, &value, sizeof value);
  for (std::uint32_t w = 0; w < words(sizeof(T)); ++w) first[w * stride] = copy[w];
}
/// T need not have a default constructor.
template <class T>
ESKER_HD T load_columns(const std::uint32_t* first, std::uint32_t stride) {
  union Holder {
    ESKER_HD Holder() {}
    std::uint32_t copy[words(sizeof(T))];
    T value;
  } holder;
  for (std::uint32_t w = 0; w < words(sizeof(T)); ++w) holder.copy[w] = first[w * stride];
  return holder.value;
}

}  // namespace esker::tasks::detail
