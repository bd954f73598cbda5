// What the types of a scheduler of tasks have to agree on: the layouts of everything that domains share.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>
#include <esker/tasks/level.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {

/// Words of a segment in memory: levels, one after the other, as they are at hand. It knows the page of the
/// segment below it and of the one above.
template <std::uint32_t kSegmentWords>
struct PageLayout {
  static constexpr std::uint32_t kBelow = 0, kAbove = 1;
  static constexpr std::uint32_t kUsed = 2;  // words
  static constexpr std::uint32_t kLast = 3;  // where its last level starts, as at hand
  static constexpr std::uint32_t kLevels = 4;
  static constexpr std::uint32_t kWords = (kLevels + kSegmentWords + 31) / 32 * 32;
};

/// Words of a bundle: up to kBatch tasks of one type that were given away together. Each domain has one,
/// which others fill. Of a run over PEs there are also crates, whose tasks are from other PEs, or for them.
template <class Set, std::uint32_t kBatch, bool kRemote>
struct BundleLayout {
  static constexpr std::uint32_t kType = 0, kCount = 1;
  // Where their results go: entries of this join record from this one on. kNone: the first task's.
  static constexpr std::uint32_t kJoin = 2, kFirstEntry = 3;
  // Of a crate from another PE: what the host calls its tasks.
  static constexpr std::uint32_t kTicket = 4;
  static constexpr std::uint32_t kPayload = kRemote ? 5 : 4;
  // The result of the first task of a run, in the bundle of domain 0. In a crate those of all its tasks.
  static constexpr std::uint32_t kResult = kPayload + Set::kMostPayloadWords * kBatch;
  static constexpr std::uint32_t kWords =
      (kResult + Set::kResultWords * (kRemote ? kBatch : 1) + 31) / 32 * 32;
};

/// Words of a join record: what is known of the tasks of one level that were given away.
///
/// Protocol `left` counts the bundles that are out, and one for the owner of the stack. Whoever brings it to
///          0 goes on with the stack. A given task has an entry, in which its result waits.
/// Ordering [join] what was written for the stack, results and what was saved, happens before it goes on.
template <class Set, std::uint32_t kBatch>
struct JoinLayout {
  static constexpr std::uint32_t kLeft = 0, kEntries = 1;
  // The stack, once its owner has left it: its highest level, its pages, and where its own tasks' results go.
  static constexpr std::uint32_t kTop = 2, kSegment = 3, kFirstPage = 4, kLastPage = 5;
  static constexpr std::uint32_t kReturnJoin = 6, kReturnEntry = 7;
  // Tasks that are placed have to go: all of a level, where others may stay.
  static constexpr std::uint32_t kMostEntries =
      Set::kResultWords == 0 ? 0 : (Set::kPlaces && Set::kMostSpawns > 2 ? Set::kMostSpawns : 2) * kBatch;
  static constexpr std::uint32_t kRefs = 8;
  static constexpr std::uint32_t kResults = kRefs + kMostEntries;
  static constexpr std::uint32_t kWords = kResults + Set::kResultWords * kMostEntries;
  ESKER_HD static DeviceAtomic<std::uint32_t>& left(std::uint32_t* record) {
    return reinterpret_cast<DeviceAtomic<std::uint32_t>&>(record[kLeft]);
  }
};

/// A scheduler's shape, of a run over PEs.
template <class Shape>
struct RemoteShape : Shape {
  using OverPes = void;
};

/// What the types of a scheduler have to agree on.
template <class TaskSet, class Shape, bool kSetJoins>
struct Scheduler {
  using Set = TaskSet;
  /// Tasks that run, or change hands, together. Of tasks that a whole wave runs: one runs, and what it spawns
  /// may change hands.
  static constexpr std::uint32_t kBatch = !Set::kIsAllWholeWave || Set::kMostSpawns > Shape::kBatch
                                              ? Shape::kBatch
                                          : Set::kMostSpawns < 1 ? 1
                                                                 : Set::kMostSpawns;
  static constexpr bool kJoins = kSetJoins;
  static constexpr bool kRandom = Shape::kRandom;
  using Layout = LevelLayout<Set, kBatch, kJoins>;
  /// Tasks come from other PEs, and go to them.
  static constexpr bool kRemote = requires { typename Shape::OverPes; };
  /// Batches that a stack has lasted before some of it goes to another PE: some tenths of a millisecond.
  static constexpr std::uint32_t kBatchesAGift = [] {
    if constexpr (kRemote) return std::uint32_t{Shape::kBatchesAGift};
    return 0u;
  }();
  using Bundle = BundleLayout<Set, kBatch, kRemote>;
  using Join = JoinLayout<Set, kBatch>;

  /// Levels stand in segments; so many of these are at hand.
  static constexpr std::uint32_t kHotSegments = kJoins ? Shape::kHotSegments : 2;  // else they are large
  static_assert(kHotSegments >= (kJoins ? 4 : 2) && (kHotSegments & (kHotSegments - 1)) == 0);
  /// A batch takes tasks from the highest segment and so many below it. Its level may be in a new segment, so
  /// results go to a level at most one segment more down.
  static constexpr std::uint32_t kReach = kJoins ? (kHotSegments < 10 ? kHotSegments - 2 : 8) : 0;
  static_assert(std::uint64_t{Layout::kFrameWords} * kBatch +
                        std::uint64_t{Layout::columns_before(Set::kTypes)} * Layout::capacity(kBatch) <
                    1u << Ref::kWordBits,
                "these tasks are too large");
  static constexpr std::uint32_t kSegmentWords = (Layout::kWords + 31) / 32 * 32;
  static_assert(kHotSegments * kSegmentWords < 1u << Ref::kWordBits, "these tasks are too large");
  using Page = PageLayout<kSegmentWords>;
  static constexpr std::uint32_t kMostSparePages =
      kHotSegments < 8 ? kHotSegments : 8;  // that a domain keeps
  /// Segments in which tasks of a stack, and of those that wait for it, nest one deeper at least
  /// (docs/design/tasks.md). A bundle is taken by one batch; if not, it may be given on a task at a time.
  static constexpr std::uint32_t kSegmentsADepth =
      kJoins ? kReach + 1 + (kRandom || Set::kHasWholeWave ? kBatch : 1) : 1;
  /// The same of one stack alone.
  static constexpr std::uint32_t kSegmentsADepthOfAStack = kReach + 1;

  // --- What a domain has at hand: segments; of each the words in use and where its last level starts; what
  // each lane's tasks have added; times; the scratchpad of tasks of the whole wave, 16-byte aligned.
  static constexpr std::uint32_t kUsedAt = kHotSegments * kSegmentWords;
  static constexpr std::uint32_t kLastAt = kUsedAt + kHotSegments;
  static constexpr std::uint32_t kSparePagesAt = kLastAt + kHotSegments;
  static constexpr std::uint32_t kSumsAt = kSparePagesAt + kHotSegments;
  static constexpr std::uint32_t kTimesAt = kSumsAt + 2 * Shape::kBatch;
  static constexpr std::uint32_t kScratchAt = (kTimesAt + sizeof(DomainTimes) / 4 + 3) / 4 * 4;
  static constexpr std::uint32_t kHotWords = kScratchAt + (Set::kScratchWords + 3) / 4 * 4;
  ESKER_HD static std::uint64_t* sums(std::uint32_t* hot) {
    return reinterpret_cast<std::uint64_t*>(hot + kSumsAt);
  }
};

}  // namespace esker::tasks::detail
