// Bundles and join records, as whoever gives tasks away or brings them back handles them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/device/platform.hpp>
#include <esker/tasks/lanes.hpp>
#include <esker/tasks/level_stack.hpp>
#include <esker/tasks/scheduler.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {

/// A domain's, or a port's.
///
/// Contract All lanes call, converged. It keeps a bundle and a join record for the next time, since the pools
///          are everybody's.
template <class S>
class Bundles {
  using Set = typename S::Set;
  using Lanes = DomainLanes;
  using Layout = typename S::Layout;
  using Bundle = typename S::Bundle;
  using Join = typename S::Join;
  static constexpr std::uint32_t kBatch = S::kBatch;

 public:
  ESKER_HD Bundles(const Lanes& lanes, RunState& run) : lanes_{lanes}, run_{run} {}

  ESKER_HD std::uint32_t* words(std::uint32_t bundle) const {
    return run_.bundle_words + std::size_t{bundle} * Bundle::kWords;
  }
  ESKER_HD std::uint32_t* join_words(std::uint32_t join) const {
    return run_.join_words + std::size_t{join} * Join::kWords;
  }

  /// A bundle, which is kept for the one that asks next. False: there is no memory.
  ESKER_HD bool has_bundle() {
    if (spare_bundle_ == kNone) spare_bundle_ = lanes_.of_leader([&] { return run_.bundles.try_take(); });
    return spare_bundle_ != kNone;
  }
  ESKER_HD std::uint32_t take_bundle() {
    const std::uint32_t bundle = spare_bundle_;
    spare_bundle_ = kNone;
    return bundle;
  }
  ESKER_HD void give_back(std::uint32_t bundle) { keep_or_give_back(spare_bundle_, bundle, run_.bundles); }
  ESKER_HD void give_back_join(std::uint32_t join) { keep_or_give_back(spare_join_, join, run_.joins); }

  /// How many of `n` tasks of a level with this header there is memory for: what is promised then is there.
  ESKER_HD std::uint32_t memory_for(std::uint32_t n, const std::uint32_t* header) {
    const std::uint32_t join = header[Layout::kJoin];
    if (Set::kResultWords > 0 && join != kNone) {
      const std::uint32_t left = Join::kMostEntries - join_words(join)[Join::kEntries];
      n = n < left ? n : left;
    }
    if (n == 0 || !has_bundle()) return 0;
    if (join == kNone && spare_join_ == kNone)
      spare_join_ = lanes_.of_leader([&] { return run_.joins.try_take(); });
    return join == kNone && spare_join_ == kNone ? 0 : n;
  }

  /// Moves n tasks of a level to a bundle, after memory_for() them.
  ESKER_HD std::uint32_t move_out(const typename LevelStack<S>::Spare& spare, std::uint32_t n) {
    std::uint32_t* const header = spare.header;
    const std::uint32_t type = spare.type, count = header[Layout::kCount + type];
    std::uint32_t join = header[Layout::kJoin];
    const bool is_new = join == kNone;
    const std::uint32_t entries = is_new ? 0 : join_words(join)[Join::kEntries];
    const std::uint32_t bundle = take_bundle();
    if (is_new) {
      join = spare_join_;
      spare_join_ = kNone;
    }
    std::uint32_t* const to_words = words(bundle);
    std::uint32_t* const record = join_words(join);
    // Where levels are pieces of one stack the first tasks are the oldest, and have the largest subtrees.
    // What is left of the level closes the gap, in its order.
    const std::uint32_t left_over = count - n, first = S::kJoins ? left_over : 0;
    for (std::uint32_t c = 0; c < Layout::columns_of(type); ++c) {
      std::uint32_t* const to = to_words + Bundle::kRefs + c * kBatch;
      std::uint32_t* const column = spare.tasks + c * spare.stride;
      lanes_.for_each(n, [&](std::uint32_t i) { to[i] = column[first + i]; });
      if constexpr (!S::kJoins) lanes_.shift_down(column, n, left_over);
    }
    lanes_.leader([&] {
      to_words[Bundle::kType] = type;
      to_words[Bundle::kCount] = n;
      to_words[Bundle::kJoin] = join;
      to_words[Bundle::kFirstEntry] = entries;
      record[Join::kEntries] = entries + n;
      if (is_new) {
        Join::left(record).store_relaxed(2);
        header[Layout::kJoin] = join;
      } else {
        (void)Join::left(record).fetch_add_relaxed(1);
      }
      header[Layout::kCount + type] = left_over;
    });
    return bundle;
  }

  /// Tasks of a level that are for other PEs go to the port. False: there is no memory for what is known of
  /// them meanwhile.
  ESKER_HD bool send_placed(std::uint32_t* level) {
    for (std::uint32_t type = 0; type < Set::kTypes; ++type) {
      while (Set::is_placed(type) && level[Layout::kCount + type] != 0) {
        const std::uint32_t count = level[Layout::kCount + type];
        const std::uint32_t n = memory_for(count < kBatch ? count : kBatch, level);
        if (n == 0) {
          lanes_.leader([&] { (void)run_.end(Outcome::kOutOfMemory); });
          return false;
        }
        const std::uint32_t bundle =
            move_out({type, level, level + Layout::tasks_at(type), Layout::kCapacity, true}, n);
        lanes_.leader([&] { run_.placed.give_back(bundle); });
      }
    }
    return true;
  }

  /// A bundle is done: what its tasks have given goes where they came from. Returns the join record whose
  /// stack is to go on, or kNone.
  ESKER_HD std::uint32_t bring_back(std::uint32_t bundle) {
    const std::uint32_t* const from = words(bundle);
    const std::uint32_t join = from[Bundle::kJoin];
    std::uint32_t* const record = join_words(join);
    if constexpr (Set::kResultWords > 0) {
      const std::uint32_t first = from[Bundle::kFirstEntry];
      lanes_.for_each(from[Bundle::kCount], [&](std::uint32_t i) {
        record[Join::kRefs + first + i] = from[Bundle::kRefs + i];
        for (std::uint32_t w = 0; w < Set::kResultWords; ++w) {
          record[Join::kResults + w * Join::kMostEntries + first + i] =
              from[Bundle::kResults + w * kBatch + i];
        }
      });
    }
    give_back(bundle);
    const std::uint32_t before =
        lanes_.of_leader([&] { return Join::left(record).fetch_add_acq_rel(~0u); });  // [join]
    return before == 1 ? join : kNone;
  }

 private:
  ESKER_HD void keep_or_give_back(std::uint32_t& spare, std::uint32_t number, Pool& pool) {
    if (spare == kNone) {
      spare = number;
    } else {
      lanes_.leader([&] { pool.give_back(number); });
    }
  }

  Lanes lanes_;
  RunState& run_;
  std::uint32_t spare_bundle_ = kNone, spare_join_ = kNone;
};

}  // namespace esker::tasks::detail
