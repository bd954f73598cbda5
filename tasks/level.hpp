// A level of a domain's stack: frames of tasks that wait, and the tasks that they wait for.
#pragma once

#include <cstdint>
#include <cstring>

#include <esker/device/platform.hpp>
#include <esker/tasks/task.hpp>

namespace esker::tasks::detail {

/// Where a task's result goes: the word at hand where its first word goes, and how far apart its words are.
struct Ref {
  std::uint32_t bits;  // the word, and the distance above it
  static constexpr std::uint32_t kWordBits = 24;
  ESKER_HD static Ref to(std::uint32_t word, std::uint32_t stride) { return {word | stride << kWordBits}; }
  ESKER_HD std::uint32_t word() const { return bits & ((1u << kWordBits) - 1); }
  ESKER_HD std::uint32_t stride() const { return bits >> kWordBits; }
};

/// Nothing: no level, no join record, no page.
inline constexpr std::uint32_t kNone = ~0u;

/// The words of a level.
///
/// A level holds the frames of the tasks of one batch that wait, and the tasks that the batch has spawned. It
/// has as many frames as the batch had tasks, and kMostSpawns as many places for tasks of each type. Where no
/// task of the set waits for children, a level has no frames and fills its segment: tasks spawn into the
/// level that they were in while there is space.
///
/// Columns: word w of element i is at column(w)[i], so lanes that take neighbouring elements touch
/// neighbouring words.
template <class Set, std::uint32_t kBatch, bool kJoins>
struct LevelLayout {
  static constexpr std::uint32_t kSpawns = Set::kMostSpawns == 0 ? 1 : Set::kMostSpawns;
  static_assert(kBatch < 1u << (32 - Ref::kWordBits));

  // --- The header, in words.
  static constexpr std::uint32_t kJoin = 0;      // the join record of tasks that were given away, or kNone
  static constexpr std::uint32_t kPrevious = 1;  // where the level below starts; kNone: in the segment below
  static constexpr std::uint32_t kFrames = 2;    // how many
  static constexpr std::uint32_t kWaiting = 3;   // two words: a bit a frame that waits
  static constexpr std::uint32_t kLowest = 5;    // the lowest segment that results of its frames go to
  static constexpr std::uint32_t kCount = 6;     // of each type: tasks
  // Only where the set has tasks that a whole wave runs: whether the level's frames are of such.
  static constexpr std::uint32_t kWholeWave = kCount + Set::kTypes;
  static constexpr std::uint32_t kHeaderWords = kWholeWave + (Set::kHasWholeWave ? 1 : 0);

  // --- Frames, a column a word: how to go on, where the task's own result goes, what it keeps, its
  // children's results.
  static constexpr std::uint32_t kResume = 0, kParent = 2, kKeep = 3;
  static constexpr std::uint32_t kResults = kKeep + Set::kKeepWords;
  static constexpr std::uint32_t kFrameWords = kJoins ? kResults + kSpawns * Set::kResultWords : 0;
  /// A column of frames, from the level's start; `frames` is how many the level has.
  ESKER_HD static constexpr std::uint32_t frame_column(std::uint32_t word, std::uint32_t frames) {
    return kHeaderWords + word * frames;
  }
  ESKER_HD static constexpr std::uint32_t result_column(std::uint32_t child, std::uint32_t frames) {
    return frame_column(kResults + child * Set::kResultWords, frames);
  }

  // --- Tasks: of each type its Ref, if the set joins, and its payload.
  static constexpr std::uint32_t kRefWords = kJoins ? 1 : 0;
  ESKER_HD static constexpr std::uint32_t columns_of(std::uint32_t type) {
    return kRefWords + Set::payload_words(type);
  }
  ESKER_HD static constexpr std::uint32_t columns_before(std::uint32_t type) {
    std::uint32_t columns = 0;
    for (std::uint32_t t = 0; t < type; ++t) columns += columns_of(t);
    return columns;
  }
  /// Tasks of each type that a level without frames holds: it takes a batch's children while it has tasks of
  /// some more batches.
  static constexpr std::uint32_t kOpenCapacity = (kSpawns + (kSpawns < 8 ? 3 * kSpawns : 8)) * kBatch;
  ESKER_HD static constexpr std::uint32_t capacity(std::uint32_t frames) {
    return kJoins ? kSpawns * frames : kOpenCapacity;
  }
  ESKER_HD static constexpr std::uint32_t tasks_at(std::uint32_t type, std::uint32_t frames) {
    return kHeaderWords + kFrameWords * frames + columns_before(type) * capacity(frames);
  }

  ESKER_HD static constexpr std::uint32_t level_words(std::uint32_t frames) {
    return (tasks_at(Set::kTypes, frames) + 1) / 2 * 2;
  }
  /// The largest level.
  static constexpr std::uint32_t kWords =
      (kHeaderWords + kFrameWords * kBatch + columns_before(Set::kTypes) * capacity(kBatch) + 1) / 2 * 2;
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
