// A domain: the lanes that share a stack of levels, and what they do until the run ends.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>
#include <esker/tasks/context.hpp>
#include <esker/tasks/lanes.hpp>
#include <esker/tasks/level.hpp>
#include <esker/tasks/state.hpp>

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
/// 0 goes on
///          with the stack. A given task has an entry, in which its result waits.
/// Ordering [join] what was written for the stack, results and what was saved, happens before it goes on.
template <class Set, std::uint32_t kBatch>
struct JoinLayout {
  static constexpr std::uint32_t kLeft = 0, kEntries = 1;
  // The stack, once its owner has left it.
  static constexpr std::uint32_t kBundle = 2, kLevel = 3, kFirstPage = 4, kLastPage = 5;
  static constexpr std::uint32_t kMostEntries = Set::kResultWords == 0 ? 0 : 2 * kBatch;
  static constexpr std::uint32_t kRefs = 8;
  static constexpr std::uint32_t kResults = kRefs + kMostEntries;
  static constexpr std::uint32_t kWords = kResults + Set::kResultWords * kMostEntries;
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

/// State    idle -> working -> (done or suspended) -> idle, until the run has ended.
/// Contract All lanes of the domain call, converged. What a member holds is the same in all of them.
/// Protocol A stack is made of a bundle: its tasks are level 0. The domain takes a batch of the highest level
/// that
///          has tasks; what they spawn is the level above. When a level is empty, the frames below it go on.
///          So it goes down before it goes on, and holds one batch's children a level (thesis, 4.3.3). To a
///          domain that asks, it gives tasks of its lowest level that has some: the largest subtrees. The
///          level remembers that in a join record; the frames below it go on when all of them are back. If
///          they are not, the domain leaves its stack, and whoever brings the last of them back takes it
///          over.
template <class S>
class Domain {
  using Set = typename S::Set;
  using Lanes = DomainLanes;
  using Layout = typename S::Layout;
  using Page = typename S::Page;
  using Bundle = typename S::Bundle;
  using Join = typename S::Join;
  static constexpr std::uint32_t kBatch = S::kBatch;

 public:
  /// `number` among the domains of the run, `hot` are kHotWords.
  ESKER_HD Domain(const Lanes& lanes, RunState& run, std::uint32_t* hot, std::uint32_t number)
      : lanes_{lanes}, run_{run}, hot_{hot}, number_{number}, random_{run.seed * 1024 + number} {}

  ESKER_HD void run() {
    lanes_.leader([&] { S::sum_of(hot_) = 0; });
    while (true) {
      const std::uint32_t bundle = wait_for_bundle();
      if (bundle == kNone) break;
      open(bundle);
      while (work() == End::kDone && take_over(finish())) {
      }
    }
    add_counts();
  }

 private:
  enum class End { kDone, kSuspended, kStopped };

  // --- Idle.

  ESKER_HD std::uint32_t wait_for_bundle() {
    bool has_asked = false;
    typename Lanes::Pause pause;
    while (true) {
      const std::uint32_t bundle = lanes_.of_leader([&] { return run_.exchange.try_get(number_); });
      if (bundle != kNone) return bundle;
      if (has_ended()) return kNone;
      if (!has_asked) {
        ++counts_.asked;
        lanes_.leader([&] { run_.exchange.ask(number_); });
        has_asked = true;
      }
      pause.once();
    }
  }
  ESKER_HD bool has_ended() {
    return lanes_.of_leader([&] {
      if (run_.stop != nullptr && run_.stop->load_relaxed() != 0) (void)run_.end(Outcome::kStopped);
      return run_.has_ended() ? 1u : 0u;
    }) != 0;
  }

  /// Makes a bundle's tasks level 0.
  ESKER_HD void open(std::uint32_t bundle) {
    bundle_ = bundle;
    level_ = hot_low_ = 0;
    first_page_ = last_page_ = kNone;
    clear(0);
    const std::uint32_t* const words = bundle_words(bundle);
    const std::uint32_t type = words[Bundle::kType], count = words[Bundle::kCount];
    std::uint32_t* const level = at(0);
    Set::visit(type, [&](auto named) {
      using T = typename decltype(named)::type;
      constexpr std::uint32_t kType = Set::template kIndex<T>;
      std::uint32_t* const tasks = level + Layout::tasks_at(kType);
      lanes_.for_each(count, [&](std::uint32_t i) {
        store_columns(tasks + i, Layout::kCapacity, Ref{static_cast<std::uint16_t>(i), 0});
        for (std::uint32_t w = 0; w < Set::payload_words(kType); ++w) {
          tasks[(1 + w) * Layout::kCapacity + i] = words[Bundle::kPayload + w * kBatch + i];
        }
      });
    });
    lanes_.leader([&] { level[Layout::kCount + type] = count; });
    find_lowest_from_the_start();
  }

  // --- Working.

  ESKER_HD End work() {
    while (true) {
      if (S::kRandom && random(4) == 0 && hot_low_ + 1 < level_ && !put_away()) return End::kStopped;
      if (S::kRandom ? random(2) == 0 : ++rounds_ % kRoundsALook == 0) {
        if (has_ended()) return End::kStopped;
        const bool asked = lanes_.of_leader([&] { return run_.exchange.was_asked() ? 1u : 0u; }) != 0;
        if (asked) give();
      }
      const std::uint32_t type = type_to_run();
      if (type != Set::kTypes) {
        if (!run_batch(type)) return End::kStopped;
        continue;
      }
      if (at(level_)[Layout::kJoin] != kNone && !join()) return has_ended() ? End::kStopped : End::kSuspended;
      if (level_ == 0) return End::kDone;
      --level_;
      bring_back();
      if constexpr (S::kJoins) {
        if (!resume()) return End::kStopped;
      }
    }
  }

  /// The type with most tasks in this level; kTypes: it has none.
  ESKER_HD std::uint32_t type_to_run() const {
    const std::uint32_t* const level = at(level_);
    std::uint32_t best = Set::kTypes, most = 0;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) {
      if (level[Layout::kCount + t] > most) {
        most = level[Layout::kCount + t];
        best = t;
      }
    }
    return best;
  }

  /// Runs the last tasks of that type in this level. False: there is no memory for what they spawn.
  ESKER_HD bool run_batch(std::uint32_t type) {
    std::uint32_t children = level_ + 1;
    const std::uint32_t waiting = at(level_)[Layout::kCount + type];
    std::uint32_t n = waiting < kBatch ? waiting : kBatch;
    if constexpr (!S::kJoins) {
      if (has_space_for_a_batch(waiting - n)) children = level_;
    }
    if (children != level_ && !make_space()) return false;
    if (is_low_) n = 1;  // the least memory
    if constexpr (S::kRandom) n = 1 + random(n);
    lanes_.sync();
    lanes_.leader([&] { at(level_)[Layout::kCount + type] = waiting - n; });
    ++counts_.batches;
    counts_.tasks += n;
    if (n == kBatch) ++counts_.full_batches;
    const Place<S> place{hot_, &run_, results(), level_, children};
    Set::visit(type, [&](auto named) {
      using T = typename decltype(named)::type;
      constexpr std::uint32_t kType = Set::template kIndex<T>;
      struct Taken {
        T task;
        Ref ref;
      };
      const std::uint32_t* const tasks = at(level_) + Layout::tasks_at(kType) + (waiting - n);
      lanes_.template each_of_batch<kBatch, Taken>(
          n,
          [&](std::uint32_t i) {
            return Taken{load_columns<T>(tasks + Layout::kCapacity + i, Layout::kCapacity),
                         load_columns<Ref>(tasks + i, Layout::kCapacity)};
          },
          [&](std::uint32_t i, const Taken& taken) {
            Context<S, T> context(place, i, taken.ref);
            taken.task(context);
            context.check();
          });
    });
    if (children != level_) go_up();
    return true;
  }

  /// The frames of this level go on. False: there is no memory for what they spawn.
  ESKER_HD bool resume() {
    if (at(level_)[Layout::kHasFrames] == 0) return true;
    if (!make_space()) return false;
    lanes_.sync();
    std::uint32_t* const level = at(level_);
    lanes_.leader([&] { level[Layout::kHasFrames] = 0; });
    const Place<S> place{hot_, &run_, results(), level_, level_ + 1};
    std::uint32_t* const resume_words = level + Layout::frame_column(Layout::kResume);
    lanes_.for_each(kBatch, [&](std::uint32_t i) {
      const auto next = load_columns<Resume<S>>(resume_words + i, kBatch);
      if (next == nullptr) return;
      store_columns(resume_words + i, kBatch, Resume<S>{nullptr});
      next(place, i);
    });
    ++counts_.resumed;
    go_up();
    return true;
  }

  /// After a batch: what it has spawned is the highest level, if it has spawned.
  ESKER_HD void go_up() {
    const std::uint32_t* const above = at(level_ + 1);
    bool has_tasks = false;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) has_tasks = has_tasks || above[Layout::kCount + t] != 0;
    if (has_tasks || at(level_)[Layout::kHasFrames] != 0) ++level_;
  }

  ESKER_HD bool has_space_for_a_batch(std::uint32_t left) const {
    std::uint32_t most = left;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) {
      const std::uint32_t count = at(level_)[Layout::kCount + t];
      if (Set::kTypes > 1 && count > most) most = count;
    }
    return most + Set::kMostSpawns * kBatch <= Layout::kCapacity;
  }

  // --- Levels at hand: hot_low_ .. level_ + 1.

  ESKER_HD std::uint32_t* at(std::uint32_t level) const {
    return hot_ + (level % S::kHotLevels) * Layout::kWords;
  }
  ESKER_HD std::uint32_t* results() const { return bundle_words(bundle_) + Bundle::kResults; }
  ESKER_HD std::uint32_t* bundle_words(std::uint32_t bundle) const {
    return run_.bundle_words + std::size_t{bundle} * Bundle::kWords;
  }
  ESKER_HD std::uint32_t* join_words(std::uint32_t join) const {
    return run_.join_words + std::size_t{join} * Join::kWords;
  }
  ESKER_HD static DeviceAtomic<std::uint32_t>& left(std::uint32_t* join) {
    return reinterpret_cast<DeviceAtomic<std::uint32_t>&>(join[Join::kLeft]);
  }
  ESKER_HD std::uint32_t* page_words(std::uint32_t page) const {
    return run_.page_words + std::size_t{page} * Page::kWords;
  }

  /// An empty level.
  ESKER_HD void clear(std::uint32_t level) {
    std::uint32_t* const words = at(level);
    lanes_.leader([&] {
      words[Layout::kJoin] = kNone;
      words[Layout::kHasFrames] = 0;
      for (std::uint32_t t = 0; t < Set::kTypes; ++t) words[Layout::kCount + t] = 0;
    });
    if constexpr (S::kJoins) {
      std::uint32_t* const resume_words = words + Layout::frame_column(Layout::kResume);
      lanes_.for_each(kBatch,
                      [&](std::uint32_t i) { store_columns(resume_words + i, kBatch, Resume<S>{nullptr}); });
    }
  }
  /// Makes level_ + 1, empty.
  ESKER_HD bool make_space() {
    if (level_ + 1 - hot_low_ == S::kHotLevels && !put_away()) return false;
    clear(level_ + 1);
    return true;
  }

  /// Moves the lowest level that is at hand to the pages.
  ESKER_HD bool put_away() {
    const std::uint32_t* const level = at(hot_low_);
    constexpr std::uint32_t kHead = Page::record_header(Set::kTypes);
    std::uint32_t size = kHead + Layout::kHeaderWords;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) size += level[Layout::kCount + t] * Layout::columns_of(t);
    const bool has_frames = S::kJoins && level[Layout::kHasFrames] != 0;
    if (has_frames) size += Layout::kFrameWords * kBatch;
    std::uint32_t used = last_page_ == kNone ? Page::kWords : page_words(last_page_)[Page::kUsed];
    std::uint32_t previous = last_page_ == kNone ? 0 : last_record_;
    if (used + size > Page::kWords) {
      const std::uint32_t page = lanes_.of_leader([&] { return run_.pages.try_take(); });
      is_low_ = lanes_.of_leader([&] { return run_.pages.was_low() ? 1u : 0u; }) != 0;
      if (page == kNone) {
        lanes_.leader([&] { (void)run_.end(Outcome::kOutOfMemory); });
        return false;
      }
      lanes_.leader([&] {
        std::uint32_t* const words = page_words(page);
        words[Page::kBelow] = last_page_;
        words[Page::kAbove] = kNone;
        if (last_page_ != kNone) page_words(last_page_)[Page::kAbove] = page;
      });
      if (first_page_ == kNone) first_page_ = page;
      last_page_ = page;
      used = Page::kHeaderWords;
      previous = 0;
    }
    std::uint32_t* const record = page_words(last_page_) + used;
    lanes_.leader([&] {
      record[Page::kSize] = size;
      record[Page::kPrevious] = previous;
      for (std::uint32_t t = 0; t < Set::kTypes; ++t) record[Page::kStored + t] = level[Layout::kCount + t];
      for (std::uint32_t w = 0; w < Layout::kHeaderWords; ++w) record[kHead + w] = level[w];
      page_words(last_page_)[Page::kUsed] = used + size;
    });
    std::uint32_t* to = record + kHead + Layout::kHeaderWords;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) {
      const std::uint32_t count = level[Layout::kCount + t];
      for (std::uint32_t c = 0; c < Layout::columns_of(t); ++c, to += count) {
        const std::uint32_t* const from = level + Layout::tasks_at(t) + c * Layout::kCapacity;
        lanes_.for_many(count, [&](std::uint32_t i) { to[i] = from[i]; });
      }
    }
    if (has_frames) {
      const std::uint32_t* const from = level + Layout::kFramesAt;
      lanes_.for_many(Layout::kFrameWords * kBatch, [&](std::uint32_t i) { to[i] = from[i]; });
    }
    lanes_.sync();
    if (lowest_.level == hot_low_) {
      lowest_.page = last_page_;
      lowest_.record = used;
    }
    last_record_ = used;
    ++hot_low_;
    ++counts_.spilled;
    return true;
  }

  /// Brings level_, and the level below it, back from the pages.
  ESKER_HD void bring_back() {
    while (hot_low_ > 0 && hot_low_ + 1 > level_) fetch_one();
  }
  ESKER_HD void fetch_one() {
    constexpr std::uint32_t kHead = Page::record_header(Set::kTypes);
    --hot_low_;
    std::uint32_t* const level = at(hot_low_);
    const std::uint32_t* const record = page_words(last_page_) + last_record_;
    clear(hot_low_);
    lanes_.leader([&] {
      for (std::uint32_t w = 0; w < Layout::kHeaderWords; ++w) level[w] = record[kHead + w];
    });
    const std::uint32_t* from = record + kHead + Layout::kHeaderWords;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) {
      const std::uint32_t count = level[Layout::kCount + t], stored = record[Page::kStored + t];
      for (std::uint32_t c = 0; c < Layout::columns_of(t); ++c, from += stored) {
        std::uint32_t* const to = level + Layout::tasks_at(t) + c * Layout::kCapacity;
        lanes_.for_many(count, [&](std::uint32_t i) { to[i] = from[i]; });
      }
    }
    if (S::kJoins && level[Layout::kHasFrames] != 0) {
      std::uint32_t* const to = level + Layout::kFramesAt;
      lanes_.for_many(Layout::kFrameWords * kBatch, [&](std::uint32_t i) { to[i] = from[i]; });
    }
    if (lowest_.level >= hot_low_) lowest_.level = hot_low_;
    const std::uint32_t page = last_page_, at_record = last_record_, previous = record[Page::kPrevious];
    const std::uint32_t below = page_words(page)[Page::kBelow];
    lanes_.sync();
    if (previous != 0) {
      last_record_ = previous;
      lanes_.leader([&] { page_words(page)[Page::kUsed] = at_record; });
      return;
    }
    last_page_ = below;
    if (below == kNone) {
      first_page_ = kNone;
    } else {
      find_last_record();
    }
    lanes_.leader([&] {
      if (below != kNone) page_words(below)[Page::kAbove] = kNone;
      run_.pages.give_back(page);
    });
  }

  // --- Giving.

  /// The lowest level that may have tasks. Where it is in the pages, its record.
  struct Lowest {
    std::uint32_t level, page, record;
  };

  ESKER_HD void find_lowest_from_the_start() { lowest_ = {0, first_page_, Page::kHeaderWords}; }

  /// Words of the lowest level with tasks, their header and the distance of columns; null: there is none. A
  /// level that is the highest keeps half.
  ESKER_HD void give() {
    constexpr std::uint32_t kHead = Page::record_header(Set::kTypes);
    std::uint32_t type = Set::kTypes;
    while (lowest_.level < hot_low_) {
      const std::uint32_t* const words = page_words(lowest_.page);
      type = type_with_tasks(words + lowest_.record + kHead);
      if (type != Set::kTypes) break;
      lowest_.record += words[lowest_.record + Page::kSize];
      if (lowest_.record >= words[Page::kUsed] && words[Page::kAbove] != kNone) {
        lowest_.page = words[Page::kAbove];
        lowest_.record = Page::kHeaderWords;
      }
      ++lowest_.level;
    }
    if (type != Set::kTypes) {
      std::uint32_t* const record = page_words(lowest_.page) + lowest_.record;
      std::uint32_t* tasks = record + kHead + Layout::kHeaderWords;
      for (std::uint32_t t = 0; t < type; ++t) tasks += record[Page::kStored + t] * Layout::columns_of(t);
      give_from(record + kHead, type, tasks, record[Page::kStored + type], false);
      return;
    }
    std::uint32_t level = lowest_.level < hot_low_ ? hot_low_ : lowest_.level;
    for (; level <= level_; ++level) {
      type = type_with_tasks(at(level));
      if (type != Set::kTypes) break;
    }
    if (type == Set::kTypes) return;
    give_from(at(level), type, at(level) + Layout::tasks_at(type), Layout::kCapacity, level == level_);
  }
  ESKER_HD std::uint32_t type_with_tasks(const std::uint32_t* header) const {
    std::uint32_t best = Set::kTypes, most = 0;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) {
      if (header[Layout::kCount + t] > most) {
        most = header[Layout::kCount + t];
        best = t;
      }
    }
    return best;
  }

  ESKER_HD void give_from(std::uint32_t* header, std::uint32_t type, const std::uint32_t* tasks,
                          std::uint32_t stride, bool keeps_half) {
    const std::uint32_t count = header[Layout::kCount + type];
    if (keeps_half && count < 2) return;
    std::uint32_t n = keeps_half ? count / 2 : count;
    n = n < kBatch ? n : kBatch;
    // Memory first, then the promise: what is promised is there. Without memory nothing is given.
    std::uint32_t join = header[Layout::kJoin];
    const bool is_new = join == kNone;
    const std::uint32_t entries = is_new ? 0 : join_words(join)[Join::kEntries];
    if (Set::kResultWords > 0) n = n < Join::kMostEntries - entries ? n : Join::kMostEntries - entries;
    if (n == 0) return;
    if (spare_bundle_ == kNone) spare_bundle_ = lanes_.of_leader([&] { return run_.bundles.try_take(); });
    if (is_new && spare_join_ == kNone) spare_join_ = lanes_.of_leader([&] { return run_.joins.try_take(); });
    if (spare_bundle_ == kNone || (is_new && spare_join_ == kNone)) return;
    const std::uint32_t taker = lanes_.of_leader([&] { return run_.exchange.try_promise(); });
    if (taker == kNone) return;
    const std::uint32_t bundle = spare_bundle_;
    spare_bundle_ = kNone;
    if (is_new) {
      join = spare_join_;
      spare_join_ = kNone;
    }
    std::uint32_t* const words = bundle_words(bundle);
    std::uint32_t* const record = join_words(join);
    const std::uint32_t first = count - n;
    for (std::uint32_t c = 0; c < Layout::columns_of(type); ++c) {
      std::uint32_t* const to = words + Bundle::kRefs + c * kBatch;
      const std::uint32_t* const from = tasks + c * stride + first;
      lanes_.for_each(n, [&](std::uint32_t i) { to[i] = from[i]; });
    }
    lanes_.leader([&] {
      words[Bundle::kType] = type;
      words[Bundle::kCount] = n;
      words[Bundle::kJoin] = join;
      words[Bundle::kFirstEntry] = entries;
      record[Join::kEntries] = entries + n;
      if (is_new) {
        left(record).store_relaxed(2);
        header[Layout::kJoin] = join;
      } else {
        (void)left(record).fetch_add_relaxed(1);
      }
      header[Layout::kCount + type] = first;
      run_.exchange.put(taker, bundle);
    });
    ++counts_.given;
  }

  // --- Joining.

  /// This level is empty, and tasks of it were given away. True: they are all back, and their results are in
  /// their frames. False: the stack is left to others, or the run ends.
  ESKER_HD bool join() {
    const std::uint32_t join = at(level_)[Layout::kJoin];
    std::uint32_t* const record = join_words(join);
    const bool alone =
        lanes_.of_leader([&] { return left(record).load_acquire() == 1 ? 1u : 0u; }) != 0;  // [join]
    if (!alone) {
      while (hot_low_ <= level_) {
        if (!put_away()) return false;
      }
      const std::uint32_t before = lanes_.of_leader([&] {
        record[Join::kBundle] = bundle_;
        record[Join::kLevel] = level_;
        record[Join::kFirstPage] = first_page_;
        record[Join::kLastPage] = last_page_;
        return left(record).fetch_add_acq_rel(~0u);  // [join]
      });
      if (before != 1) {
        ++counts_.suspended;
        return false;
      }
      bring_back();
    }
    collect(join);
    return true;
  }

  /// Results of the tasks that were given away. The level is at hand, and the frames below it.
  ESKER_HD void collect(std::uint32_t join) {
    if constexpr (Set::kResultWords > 0) {
      const std::uint32_t* const record = join_words(join);
      lanes_.for_many(record[Join::kEntries], [&](std::uint32_t i) {
        const Ref ref = load_columns<Ref>(record + Join::kRefs + i, Join::kMostEntries);
        std::uint32_t* const to = level_ == 0
                                      ? results() + ref.frame
                                      : at(level_ - 1) + Layout::result_column(ref.child, 0) + ref.frame;
        for (std::uint32_t w = 0; w < Set::kResultWords; ++w) {
          to[w * kBatch] = record[Join::kResults + w * Join::kMostEntries + i];
        }
      });
    }
    lanes_.leader([&] { at(level_)[Layout::kJoin] = kNone; });
    keep_or_give_back(spare_join_, join, run_.joins);
  }

  /// The stack is done: what its tasks give goes where they came from. Returns the join record whose stack is
  /// to go on, or kNone.
  ESKER_HD std::uint32_t finish() {
    const std::uint32_t* const words = bundle_words(bundle_);
    const std::uint32_t join = words[Bundle::kJoin];
    if (join == kNone) {
      lanes_.leader([&] { (void)run_.end(Outcome::kDone); });
      return kNone;
    }
    std::uint32_t* const record = join_words(join);
    if constexpr (Set::kResultWords > 0) {
      const std::uint32_t first = words[Bundle::kFirstEntry];
      lanes_.for_each(words[Bundle::kCount], [&](std::uint32_t i) {
        record[Join::kRefs + first + i] = words[Bundle::kRefs + i];
        for (std::uint32_t w = 0; w < Set::kResultWords; ++w) {
          record[Join::kResults + w * Join::kMostEntries + first + i] =
              words[Bundle::kResults + w * kBatch + i];
        }
      });
    }
    keep_or_give_back(spare_bundle_, bundle_, run_.bundles);
    const std::uint32_t before =
        lanes_.of_leader([&] { return left(record).fetch_add_acq_rel(~0u); });  // [join]
    return before == 1 ? join : kNone;
  }

  /// Goes on with the stack that its owner has left. False: there is none.
  ESKER_HD bool take_over(std::uint32_t join) {
    if (join == kNone) return false;
    const std::uint32_t* const record = join_words(join);
    bundle_ = record[Join::kBundle];
    level_ = record[Join::kLevel];
    first_page_ = record[Join::kFirstPage];
    last_page_ = record[Join::kLastPage];
    hot_low_ = level_ + 1;
    find_last_record();
    find_lowest_from_the_start();
    bring_back();
    collect(join);
    return true;
  }

  /// The last record of the last page is found from the page's start.
  ESKER_HD void find_last_record() {
    const std::uint32_t* const words = page_words(last_page_);
    last_record_ = Page::kHeaderWords;
    while (last_record_ + words[last_record_ + Page::kSize] < words[Page::kUsed])
      last_record_ += words[last_record_ + Page::kSize];
  }

  /// A domain keeps one for the next time: the pool is everybody's.
  ESKER_HD void keep_or_give_back(std::uint32_t& spare, std::uint32_t number, Pool& pool) {
    if (spare == kNone) {
      spare = number;
    } else {
      lanes_.leader([&] { pool.give_back(number); });
    }
  }

  ESKER_HD void add_counts() {
    lanes_.leader([&] {
      (void)run_.sum.fetch_add_relaxed(S::sum_of(hot_));
      const auto* const from = reinterpret_cast<const std::uint64_t*>(&counts_);
      for (std::uint32_t c = 0; c < sizeof(Counts) / 8; ++c) (void)run_.counts[c].fetch_add_relaxed(from[c]);
    });
  }

  /// Below `below`; of one thread, for tests.
  ESKER_HD std::uint32_t random(std::uint32_t below) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(random_ >> 33) % below;
  }

  static constexpr std::uint32_t kRoundsALook = 8;

  Lanes lanes_;
  RunState& run_;
  std::uint32_t* const hot_;
  const std::uint32_t number_;
  std::uint32_t bundle_ = kNone;  // that the stack was made of
  std::uint32_t spare_bundle_ = kNone, spare_join_ = kNone;
  std::uint32_t level_ = 0;    // the highest
  std::uint32_t hot_low_ = 0;  // the lowest that is at hand
  std::uint32_t first_page_ = kNone, last_page_ = kNone, last_record_ = 0;
  Lowest lowest_{};
  std::uint32_t rounds_ = 0;
  bool is_low_ = false;  // pages were few when this domain last took one
  std::uint64_t random_;
  Counts counts_{};
};

}  // namespace esker::tasks::detail
