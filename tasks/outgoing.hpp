// What is known of tasks that are away, and where they go: join records, bundles and crates, as whoever gives
// tasks handles them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/device/platform.hpp>
#include <esker/tasks/lanes.hpp>
#include <esker/tasks/scheduler.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {

/// A domain's, or a port's.
///
/// Contract All lanes call, converged. It keeps a join record and a crate for the next time, since the pools
///          are everybody's.
template <class S>
class Outgoing {
  using Set = typename S::Set;
  using Lanes = DomainLanes;
  using Layout = typename S::Layout;
  using Bundle = typename S::Bundle;
  using Join = typename S::Join;
  static constexpr std::uint32_t kBatch = S::kBatch;

 public:
  ESKER_HD Outgoing(const Lanes& lanes, RunState& run, std::uint32_t domain)
      : lanes_{lanes}, run_{run}, domain_{domain} {}

  ESKER_HD std::uint32_t* bundle_words(std::uint32_t domain) const {
    return Lanes::in_memory(run_.bundle_words) + std::size_t{domain} * Bundle::kWords;
  }
  ESKER_HD std::uint32_t* join_words(std::uint32_t join) const {
    return Lanes::in_memory(run_.join_words) + std::size_t{join} * Join::kWords;
  }
  ESKER_HD std::uint32_t* crate_words(std::uint32_t crate) const {
    return Lanes::in_memory(run_.crate_words) + std::size_t{crate} * Bundle::kWords;
  }
  /// A crate is kept for whoever takes one next. False: there is no memory.
  ESKER_HD bool has_crate() {
    if (spare_crate_ == kNone) spare_crate_ = lanes_.of_leader([&] { return run_.crates.try_take(); });
    return spare_crate_ != kNone;
  }
  ESKER_HD std::uint32_t take_crate() {
    const std::uint32_t crate = spare_crate_;
    spare_crate_ = kNone;
    return crate;
  }
  /// The crate that is kept, if one is: a domain that has nothing keeps none, so that the port finds one.
  ESKER_HD void release_crate() {
    if (spare_crate_ != kNone) give_back_crate(take_crate());
  }
  ESKER_HD void give_back_crate(std::uint32_t crate) const {
    lanes_.leader([&] { run_.crates.give_back(crate); });
  }
  ESKER_HD void give_back_join(std::uint32_t join) {
    if (spare_join_ == kNone) {
      spare_join_ = join;
    } else {
      lanes_.leader([&] { run_.joins.give_back(join); });
    }
  }

  /// How many of n tasks of a level there is memory for, to know of them while they are away.
  ESKER_HD std::uint32_t memory_for(const std::uint32_t* level, std::uint32_t n) {
    if constexpr (S::kJoins) {
      const std::uint32_t join = level[Layout::kJoin];
      if (join != kNone) {
        if constexpr (Set::kResultWords > 0) {
          const std::uint32_t left = Join::kMostEntries - join_words(join)[Join::kEntries];
          n = n < left ? n : left;
        }
      } else if (spare_join_ == kNone) {
        spare_join_ = lanes_.of_leader([&] { return run_.joins.try_take(domain_).number; });
        if (spare_join_ == kNone) return 0;
      }
    }
    return n;
  }
  /// Moves n tasks of a level to a bundle, after memory_for() them.
  ESKER_HD void move_out(std::uint32_t* level, std::uint32_t type, std::uint32_t n, std::uint32_t* words) {
    const std::uint32_t count = level[Layout::kCount + type];
    std::uint32_t join = level[Layout::kJoin], entries = 0;
    const bool is_new = join == kNone;
    if constexpr (S::kJoins) {
      if (is_new) {
        join = spare_join_;
        spare_join_ = kNone;
      } else {
        entries = join_words(join)[Join::kEntries];
      }
    }
    const std::uint32_t frames = level[Layout::kFrames], capacity = Layout::capacity(frames);
    std::uint32_t* column = level + Layout::tasks_at(type, frames);
    // Where tasks do not join the first are the oldest, and have the largest subtrees. Those that are left
    // keep their order, so that the next gift is large, too.
    const std::uint32_t left_over = count - n, first = S::kJoins ? left_over : 0;
    if constexpr (S::kJoins) {
      lanes_.for_each(n, [&](std::uint32_t i) {
        if (Set::kResultWords > 0) join_words(join)[Join::kRefs + entries + i] = column[first + i];
      });
      column += capacity;
    }
    for (std::uint32_t w = 0; w < Set::payload_words(type); ++w, column += capacity) {
      lanes_.for_each(n,
                      [&](std::uint32_t i) { words[Bundle::kPayload + w * kBatch + i] = column[first + i]; });
      if constexpr (!S::kJoins) lanes_.shift(column, n, left_over);
    }
    lanes_.leader([&] {
      words[Bundle::kType] = type;
      words[Bundle::kCount] = n;
      words[Bundle::kJoin] = join;
      words[Bundle::kFirstEntry] = entries;
      if constexpr (S::kJoins) {
        std::uint32_t* const record = join_words(join);
        record[Join::kEntries] = entries + n;
        if (is_new) {
          Join::left(record).store_relaxed(2);
          level[Layout::kJoin] = join;
        } else {
          (void)Join::left(record).fetch_add_relaxed(1);
        }
      } else {
        (void)run_.unfinished.fetch_add_relaxed(1);
      }
      level[Layout::kCount + type] = left_over;
    });
  }
  /// Tasks of a level that are for other PEs go to the port. False: there is no memory for what is
  /// known of them meanwhile.
  ESKER_HD bool send_placed(std::uint32_t* level) {
    for (std::uint32_t type = 0; type < Set::kTypes; ++type) {
      while (Set::is_placed(type) && level[Layout::kCount + type] != 0) {
        const std::uint32_t count = level[Layout::kCount + type];
        const std::uint32_t n = memory_for(level, count < kBatch ? count : kBatch);
        if (n == 0 || !has_crate()) {
          lanes_.leader([&] { (void)run_.end(Outcome::kOutOfMemory); });
          return false;
        }
        const std::uint32_t crate = take_crate();
        move_out(level, type, n, crate_words(crate));
        lanes_.leader([&] { run_.placed.give_back(crate); });
      }
    }
    return true;
  }

 private:
  Lanes lanes_;
  RunState& run_;
  const std::uint32_t domain_;
  std::uint32_t spare_join_ = kNone, spare_crate_ = kNone;
};

}  // namespace esker::tasks::detail
