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
  static constexpr std::uint32_t kType = 0, kCount = 1, kJoin = 2, kNext = 3, kRefs = 4;
  static constexpr std::uint32_t kPayload = kRefs + kBatch;
  static constexpr std::uint32_t kResults = kPayload + Set::kMostPayloadWords * kBatch;
  static constexpr std::uint32_t kWords = (kResults + Set::kResultWords * kBatch + 31) / 32 * 32;
};

/// What the types of a scheduler have to agree on.
template <class TaskSet, class Shape, bool kSetJoins>
struct Scheduler {
  using Set = TaskSet;
  static constexpr std::uint32_t kBatch = Shape::kBatch;
  static constexpr std::uint32_t kHotLevels = Shape::kHotLevels;
  static_assert(kHotLevels >= 4 && (kHotLevels & (kHotLevels - 1)) == 0);
  static constexpr bool kJoins = kSetJoins;
  using Layout = LevelLayout<Set, kBatch, kJoins>;
  using Page = PageLayout<Layout>;
  using Bundle = BundleLayout<Set, kBatch>;
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
  static constexpr std::uint32_t kBatch = S::kBatch;

 public:
  /// `number` among the domains of the run, `hot` are kHotWords.
  ESKER_HD Domain(const Lanes& lanes, RunState& run, std::uint32_t* hot, std::uint32_t number)
      : lanes_{lanes}, run_{run}, hot_{hot}, number_{number} {}

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
    return lanes_.of_leader([&] { return run_.has_ended() ? 1u : 0u; }) != 0;
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
      if (++rounds_ % kRoundsALook == 0) {
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
    if (lanes_.of_leader([&] { return run_.pages.was_low() ? 1u : 0u; }) != 0) n = 1;  // the least memory
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
      lanes_.template each_of_batch<Taken>(
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
      if (page == kNone) {
        lanes_.leader([&] {
          if (run_.end(Outcome::kOutOfMemory)) run_.error_is_written.store_release(1);
        });
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
    // The page is empty. The last record of the one below is found from its start.
    last_page_ = below;
    if (below == kNone) {
      first_page_ = kNone;
    } else {
      last_record_ = Page::kHeaderWords;
      const std::uint32_t* const words = page_words(below);
      while (last_record_ + words[last_record_ + Page::kSize] < words[Page::kUsed])
        last_record_ += words[last_record_ + Page::kSize];
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
    const std::uint32_t bundle = lanes_.of_leader([&] { return run_.bundles.try_take(); });
    if (bundle == kNone) return;
    std::uint32_t join = header[Layout::kJoin];
    const bool is_new = join == kNone;
    if (is_new) join = lanes_.of_leader([&] { return run_.joins.try_take(); });
    const std::uint32_t taker =
        join == kNone ? kNone : lanes_.of_leader([&] { return run_.exchange.try_promise(); });
    if (taker == kNone) {
      lanes_.leader([&] {
        run_.bundles.give_back(bundle);
        if (is_new && join != kNone) run_.joins.give_back(join);
      });
      return;
    }
    std::uint32_t* const words = bundle_words(bundle);
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
      Join& record = run_.join_records[join];
      if (is_new) {
        record.done.store_relaxed(kNone);
        record.left.store_relaxed(2);
        header[Layout::kJoin] = join;
      } else {
        (void)record.left.fetch_add_relaxed(1);
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
    Join& record = run_.join_records[join];
    const bool alone =
        lanes_.of_leader([&] { return record.left.load_acquire() == 1 ? 1u : 0u; }) != 0;  // [join]
    if (!alone) {
      while (hot_low_ <= level_) {
        if (!put_away()) return false;
      }
      const std::uint32_t before = lanes_.of_leader([&] {
        record.saved = {bundle_, level_, first_page_, last_page_};
        return record.left.fetch_add_acq_rel(~0u);  // [join]
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

  /// Results of the bundles that have come back. The level is at hand, and the frames below it.
  ESKER_HD void collect(std::uint32_t join) {
    std::uint32_t bundle =
        lanes_.of_leader([&] { return run_.join_records[join].done.load_acquire(); });  // [done]
    while (bundle != kNone) {
      const std::uint32_t* const words = bundle_words(bundle);
      const std::uint32_t count = words[Bundle::kCount], next = words[Bundle::kNext];
      if constexpr (Set::kResultWords > 0) {
        lanes_.for_each(count, [&](std::uint32_t i) {
          const Ref ref = load_columns<Ref>(words + Bundle::kRefs + i, kBatch);
          std::uint32_t* const to = level_ == 0
                                        ? results() + ref.frame
                                        : at(level_ - 1) + Layout::result_column(ref.child, 0) + ref.frame;
          for (std::uint32_t w = 0; w < Set::kResultWords; ++w)
            to[w * kBatch] = words[Bundle::kResults + w * kBatch + i];
        });
      }
      lanes_.sync();
      lanes_.leader([&] { run_.bundles.give_back(bundle); });
      bundle = next;
    }
    lanes_.leader([&] {
      run_.joins.give_back(join);
      at(level_)[Layout::kJoin] = kNone;
    });
  }

  /// The stack is done: its bundle goes back. Returns the join record whose stack is to go on, or kNone.
  ESKER_HD std::uint32_t finish() {
    std::uint32_t* const words = bundle_words(bundle_);
    const std::uint32_t join = words[Bundle::kJoin];
    if (join == kNone) {
      lanes_.leader([&] { (void)run_.end(Outcome::kDone); });
      return kNone;
    }
    Join& record = run_.join_records[join];
    const std::uint32_t before = lanes_.of_leader([&] {
      if constexpr (Set::kResultWords == 0) {
        run_.bundles.give_back(bundle_);
      } else {
        std::uint32_t last = record.done.load_relaxed();
        do {
          words[Bundle::kNext] = last;
        } while (!record.done.compare_exchange_acq_rel(last, bundle_));  // [done]
      }
      return record.left.fetch_add_acq_rel(~0u);  // [join]
    });
    return before == 1 ? join : kNone;
  }

  /// Goes on with the stack that its owner has left. False: there is none.
  ESKER_HD bool take_over(std::uint32_t join) {
    if (join == kNone) return false;
    const SavedStack saved = run_.join_records[join].saved;
    bundle_ = saved.bundle;
    level_ = saved.level;
    first_page_ = saved.first_page;
    last_page_ = saved.last_page;
    hot_low_ = level_ + 1;
    last_record_ = Page::kHeaderWords;
    const std::uint32_t* const words = page_words(last_page_);
    while (last_record_ + words[last_record_ + Page::kSize] < words[Page::kUsed])
      last_record_ += words[last_record_ + Page::kSize];
    find_lowest_from_the_start();
    bring_back();
    collect(join);
    return true;
  }

  ESKER_HD void add_counts() {
    lanes_.leader([&] {
      (void)run_.sum.fetch_add_relaxed(S::sum_of(hot_));
      const auto* const from = reinterpret_cast<const std::uint64_t*>(&counts_);
      for (std::uint32_t c = 0; c < sizeof(Counts) / 8; ++c) (void)run_.counts[c].fetch_add_relaxed(from[c]);
    });
  }

  static constexpr std::uint32_t kRoundsALook = 8;

  Lanes lanes_;
  RunState& run_;
  std::uint32_t* const hot_;
  const std::uint32_t number_;
  std::uint32_t bundle_ = kNone;  // that the stack was made of
  std::uint32_t level_ = 0;       // the highest
  std::uint32_t hot_low_ = 0;     // the lowest that is at hand
  std::uint32_t first_page_ = kNone, last_page_ = kNone, last_record_ = 0;
  Lowest lowest_{};
  std::uint32_t rounds_ = 0;
  Counts counts_{};
};

}  // namespace esker::tasks::detail
