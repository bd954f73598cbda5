// What the types of a scheduler of tasks have to agree on: the layouts of everything that domains share.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>
#include <esker/tasks/level.hpp>

namespace esker::tasks::detail {

/// Words of a page: it holds the levels of a stack that are not at hand, one after the other, of each what is
/// in use. A page knows the one below it and the one above.
template <class Layout>
struct PageLayout {
  static constexpr std::uint32_t kBelow = 0, kAbove = 1, kUsed = 2, kHeaderWords = 4;
  // A record: its words, where the one below it in the page starts, a level's header as it was, then for each
  // type and column the tasks that were there, then the frames.
  static constexpr std::uint32_t kSize = 0, kPrevious = 1, kStored = 2;
  static constexpr std::uint32_t record_header(std::uint32_t types) { return kStored + types; }
  static constexpr std::uint32_t kMostRecordWords = Layout::kWords + 64;
  static constexpr std::uint32_t kWords =
      2 * kMostRecordWords + kHeaderWords < 1024 ? 1024 : 2 * kMostRecordWords + kHeaderWords;
};

/// Words of a bundle: up to kBatch tasks of one type, that were given away together, and their results.
template <class Set, std::uint32_t kBatch>
struct BundleLayout {
  static constexpr std::uint32_t kType = 0, kCount = 1, kJoin = 2, kFirstEntry = 3, kRefs = 4;
  static constexpr std::uint32_t kPayload = kRefs + kBatch;
  static constexpr std::uint32_t kResults = kPayload + Set::kMostPayloadWords * kBatch;
  static constexpr std::uint32_t kWords = (kResults + Set::kResultWords * kBatch + 31) / 32 * 32;
};

/// Words of a join record: what is known of the tasks of one level that were given away.
///
/// Protocol `left` counts the bundles that are out, and one for the owner of the stack. Whoever brings it to
///          0 goes on with the stack. A given task has an entry, in which its result waits.
/// Ordering [join] what was written for the stack, results and what was saved, happens before it goes on.
template <class Set, std::uint32_t kBatch>
struct JoinLayout {
  static constexpr std::uint32_t kLeft = 0, kEntries = 1;
  // The stack, once its owner has left it.
  static constexpr std::uint32_t kBundle = 2, kLevel = 3, kFirstPage = 4, kLastPage = 5;
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
  static constexpr std::uint32_t kBatch = Shape::kBatch;
  static constexpr std::uint32_t kHotLevels = Shape::kHotLevels;
  static_assert(kHotLevels >= 4 && (kHotLevels & (kHotLevels - 1)) == 0);
  static constexpr bool kJoins = kSetJoins;
  static constexpr bool kRandom = Shape::kRandom;
  /// Tasks come from other PEs, and go to them.
  static constexpr bool kRemote = requires { typename Shape::OverPes; };
  /// That a stack has lasted before some of it goes to another PE: some tenths of a millisecond.
  static constexpr std::uint32_t kBatchesAGift = Shape::kBatchesAGift;
  using Layout = LevelLayout<Set, kBatch, kJoins>;
  using Page = PageLayout<Layout>;
  using Bundle = BundleLayout<Set, kBatch>;
  using Join = JoinLayout<Set, kBatch>;
  static constexpr std::uint32_t kSumAt = kHotLevels * Layout::kWords;
  static constexpr std::uint32_t kHotWords = kSumAt + 2;
  /// What this domain's tasks have added so far, behind its levels.
  ESKER_HD static std::uint64_t& sum_of(std::uint32_t* hot) {
    return *reinterpret_cast<std::uint64_t*>(hot + kSumAt);
  }
};

}  // namespace esker::tasks::detail
