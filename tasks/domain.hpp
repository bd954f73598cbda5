// A domain: the lanes that share a stack of levels, and what they do until the run ends. Over 400 lines: its
// members are one state, which the compiler keeps in registers.
#pragma once

#include <cstdint>
#include <type_traits>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>
#include <esker/tasks/context.hpp>
#include <esker/tasks/lanes.hpp>
#include <esker/tasks/level_stack.hpp>
#include <esker/tasks/outgoing.hpp>
#include <esker/tasks/progress.hpp>
#include <esker/tasks/scheduler.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {

/// State    idle -> working -> (done or suspended) -> idle, until the run has ended.
/// Contract All lanes of the domain call, converged. What a member holds is the same in all of them.
/// Protocol A stack is made of a bundle: its tasks are those of the lowest level. The domain takes a batch of
///          the highest tasks; what they spawn, and the frames of those that wait, are a new level. When the
///          highest level has no tasks, its frames go on, and when none of them waits it is given up. So the
///          domain goes down before it goes on (thesis, 4.3.3). To a domain that asks, it gives tasks of its
///          lowest level that has some: the largest subtrees. The level remembers that in a join record; its
///          frames go on when all of them are back. If they are not, the domain leaves its stack, and whoever
///          brings the last of them back takes it over. Where no task joins, nothing waits for what was
///          given: bundles are counted.
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
  ESKER_HD Domain(const Lanes& lanes, RunState& run, const Watch& watch, std::uint32_t* hot,
                  std::uint32_t number)
      : lanes_{lanes},
        run_{run},
        watch_{watch},
        hot_{hot},
        levels_{lanes, run, hot, number},
        outgoing_{lanes, run, number},
        number_{number},
        random_{run.seed * 1024 + number} {}

  ESKER_HD void run() {
    lanes_.for_each(kSums, [&](std::uint32_t i) { S::sums(hot_)[i] = 0; });
    times().start(lanes_);
    for (std::uint32_t got = wait_for_bundle(); got != kNone; got = wait_for_bundle()) {
      note(Doing::kSchedules);
      if constexpr (S::kRandom) wait_for_company();
      if (!S::kRemote || got == kOwn) {
        open(outgoing_.bundle_words(number_));
      } else if ((got & kGoesOn) != 0) {
        (void)take_over(got & ~kGoesOn);
      } else {
        open(outgoing_.crate_words(got));
        if constexpr (!S::kJoins) outgoing_.give_back_crate(got);
      }
      times().open(lanes_, counts_.tasks);
      while (work() == End::kDone && take_over(finish())) {
      }
      if (watch_.is_on()) times().close(lanes_, watch_, counts_.tasks, number_);
    }
    add_counts();
  }

 private:
  enum class End { kDone, kSuspended, kStopped };

  // --- Idle.

  /// kNone: the run has ended. kOwn: this domain's bundle is full. Of a run over PEs also a crate, or with
  /// kGoesOn a join record.
  ESKER_HD std::uint32_t wait_for_bundle() {
    levels_.release();
    if constexpr (S::kRemote) outgoing_.release_crate();
    note(Doing::kAsks);
    const std::uint64_t began = Lane::clock_ns();
    bool has_asked = false;
    if constexpr (S::kRemote) {
      has_asked = lanes_.of_leader([&] { return run_.mailboxes.has_asked(number_) ? 1u : 0u; }) != 0;
      lanes_.leader([&] { (void)run_.idle.fetch_add_relaxed(1); });
    }
    typename Lanes::Pause pause;
    while (true) {
      std::uint32_t got = kNone;
      if (lanes_.of_leader([&] { return run_.mailboxes.try_get(number_) ? 1u : 0u; }) != 0) got = kOwn;
      if constexpr (S::kRemote) {
        if (got == kNone) got = lanes_.of_leader([&] { return try_take_remote(); });
        if (got != kNone) lanes_.leader([&] { (void)run_.idle.fetch_add_relaxed(~0u); });
      }
      if (got != kNone || has_ended()) {
        times().add_idle(lanes_, began);
        return got;
      }
      if (!has_asked) {
        ++counts_.asked;
        lanes_.leader([&] { run_.mailboxes.ask(number_); });
        has_asked = true;
      }
      pause.once();
    }
  }
  /// What the port has for domains that have nothing.
  ESKER_HD std::uint32_t try_take_remote() {
    std::uint32_t taken = run_.ready.try_take();
    taken = taken != kNone ? taken | kGoesOn : run_.arrived.try_take();
    if (taken == kNone) return kNone;
    (void)run_.taken.fetch_add_relaxed(1);
    run_.mailboxes.withdraw(number_);
    return taken;
  }
  ESKER_HD bool has_ended() {
    return lanes_.of_leader([&] { return run_.has_ended_or_should() ? 1u : 0u; }) != 0;
  }

  /// Makes the tasks of a bundle the lowest level.
  ESKER_HD void open(const std::uint32_t* words) {
    const std::uint32_t type = words[Bundle::kType], count = words[Bundle::kCount];
    return_join_ = words[Bundle::kJoin];
    return_entry_ = words[Bundle::kFirstEntry];
    levels_.begin(count);
    std::uint32_t* const level = levels_.words(levels_.top());
    const std::uint32_t capacity = Layout::capacity(count);
    std::uint32_t* tasks = level + Layout::tasks_at(type, count);
    if constexpr (S::kJoins) {
      lanes_.for_each(count, [&](std::uint32_t i) {
        store_columns(tasks + i, capacity,
                      Ref::to(levels_.top() + Layout::result_column(0, count) + i, count));
      });
      tasks += capacity;
    }
    for (std::uint32_t w = 0; w < Set::payload_words(type); ++w) {
      lanes_.for_each(count, [&](std::uint32_t i) {
        tasks[w * capacity + i] = words[Bundle::kPayload + w * kBatch + i];
      });
    }
    lanes_.leader([&] { level[Layout::kCount + type] = count; });
    rounds_a_look_ = kFirstLook;
    rounds_ = 0;
    if constexpr (S::kRemote) since_ = counts_.batches;
  }

  // --- Working.

  ESKER_HD End work() {
    while (true) {
      if (S::kRandom && random(4) == 0) Lanes::Pause::let_others_run();
      if (S::kRandom && random(4) == 0 && !levels_.put_one_away()) return End::kStopped;
      if constexpr (S::kRemote && Set::kPlaces) {
        // Before others run: they may run for long. None is ever given to a domain.
        if (!outgoing_.send_placed(levels_.words(levels_.top()))) return End::kStopped;
      }
      if (S::kRandom ? random(2) == 0 : ++rounds_ >= rounds_a_look_) {
        // A simulated GPU runs lanes that have yielded, as the port does, when no other can run.
        if (S::kRemote && esker::detail::kLanesUseHostCores) Lanes::Pause::let_others_run();
        if (has_ended()) return End::kStopped;
        look();
      }
      const std::uint32_t type = LevelStack<S>::type_with_tasks(levels_.words(levels_.top()));
      if (type != Set::kTypes) {
        if (!run_batch(type)) return End::kStopped;
        continue;
      }
      if constexpr (S::kJoins) {
        if (levels_.words(levels_.top())[Layout::kJoin] != kNone && !join())
          return has_ended() ? End::kStopped : End::kSuspended;
        if (levels_.is_bottom()) return End::kDone;
        if (resume()) continue;
      } else {
        if (levels_.is_bottom()) return End::kDone;
      }
      levels_.down();
    }
  }

  /// Runs tasks of that type: the highest, of several levels if one has too few. False: there is no memory
  /// for what they spawn.
  ESKER_HD bool run_batch(std::uint32_t type) {
    std::uint32_t most = levels_.is_low() ? 1 : kBatch;  // the least memory
    if constexpr (S::kRandom) most = 1 + random(most);
    const bool is_whole = Set::is_whole_wave(type);
    if (is_whole) most = 1;
    const std::uint32_t segment = levels_.segment_of(levels_.top());
    const std::uint32_t waiting = levels_.words(levels_.top())[Layout::kCount + type];
    bool is_new = true;
    if constexpr (S::kJoins) {
      if (!levels_.find_space(most)) return false;
    } else {
      is_new = !has_space_for_a_batch(waiting < most ? 0 : waiting - most);
      if (is_new && !levels_.find_space(0)) return false;
    }
    std::uint32_t n = 0;
    note(Doing::kRuns, type);
    Set::visit(type, [&](auto named) {
      using T = typename decltype(named)::type;
      if constexpr (!kIsPlaced<T>) n = run_batch_of<T>(most, is_new);
    });
    note(Doing::kSchedules);
    ++counts_.batches;
    counts_.tasks += n;
    const bool is_full = is_whole || n == kBatch;
    if (is_full) ++counts_.full_batches;
    if (watch_.is_on()) lanes_.leader([&] { watch_.add_batch(type, segment, n, is_full); });
    return true;
  }
  /// Returns how many there were.
  template <class T>
  ESKER_HD std::uint32_t run_batch_of(std::uint32_t most, bool is_new) {
    constexpr std::uint32_t kType = Set::template kIndex<T>;
    struct Taken {
      T task;
      Ref ref;
    };
    using Batch =
        std::conditional_t<kIsWholeWave<T>, WholeBatch<Taken>, typename Lanes::template Batch<kBatch, Taken>>;
    Batch batch;
    std::uint32_t n = 0, lowest = 0;
    for (std::uint32_t level = levels_.top(); n < most && level != kNone;
         level = S::kJoins ? levels_.below(level) : kNone) {
      std::uint32_t* const words = levels_.words(level);
      const std::uint32_t waiting = words[Layout::kCount + kType];
      const std::uint32_t frames = words[Layout::kFrames];
      const std::uint32_t count = waiting < most - n ? waiting : most - n;
      const std::uint32_t capacity = Layout::capacity(frames);
      const std::uint32_t* const tasks = words + Layout::tasks_at(kType, frames) + (waiting - count);
      batch.fill(lanes_, n, count, [&](std::uint32_t i) {
        if constexpr (S::kJoins) {
          return Taken{load_columns<T>(tasks + capacity + i, capacity),
                       load_columns<Ref>(tasks + i, capacity)};
        } else {
          return Taken{load_columns<T>(tasks + i, capacity), Ref{}};
        }
      });
      n += count;
      if (S::kJoins && count > 0) lowest = levels_.segment_of(level);
      lanes_.sync();
      lanes_.first([&] { words[Layout::kCount + kType] = waiting - count; });
    }
    const std::uint32_t level = is_new ? levels_.next() : levels_.top();
    if (is_new) levels_.clear_next(n, lowest);
    if constexpr (Set::kHasWholeWave) {
      rounds_ = kIsWholeWave<T> ? kMostRoundsALook : rounds_;  // long tasks: look after each
      if (is_new) lanes_.first([&] { levels_.words(level)[Layout::kWholeWave] = kIsWholeWave<T> ? 1 : 0; });
    }
    lanes_.sync();
    const Place<S> place{hot_, &run_, level, n};
    if (watch_.times_tasks()) times().enter_tasks(lanes_);
    const std::uint64_t waiting = batch.run(lanes_, n, [&](std::uint32_t i, const Taken& taken) {
      Context<S, T> context(place, i, taken.ref);
      taken.task(context);
      return context.finish();
    });
    lanes_.sync();
    if (watch_.times_tasks()) leave_tasks(kIsWholeWave<T>);
    if (is_new) {
      store_waiting(level, waiting);
      if (waiting != 0 || LevelStack<S>::type_with_tasks(levels_.words(level)) != Set::kTypes) levels_.up();
    }
    return n;
  }

  /// The frames of the highest level go on. False: none waits.
  ESKER_HD bool resume() {
    std::uint32_t* const level = levels_.words(levels_.top());
    const std::uint64_t waiting = level[Layout::kWaiting] | std::uint64_t{level[Layout::kWaiting + 1]} << 32;
    if (waiting == 0) return false;
    levels_.bring_back(level[Layout::kLowest]);
    const std::uint32_t frames = level[Layout::kFrames];
    const Place<S> place{hot_, &run_, levels_.top(), frames};
    const std::uint32_t* const resume_words = level + Layout::frame_column(Layout::kResume, frames);
    const auto go_on = [&](std::uint32_t i) {
      return load_columns<Resume<S>>(resume_words + i, frames)(place, i);
    };
    note(Doing::kContinues);
    if (watch_.times_tasks()) times().enter_tasks(lanes_);
    std::uint64_t again = 0;
    const bool is_whole = Set::kHasWholeWave && level[Layout::kWholeWave] != 0;
    if (is_whole) {
      again = go_on(0) ? 1 : 0;
      rounds_ = kMostRoundsALook;
    } else {
      again = lanes_.for_bits(waiting, go_on);
    }
    lanes_.sync();
    if (watch_.times_tasks()) leave_tasks(is_whole);
    note(Doing::kSchedules);
    store_waiting(levels_.top(), again);
    lanes_.sync();
    ++counts_.resumed;
    return true;
  }

  ESKER_HD void store_waiting(std::uint32_t level, std::uint64_t waiting) const {
    std::uint32_t* const words = levels_.words(level);
    lanes_.first([&] {
      words[Layout::kWaiting] = static_cast<std::uint32_t>(waiting);
      words[Layout::kWaiting + 1] = static_cast<std::uint32_t>(waiting >> 32);
    });
  }
  ESKER_HD bool has_space_for_a_batch(std::uint32_t left) const {
    std::uint32_t most = left;
    for (std::uint32_t t = 0; t < Set::kTypes; ++t) {
      const std::uint32_t count = levels_.words(levels_.top())[Layout::kCount + t];
      if (Set::kTypes > 1 && count > most) most = count;
    }
    return most + Set::kMostSpawns * kBatch <= Layout::kOpenCapacity;
  }

  /// What a wave's task has stored is there when its time ends: the scheduler's next load would wait for it.
  ESKER_HD void leave_tasks(bool is_whole) const {
    if (is_whole) fence_system();
    times().leave_tasks(lanes_);
  }
  ESKER_HD DomainTimes& times() const { return reinterpret_cast<DomainTimes&>(hot_[S::kTimesAt]); }

  // --- Giving.

  /// Gives tasks to a domain that asks, if one does. A stack looks seldom once it is old: who asks should get
  /// work for some while, and what is small is not worth the way.
  ESKER_HD void look() {
    rounds_ = 0;
    if (rounds_a_look_ < kMostRoundsALook) rounds_a_look_ *= 2;
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    const std::uint32_t first =
        static_cast<std::uint32_t>(random_ >> 33) % run_.mailboxes.windows() * Mailboxes::kWindow;
    const std::uint32_t taker = lanes_.find(
        Mailboxes::kWindow, number_, [&](std::uint32_t i) { return run_.mailboxes.was_asking(first + i); });
    if (taker != kNone) {
      give(first + taker);
    } else if constexpr (S::kRemote) {
      if (counts_.batches - since_ >= S::kBatchesAGift &&
          lanes_.of_leader([&] { return run_.pe_asked() ? 1u : 0u; }) != 0)
        give(kOtherPe);
    }
  }

  /// Gives tasks to a domain, or kOtherPe. The highest level keeps half of its own.
  ESKER_HD void give(std::uint32_t taker) {
    std::uint32_t* const level = levels_.find_lowest();
    if (level == nullptr) return;
    const std::uint32_t type = LevelStack<S>::type_with_tasks(level);
    const std::uint32_t count = level[Layout::kCount + type];
    std::uint32_t n = level == levels_.words(levels_.top()) ? count / 2 : count;
    // Memory first, then the promise: what is promised is there. Without memory nothing is given.
    n = outgoing_.memory_for(level, n < kBatch ? n : kBatch);
    if (n == 0) return;
    if (S::kRemote && taker == kOtherPe) {
      if (!outgoing_.has_crate()) return;
      if (lanes_.of_leader([&] { return run_.try_promise_to_pe() ? 1u : 0u; }) == 0) return;
      const std::uint32_t crate = outgoing_.take_crate();
      outgoing_.move_out(level, type, n, outgoing_.crate_words(crate));
      lanes_.leader([&] { run_.given.give_back(crate); });
      since_ += (counts_.batches - since_) / 2;
      return;
    }
    if (lanes_.of_leader([&] { return run_.mailboxes.try_promise(taker) ? 1u : 0u; }) == 0) return;
    outgoing_.move_out(level, type, n, outgoing_.bundle_words(taker));
    lanes_.leader([&] {
      if (watch_.is_on()) watch_.add_given(type, n);
      run_.mailboxes.put(taker);
    });
    ++counts_.given;
  }
  // --- Joining.

  /// The highest level has no tasks, and tasks of it were given away. True: they are all back, and their
  /// results are in their frames. False: the stack is left to others, or the run ends.
  ESKER_HD bool join() {
    const std::uint32_t join = levels_.words(levels_.top())[Layout::kJoin];
    std::uint32_t* const record = outgoing_.join_words(join);
    const bool alone =
        lanes_.of_leader([&] { return Join::left(record).load_acquire() == 1 ? 1u : 0u; }) != 0;  // [join]
    if (!alone) {
      if (!levels_.put_all_away(record)) return false;
      note_left(join);
      const std::uint32_t before = lanes_.of_leader([&] {
        record[Join::kReturnJoin] = return_join_;
        record[Join::kReturnEntry] = return_entry_;
        return Join::left(record).fetch_add_acq_rel(~0u);  // [join]
      });
      if (before != 1) {
        ++counts_.suspended;
        return false;
      }
      levels_.take_back(record);
      note_taken(join);
    }
    collect(join);
    return true;
  }

  /// Results of the tasks that were given away go to the frames of the highest level.
  ESKER_HD void collect(std::uint32_t join) {
    if constexpr (Set::kResultWords > 0) {
      const std::uint32_t* const record = outgoing_.join_words(join);
      lanes_.for_many(record[Join::kEntries], [&](std::uint32_t i) {
        const Ref ref{record[Join::kRefs + i]};
        for (std::uint32_t w = 0; w < Set::kResultWords; ++w) {
          hot_[ref.word() + w * ref.stride()] = record[Join::kResults + w * Join::kMostEntries + i];
        }
      });
    }
    lanes_.leader([&] { levels_.words(levels_.top())[Layout::kJoin] = kNone; });
    outgoing_.give_back_join(join);
  }

  /// The stack is done: what its tasks give goes where they came from. Returns the join record whose stack is
  /// to go on, or kNone.
  ESKER_HD std::uint32_t finish() {
    if constexpr (!S::kJoins) {
      lanes_.leader([&] {
        if (run_.unfinished.fetch_add_acq_rel(~0u) == 1 && (!S::kRemote || run_.pe == 0))  // [join]
          (void)run_.end(Outcome::kDone);
      });
      return kNone;
    } else {
      const std::uint32_t* const level = levels_.words(levels_.top());
      const std::uint32_t frames = level[Layout::kFrames];
      const std::uint32_t* const results = level + Layout::result_column(0, frames);
      const bool is_first = return_join_ == kNone;
      const bool is_remote = S::kRemote && return_join_ == kJoinsElsewhere;
      std::uint32_t* const record = outgoing_.join_words(is_first || is_remote ? 0 : return_join_);
      if constexpr (Set::kResultWords > 0) {
        std::uint32_t* const to = is_first    ? outgoing_.bundle_words(0) + Bundle::kResult
                                  : is_remote ? outgoing_.crate_words(return_entry_) + Bundle::kResult
                                              : record + Join::kResults + return_entry_;
        const std::uint32_t stride = is_first ? 1 : is_remote ? kBatch : Join::kMostEntries;
        lanes_.for_each(frames, [&](std::uint32_t i) {
          for (std::uint32_t w = 0; w < Set::kResultWords; ++w) to[w * stride + i] = results[w * frames + i];
        });
      }
      if (is_first) {
        lanes_.leader([&] { (void)run_.end(Outcome::kDone); });
        return kNone;
      }
      if (is_remote) {
        lanes_.leader([&] { run_.finished.give_back(return_entry_); });
        return kNone;
      }
      const std::uint32_t before =
          lanes_.of_leader([&] { return Join::left(record).fetch_add_acq_rel(~0u); });  // [join]
      return before == 1 ? return_join_ : kNone;
    }
  }

  /// Goes on with the stack that its owner has left. False: there is none.
  ESKER_HD bool take_over(std::uint32_t join) {
    if (join == kNone) return false;
    const std::uint32_t* const record = outgoing_.join_words(join);
    return_join_ = record[Join::kReturnJoin];
    return_entry_ = record[Join::kReturnEntry];
    levels_.take_back(record);
    note_taken(join);
    collect(join);
    return true;
  }

  ESKER_HD void add_counts() {
    const std::uint64_t sum = lanes_.sum(kSums, [&](std::uint32_t i) { return S::sums(hot_)[i]; });
    lanes_.leader([&] {
      (void)run_.sum.fetch_add_relaxed(sum);
      counts_.spilled = levels_.spilled();
      times().sum_up(counts_);
      const auto* const from = reinterpret_cast<const std::uint64_t*>(&counts_);
      for (std::uint32_t c = 0; c < sizeof(Counts) / 8; ++c) (void)run_.counts[c].fetch_add_relaxed(from[c]);
    });
  }

  // --- Of runs that are watched for hangs.

  ESKER_HD void note(Doing doing, std::uint32_t type = 0) const {
    if (!watch_.progress().is_on()) return;
    lanes_.first([&] {
      watch_.progress().is_doing(number_, doing, type, levels_.segment_of(levels_.top()), return_join_);
    });
  }
  ESKER_HD void note_left(std::uint32_t join) const {
    if (!watch_.progress().is_on()) return;
    lanes_.first([&] {
      LeftStack::leaves(watch_.progress(), join, number_, levels_.segment_of(levels_.top()), return_join_);
    });
  }
  ESKER_HD void note_taken(std::uint32_t join) const {
    if (!watch_.progress().is_on()) return;
    lanes_.first([&] { LeftStack::is_taken(watch_.progress(), join); });
  }

  // --- For tests, on the host.

  /// Until another domain asks, if one does soon: else short runs would be one domain's.
  ESKER_HD void wait_for_company() const {
    for (int i = 0; i < 200 && !run_.mailboxes.was_asking(0) && !run_.mailboxes.was_asking(1); ++i)
      Lanes::Pause::let_others_run();
  }
  /// Below `below`.
  ESKER_HD std::uint32_t random(std::uint32_t below) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(random_ >> 33) % below;
  }

  static constexpr std::uint32_t kSums = Lanes::kSums;
  static constexpr std::uint32_t kOwn = kNone - 1, kOtherPe = kNone - 1;
  static constexpr std::uint32_t kGoesOn = 0x8000'0000u;
  static constexpr std::uint32_t kFirstLook = 4, kMostRoundsALook = 64;  // batches

  Lanes lanes_;
  RunState& run_;
  const Watch watch_;
  std::uint32_t* const hot_;
  LevelStack<S> levels_;
  Outgoing<S> outgoing_;
  const std::uint32_t number_;
  std::uint32_t return_join_ = kNone, return_entry_ = 0;  // where the results of the stack's tasks go
  std::uint32_t rounds_ = 0, rounds_a_look_ = kFirstLook;
  // Of a run over PEs: batches when this stack was begun; half of what has passed since counts again when
  // some of it is given to a PE. Work that has lasted is likely to last, and travels no longer than it lasts.
  std::uint64_t since_ = 0;
  std::uint64_t random_;
  Counts counts_{};
};

}  // namespace esker::tasks::detail
