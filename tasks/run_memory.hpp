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
  std::uint32_t *page_links, *bundle_links, *join_links;
  std::uint64_t* requests;
  std::uint32_t* mailboxes;
  std::uint32_t pages, bundles, joins, requests_size;
};

/// The place of this process among those of a run over PEs.
struct RunPlace {
  std::uint32_t pe = 0, n_pes = 1;
  PortMemory* port = nullptr;
  bool has_root = true;
};

/// One lane's: everything at the start of a run, whose first bundle, number 0, is domain 0's, on the PE that
/// has the root. Requests and mailboxes are empty.
struct Prepare {
  RunState* run;
  RunMemory memory;
  std::uint64_t seed;
  const SystemAtomic<std::uint32_t>* stop;  // a StopToken's word; null: the run has its own
  void* local;
  RunPlace place;
  ESKER_HD void operator()(Lane) const {
    run->pages.reset(memory.page_links, memory.pages);
    run->bundles.reset(memory.bundle_links, memory.bundles);
    run->joins.reset(memory.join_links, memory.joins);
    run->exchange.reset(memory.requests, memory.mailboxes, memory.requests_size);
    if (place.has_root) {
      (void)run->bundles.try_take();
      run->exchange.put(0, 0);
    }
    run->placed.reset(memory.bundle_links, 0);  // a bundle is in one list at a time
    run->given.reset(memory.bundle_links, 0);
    run->finished.reset(memory.bundle_links, 0);
    run->arrived.reset(memory.bundle_links, 0);
    run->ready.reset(memory.join_links, 0);
    run->taken.store_relaxed(0);
    run->idle.store_relaxed(0);
    run->wanted.store_relaxed(0);
    run->promised.store_relaxed(0);
    run->port = place.port;
    run->pe = place.pe;
    run->n_pes = place.n_pes;
    run->local = local;
    run->page_words = memory.page_words;
    run->bundle_words = memory.bundle_words;
    run->join_words = memory.join_words;
    run->seed = seed;
    run->stop_word.store_relaxed(0);
    run->stop = stop != nullptr ? stop : &run->stop_word;
    run->outcome.store_relaxed(static_cast<std::uint32_t>(Outcome::kRunning));
    run->sum.store_relaxed(0);
    for (auto& count : run->counts) count.store_relaxed(0);
  }
};

}  // namespace esker::tasks::detail
