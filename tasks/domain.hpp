// A domain: the lanes that share a stack of levels, and what they do until the run ends.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>
#include <esker/tasks/bundles.hpp>
#include <esker/tasks/context.hpp>
#include <esker/tasks/lanes.hpp>
#include <esker/tasks/level_stack.hpp>
#include <esker/tasks/scheduler.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {

/// State    idle -> working -> (done or suspended) -> idle, until the run has ended.
/// Contract All lanes of the domain call, converged. What a member holds is the same in all of them.
/// Protocol A stack is made of a bundle: its tasks are level 0. The domain takes a batch of the highest level
///          that has tasks; what they spawn is the level above. When a level is empty, the frames below it go
///          on. So it goes down before it goes on, and holds one batch's children a level (thesis, 4.3.3). To
///          a domain that asks, it gives tasks of its lowest level that has some: the largest subtrees. The
///          level remembers that in a join record; the frames below it go on when all of them are back. If
///          they are not, the domain leaves its stack, and whoever brings the last of them back takes it
///          over.
template <class S>
class Domain {
  using Set = typename S::Set;
  using Lanes = DomainLanes;
  using Layout = typename S::Layout;
  using Bundle = typename S::Bundle;
  using Join = typename S::Join;
  static constexpr std::uint32_t kBatch = S::kBatch;

 public:
  /// `number` among the domains of the run, `hot` are kHotWords.
  ESKER_HD Domain(const Lanes& lanes, RunState& run, std::uint32_t* hot, std::uint32_t number)
      : lanes_{lanes},
        run_{run},
        hot_{hot},
        levels_{lanes, run, hot},
        bundles_{lanes, run},
        number_{number},
        random_{run.seed * 1024 + number} {}

  ESKER_HD void run() {
    lanes_.leader([&] { S::sum_of(hot_) = 0; });
    for (std::uint32_t bundle = wait_for_bundle(); bundle != kNone; bundle = wait_for_bundle()) {
      if constexpr (S::kRandom) wait_for_company();
      if (!S::kRemote || (bundle & kGoesOn) == 0) {
        open(bundle);
      } else if (!take_over(bundle & ~kGoesOn)) {
        continue;
      }
      while (work() == End::kDone && take_over(finish())) {
      }
    }
    add_counts();
  }

 private:
  enum class End { kDone, kSuspended, kStopped };

  // --- Idle.

  ESKER_HD std::uint32_t wait_for_bundle() {
    typename Lanes::Pause pause;
    if constexpr (S::kRemote) lanes_.leader([&] { (void)run_.idle.fetch_add_relaxed(1); });
    while (true) {
      const std::uint32_t bundle = try_get();
      if (bundle != kNone) {
        if constexpr (S::kRemote) lanes_.leader([&] { (void)run_.idle.fetch_add_relaxed(~0u); });
        return bundle;
      }
      if (has_ended()) return kNone;
      if (!has_asked_) {
        ++counts_.asked;
        lanes_.leader([&] { run_.exchange.ask(number_); });
        has_asked_ = true;
      }
      pause.once();
    }
  }
  /// What another domain has given, or, of a run over PEs, the port. In the second case its request stands.
  ESKER_HD std::uint32_t try_get() {
    std::uint32_t bundle = kNone;
    if (has_asked_ || number_ == 0) {  // the root is domain 0's
      bundle = lanes_.of_leader([&] { return run_.exchange.try_get(number_); });
      if (bundle != kNone) has_asked_ = false;
    }
    if (!S::kRemote || bundle != kNone) return bundle;
    return lanes_.of_leader([&] {
      std::uint32_t taken = run_.ready.try_take();
      if (taken != kNone) {
        taken |= kGoesOn;
      } else {
        taken = run_.arrived.try_take();
      }
      if (taken != kNone) (void)run_.taken.fetch_add_relaxed(1);
      return taken;
    });
  }
  ESKER_HD bool has_ended() {
    return lanes_.of_leader([&] {
      if (run_.stop->load_relaxed() != 0) (void)run_.end(Outcome::kStopped);
      return run_.has_ended() ? 1u : 0u;
    }) != 0;
  }

  /// Makes a bundle's tasks level 0.
  ESKER_HD void open(std::uint32_t bundle) {
    bundle_ = bundle;
    since_ = counts_.batches;
    levels_.begin();
    const std::uint32_t* const words = bundles_.words(bundle);
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
  }

  // --- Working.

  ESKER_HD End work() {
    while (true) {
      if (S::kRandom && random(4) == 0) Lanes::Pause::let_others_run();
      if (S::kRandom && random(4) == 0 && levels_.has_levels_to_spare() && !levels_.put_away())
        return End::kStopped;
      if (S::kRandom ? random(2) == 0 : ++rounds_ % kRoundsALook == 0) {
        // A simulated GPU runs lanes that have yielded, as the port does, when no other can run.
        if (S::kRemote && esker::detail::kLanesUseHostCores) Lanes::Pause::let_others_run();
        if (has_ended()) return End::kStopped;
        const bool asked = lanes_.of_leader([&] { return run_.exchange.was_asked() ? 1u : 0u; }) != 0;
        if (asked) {
          give(false);
        } else if (S::kRemote && counts_.batches - since_ >= S::kBatchesAGift &&
                   lanes_.of_leader([&] { return run_.pe_asked() ? 1u : 0u; }) != 0) {
          give(true);
        }
      }
      if constexpr (S::kRemote && Set::kPlaces) {
        // Before others run: they may run for long.
        if (!bundles_.send_placed(at(top()))) return End::kStopped;
      }
      const std::uint32_t type = levels_.type_with_tasks(at(top()));
      if (type != Set::kTypes) {
        if (!run_batch(type)) return End::kStopped;
        continue;
      }
      if (at(top())[Layout::kJoin] != kNone && !join()) return has_ended() ? End::kStopped : End::kSuspended;
      if (top() == 0) return End::kDone;
      levels_.down();
      if constexpr (S::kJoins) {
        if (!resume()) return End::kStopped;
      }
    }
  }

  /// Runs the last tasks of that type in this level. False: there is no memory for what they spawn.
  ESKER_HD bool run_batch(std::uint32_t type) {
    std::uint32_t children = top() + 1;
    const std::uint32_t waiting = at(top())[Layout::kCount + type];
    std::uint32_t n = waiting < kBatch ? waiting : kBatch;
    if constexpr (!S::kJoins) {
      if (has_space_for_a_batch(waiting - n)) children = top();
    }
    if (children != top() && !levels_.make_space()) return false;
    if (levels_.is_low()) n = 1;  // the least memory
    if constexpr (S::kRandom) n = 1 + random(n);
    lanes_.sync();
    lanes_.leader([&] { at(top())[Layout::kCount + type] = waiting - n; });
    ++counts_.batches;
    counts_.tasks += n;
    if (n == kBatch) ++counts_.full_batches;
    const Place<S> place{hot_, &run_, results(), top(), children};
    Set::visit(type, [&](auto named) {
      using T = typename decltype(named)::type;
      if constexpr (!kIsPlaced<T>) {
        constexpr std::uint32_t kType = Set::template kIndex<T>;
        struct Taken {
          T task;
          Ref ref;
        };
        const std::uint32_t* const tasks = at(top()) + Layout::tasks_at(kType) + (waiting - n);
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
      }
    });
    if (children != top()) go_up();
    return true;
  }

  /// The frames of this level go on. False: there is no memory for what they spawn.
  ESKER_HD bool resume() {
    if (at(top())[Layout::kHasFrames] == 0) return true;
    if (!levels_.make_space()) return false;
    lanes_.sync();
    std::uint32_t* const level = at(top());
    lanes_.leader([&] { level[Layout::kHasFrames] = 0; });
    const Place<S> place{hot_, &run_, results(), top(), top() + 1};
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
    const std::uint32_t* const above = at(top() + 1);
    bool has_tasks = false;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) has_tasks = has_tasks || above[Layout::kCount + t] != 0;
    if (has_tasks || at(top())[Layout::kHasFrames] != 0) levels_.up();
  }

  ESKER_HD bool has_space_for_a_batch(std::uint32_t left) const {
    std::uint32_t most = left;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) {
      const std::uint32_t count = at(top())[Layout::kCount + t];
      if (Set::kTypes > 1 && count > most) most = count;
    }
    return most + Set::kMostSpawns * kBatch <= Layout::kCapacity;
  }

  ESKER_HD std::uint32_t top() const { return levels_.highest(); }
  ESKER_HD std::uint32_t* at(std::uint32_t level) const { return levels_.at(level); }
  ESKER_HD std::uint32_t* results() const { return bundles_.words(bundle_) + Bundle::kResults; }

  // --- Giving.

  /// Gives tasks to a domain that asks, or to a PE. The highest level keeps half of its own.
  ESKER_HD void give(bool to_pe) {
    const auto spare = levels_.find_spare();
    if (spare.type == Set::kTypes) return;
    std::uint32_t* const header = spare.header;
    const std::uint32_t type = spare.type;
    const std::uint32_t count = header[Layout::kCount + type];
    if (spare.is_highest && count < 2) return;
    std::uint32_t n = spare.is_highest ? count / 2 : count;
    // Memory first, then the promise: what is promised is there. Without memory nothing is given.
    n = bundles_.memory_for(n < kBatch ? n : kBatch, header);
    if (n == 0) return;
    if (S::kRemote && to_pe) {
      if (lanes_.of_leader([&] { return run_.try_promise_to_pe() ? 1u : 0u; }) == 0) return;
      const std::uint32_t bundle = bundles_.move_out(spare, n);
      lanes_.leader([&] { run_.given.give_back(bundle); });
      since_ += (counts_.batches - since_) / 2;
      return;
    }
    const std::uint32_t taker = lanes_.of_leader([&] { return run_.exchange.try_promise(); });
    if (taker == kNone) return;
    const std::uint32_t bundle = bundles_.move_out(spare, n);
    lanes_.leader([&] { run_.exchange.put(taker, bundle); });
    ++counts_.given;
  }

  // --- Joining.

  /// This level is empty, and tasks of it were given away. True: they are all back, and their results are in
  /// their frames. False: the stack is left to others, or the run ends.
  ESKER_HD bool join() {
    const std::uint32_t join = at(top())[Layout::kJoin];
    std::uint32_t* const record = bundles_.join_words(join);
    const bool alone =
        lanes_.of_leader([&] { return Join::left(record).load_acquire() == 1 ? 1u : 0u; }) != 0;  // [join]
    if (!alone) {
      if (!levels_.put_all_away(record)) return false;
      const std::uint32_t before = lanes_.of_leader([&] {
        record[Join::kBundle] = bundle_;
        return Join::left(record).fetch_add_acq_rel(~0u);  // [join]
      });
      if (before != 1) {
        ++counts_.suspended;
        return false;
      }
      levels_.take_back(record);
    }
    collect(join);
    return true;
  }

  /// Results of the tasks that were given away. The level is at hand, and the frames below it.
  ESKER_HD void collect(std::uint32_t join) {
    if constexpr (Set::kResultWords > 0) {
      const std::uint32_t* const record = bundles_.join_words(join);
      lanes_.for_many(record[Join::kEntries], [&](std::uint32_t i) {
        const Ref ref = load_columns<Ref>(record + Join::kRefs + i, Join::kMostEntries);
        std::uint32_t* const to = top() == 0
                                      ? results() + ref.frame
                                      : at(top() - 1) + Layout::result_column(ref.child, 0) + ref.frame;
        for (std::uint32_t w = 0; w < Set::kResultWords; ++w) {
          to[w * kBatch] = record[Join::kResults + w * Join::kMostEntries + i];
        }
      });
    }
    lanes_.leader([&] { at(top())[Layout::kJoin] = kNone; });
    bundles_.give_back_join(join);
  }

  /// The stack is done: what its tasks give goes where they came from. Returns the join record whose stack is
  /// to go on, or kNone.
  ESKER_HD std::uint32_t finish() {
    const std::uint32_t join = bundles_.words(bundle_)[Bundle::kJoin];
    if (join == kNone) {
      lanes_.leader([&] { (void)run_.end(Outcome::kDone); });
      return kNone;
    }
    if (S::kRemote && join == kJoinsElsewhere) {
      lanes_.leader([&] { run_.finished.give_back(bundle_); });
      return kNone;
    }
    return bundles_.bring_back(bundle_);
  }

  /// Goes on with the stack that its owner has left. False: there is none.
  ESKER_HD bool take_over(std::uint32_t join) {
    if (join == kNone) return false;
    const std::uint32_t* const record = bundles_.join_words(join);
    bundle_ = record[Join::kBundle];
    levels_.take_back(record);
    collect(join);
    return true;
  }

  ESKER_HD void add_counts() {
    lanes_.leader([&] {
      (void)run_.sum.fetch_add_relaxed(S::sum_of(hot_));
      counts_.spilled = levels_.spilled();
      const auto* const from = reinterpret_cast<const std::uint64_t*>(&counts_);
      for (std::uint32_t c = 0; c < sizeof(Counts) / 8; ++c) (void)run_.counts[c].fetch_add_relaxed(from[c]);
    });
  }

  // --- For tests, on the host.

  /// Until another domain asks, if one does soon: else short runs would be one domain's.
  ESKER_HD void wait_for_company() const {
    for (int i = 0; i < 200 && !run_.exchange.was_asked(); ++i) Lanes::Pause::let_others_run();
  }
  /// Below `below`.
  ESKER_HD std::uint32_t random(std::uint32_t below) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(random_ >> 33) % below;
  }

  static constexpr std::uint32_t kRoundsALook = 8;

  Lanes lanes_;
  RunState& run_;
  std::uint32_t* const hot_;
  LevelStack<S> levels_;
  Bundles<S> bundles_;
  const std::uint32_t number_;
  std::uint32_t bundle_ = kNone;  // that the stack was made of
  bool has_asked_ = false;
  std::uint32_t rounds_ = 0;
  // Batches when this stack was begun; half of what has passed since counts again when some of it is given to
  // another PE. Work that has lasted is likely to last: what has not would be gone sooner than it travels.
  std::uint64_t since_ = 0;
  std::uint64_t random_;
  Counts counts_{};
};

}  // namespace esker::tasks::detail
