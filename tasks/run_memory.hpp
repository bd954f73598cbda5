// Where the state of a run stands.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <esker/device/lane.hpp>
#include <esker/tasks/state.hpp>

namespace esker::tasks::detail {

/// Pointers into a device's memory, by which domains find everything.
struct RunMemory {
  std::uint32_t* page_words;
  std::uint32_t* bundle_words;
  std::uint32_t* join_words;
  std::uint32_t* crate_words;
  std::uint32_t *page_links, *join_links, *crate_links;
  std::uint32_t* mailboxes;
  std::uint32_t domains, pages, joins, crates;
};

/// How Options::memory_bytes is divided: a bundle a domain, join records and crates as there are domains, but
/// no more than a quarter each of what is not needed in any case, and pages.
class MemoryPlan {
 public:
  template <class S>
  static MemoryPlan of(std::uint32_t domains) {
    constexpr std::uint32_t kMostCrates = S::kRemote ? 1024 : 0;
    MemoryPlan plan;
    plan.domains_ = domains;
    plan.bundle_bytes_ = S::Bundle::kWords * 4;
    // Of those that go out and come back, each with its link.
    plan.join_ = {(S::Join::kWords + 1) * 4, S::kJoins ? 2u : 0u, S::kJoins ? 4 * domains + kMostCrates : 0};
    plan.crate_ = {(S::Bundle::kWords + 1) * 4, S::kRemote ? 4u : 0u, S::kRemote ? kMostCrates + domains : 0};
    plan.page_bytes_ = (S::Page::kWords + 1) * 4;
    // Over PEs each stack counts for itself: one that a domain works on, or that a join record knows.
    plan.stacks_ = domains + (S::kRemote ? plan.join_.most : 0);
    plan.segments_a_depth_ = S::kRemote ? S::kSegmentsADepthOfAStack : S::kSegmentsADepth;
    plan.spare_pages_ = S::kMostSparePages;
    return plan;
  }

  /// A run needs them in any case.
  std::uint64_t least_bytes() const {
    return domains_ * bundle_bytes_ + join_.least * join_.bytes + crate_.least * crate_.bytes +
           kLeastPages * page_bytes_;
  }
  /// With so many no run of tasks nested so deep is short of pages, nor close to it, and so many crates are
  /// sure, of at most most_crates().
  std::uint64_t bytes_for(std::uint64_t depth, std::uint64_t crates = 0) const {
    const std::uint64_t out = stacks_ * (depth + 1) * segments_a_depth_ + domains_ * spare_pages_;
    const std::uint64_t others = join_.more() * join_.bytes + crate_.more() * crate_.bytes;
    const std::uint64_t crates_more = crates > crate_.least ? crates - crate_.least : 0;
    return least_bytes() +
           std::max(4 * crates_more * crate_.bytes,
                    others + Pools::size_for(out, static_cast<std::uint32_t>(domains_)) * page_bytes_);
  }
  std::uint64_t most_crates() const { return crate_.most; }

  struct Numbers {
    std::uint64_t joins, crates, pages;
  };
  /// Of at least least_bytes().
  Numbers divide(std::uint64_t bytes) const {
    std::uint64_t left = bytes - least_bytes();
    const std::uint64_t quarter = left / 4;
    const auto take = [&](const Kind& kind) {
      const std::uint64_t n = std::min(kind.more(), quarter / kind.bytes);
      left -= n * kind.bytes;
      return kind.least + n;
    };
    const std::uint64_t joins = take(join_), crates = take(crate_);
    return {joins, crates, std::min<std::uint64_t>(kLeastPages + left / page_bytes_, 0xfffffff0u)};
  }
  /// What a run has used.
  std::uint64_t bytes_of(const Numbers& used) const {
    return domains_ * bundle_bytes_ + used.joins * join_.bytes + used.crates * crate_.bytes +
           used.pages * page_bytes_;
  }

 private:
  static constexpr std::uint64_t kLeastPages = 2;
  struct Kind {
    std::uint64_t bytes, least, most;
    std::uint64_t more() const { return most > least ? most - least : 0; }
  };

  std::uint64_t domains_ = 0, bundle_bytes_ = 0, page_bytes_ = 0;
  Kind join_{}, crate_{};
  std::uint64_t stacks_ = 0, segments_a_depth_ = 0, spare_pages_ = 0;
};

/// The place of this process among those of a run over PEs.
struct RunPlace {
  std::uint32_t pe = 0, n_pes = 1;
  PortMemory* port = nullptr;
};

/// One lane's: everything at the start of a run, whose first task is in PE 0's domain 0's bundle. No domain
/// asks.
struct Prepare {
  RunState* run;
  RunMemory memory;
  std::uint64_t seed;
  const SystemAtomic<std::uint32_t>* stop;  // a StopToken's word; null: the run has its own
  void* local;
  RunPlace place;
  ESKER_HD void operator()(Lane) const {
    run->pages.reset(memory.page_links, memory.pages, memory.domains);
    run->joins.reset(memory.join_links, memory.joins, memory.domains);
    run->mailboxes.reset(memory.mailboxes, memory.domains);
    if (place.pe == 0) run->mailboxes.put(0);
    run->unfinished.store_relaxed(place.pe == 0 ? 1 : 0);
    run->crates.reset(memory.crate_links, memory.crates);
    for (Pool* list : {&run->placed, &run->given, &run->finished, &run->arrived})
      list->reset(memory.crate_links, 0);
    run->ready.reset(memory.join_links, 0);
    run->taken.store_relaxed(0);
    run->idle.store_relaxed(0);
    run->wanted.store_relaxed(0);
    run->promised.store_relaxed(0);
    run->port = place.port;
    run->crate_words = memory.crate_words;
    run->pe = place.pe;
    run->n_pes = place.n_pes;
    run->local = local;
    run->page_words = memory.page_words;
    run->bundle_words = memory.bundle_words;
    run->join_words = memory.join_words;
    run->seed = seed;
    run->begin(stop);
    run->sum.store_relaxed(0);
    for (auto& count : run->counts) count.store_relaxed(0);
  }
};

}  // namespace esker::tasks::detail
