// Where the state of a run stands.
#pragma once

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
