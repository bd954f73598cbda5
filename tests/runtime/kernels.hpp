// Kernels that send from branches and loops, as one collective check each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <esker/device/election/fine_grain.hpp>
#include <esker/device/election/per_lane.hpp>
#include <esker/device/election/per_wave.hpp>
#include <esker/device/election/predicated.hpp>
#include <esker/runtime.hpp>

#include "../device/gtest.hpp"
#include "seed.hpp"

namespace esker::testing {

/// Every lane of every PE has a word of its own on a random PE.
struct SendHit {
  SymmetricArray<std::uint64_t> counts;
  std::uint64_t lanes;
  std::uint64_t stream;

  ESKER_HD std::uint32_t pe_of(std::uint64_t word, std::uint32_t n_pes) const {
    return static_cast<std::uint32_t>(mix(stream + word) % n_pes);
  }
  template <class Item, class... Election>
  ESKER_HD void operator()(Item&& item, Election... election) const {
    const std::uint64_t word = item.pe() * lanes + item.global_id();
    shmem_inc(item, &counts[word], pe_of(word, item.n_pes()), election...);
  }
};

/// Collective. Lanes hit their words as often as `hits(lane)` says, in the kernel that `launch(rt, lanes,
/// send)` launches.
template <class Hits, class Launch>
void check_hits(Runtime& rt, const std::string& what, std::uint64_t lanes, Hits hits, Launch launch) {
  const auto counts = rt.heap().allocate<std::uint64_t>(lanes * rt.n_pes());
  const SendHit send{counts, lanes, seed()};
  launch(rt, lanes, send);
  rt.barrier_all();
  const std::vector<std::uint64_t> got = rt.heap().read(counts);
  std::uint64_t wrong = 0;
  for (std::uint64_t word = 0; word < got.size(); ++word) {
    const std::uint64_t expected = send.pe_of(word, rt.n_pes()) == rt.pe() ? hits(word % lanes) : 0;
    wrong += got[word] != expected ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u) << what << " on PE " << rt.pe();
  rt.heap().free(counts);
}

/// Collective. Each election sends one message a lane; two thirds of the lanes where it can be in a branch.
inline void check_elections(Runtime& rt, std::uint64_t lanes) {
  const auto all = [](std::uint64_t) { return 1u; };
  const auto most = [](std::uint64_t id) { return id % 3 != 0 ? 1u : 0u; };
  check_hits(rt, "outbox", lanes, most, [](Runtime& r, std::uint64_t n, const SendHit& send) {
    r.launch(n, [=] ESKER_LAMBDA(WorkItem item) {
      if (item.global_id() % 3 != 0) send(item);
    });
  });
  check_hits(rt, "per lane, no group", lanes, most, [](Runtime& r, std::uint64_t n, const SendHit& send) {
    r.launch(n, [=] ESKER_LAMBDA(WorkItem item) {
      if (item.global_id() % 3 != 0) send(item, PerLane{});
    });
  });
  check_hits(rt, "per lane", lanes, most, [](Runtime& r, std::uint64_t n, const SendHit& send) {
    r.launch(n, [=] ESKER_LAMBDA(GroupItem & item) {
      if (item.global_id() % 3 != 0) send(item, PerLane{});
    });
  });
  check_hits(rt, "auto-group", lanes, most, [](Runtime& r, std::uint64_t n, const SendHit& send) {
    r.launch(n, [=] ESKER_LAMBDA(GroupItem & item) {
      if (item.global_id() % 3 != 0) send(item);
    });
  });
  check_hits(rt, "per wave", lanes, most, [](Runtime& r, std::uint64_t n, const SendHit& send) {
    r.launch(n, [=] ESKER_LAMBDA(GroupItem & item) { send(item, PerWave{item.global_id() % 3 != 0}); });
  });
  check_hits(rt, "per converged wave", lanes, most, [](Runtime& r, std::uint64_t n, const SendHit& send) {
    r.launch(n, [=] ESKER_LAMBDA(GroupItem & item) {
      if (item.global_id() % 3 != 0) send(item, PerConvergedWave{});
    });
  });
  check_hits(rt, "predicated", lanes, most, [](Runtime& r, std::uint64_t n, const SendHit& send) {
    r.launch(n, [=] ESKER_LAMBDA(GroupItem & item) { send(item, Predicated{item.global_id() % 3 != 0}); });
  });
  check_hits(rt, "fine grain", lanes, all, [](Runtime& r, std::uint64_t n, const SendHit& send) {
    r.launch(n, [=] ESKER_LAMBDA(GroupItem & item) {
      auto& state = item.group_lane().scratch<FineGrainState<>>();
      FineGrainBarrier<> members(item.group_lane(), state);
      members.join();
      item.group().sync();
      send(item, FineGrain<>{members});
      members.leave();
    });
  });
}

/// Nested branches, a loop of another length in each lane, and lanes that return early.
struct Diverge {
  SendHit send;

  template <class Item>
  ESKER_HD void operator()(Item&& item) const {
    const std::uint64_t id = item.global_id();
    if (id % 5 == 0) return;
    for (std::uint64_t i = 0; i < id % 7; ++i) send(item);
    if (id % 2 == 0) {
      send(item);
      if (id % 3 == 0) {
        send(item);
        send(item);
      }
    }
  }
  static std::uint64_t hits(std::uint64_t id) {
    if (id % 5 == 0) return 0;
    return id % 7 + (id % 2 == 0 ? 1 : 0) + (id % 2 == 0 && id % 3 == 0 ? 2 : 0);
  }
};

/// Collective.
inline void check_divergence(Runtime& rt, std::uint64_t lanes) {
  check_hits(rt, "divergent lanes", lanes, Diverge::hits,
             [](Runtime& r, std::uint64_t n, const SendHit& send) {
               const Diverge body{send};
               r.launch(n, [=] ESKER_LAMBDA(WorkItem item) { body(item); });
             });
  check_hits(rt, "divergent lanes of a group", lanes, Diverge::hits,
             [](Runtime& r, std::uint64_t n, const SendHit& send) {
               const Diverge body{send};
               r.launch(n, [=] ESKER_LAMBDA(GroupItem & item) { body(item); });
             });
}

struct Words {
  std::uint64_t put, inc, add, handled;
  std::uint32_t narrow_inc, narrow_put;
};

struct SendInterleaved {
  SymmetricArray<Words> words;
  Handler<std::uint64_t, std::uint64_t> handler;

  template <class Item>
  ESKER_HD void operator()(Item&& item) const {
    const std::uint64_t id = item.global_id();
    const std::uint32_t to = (item.pe() + 1) % item.n_pes();
    Words& w = words[id];
    if (id % 2 == 0) shmem_put(item, &w.put, id + 1, to);
    shmem_inc(item, &w.inc, to);
    shmem_add(item, &w.add, id, to);
    shmem_am(item, handler, &w.handled, 3 * id, to);
    if (id % 3 == 0) shmem_inc(item, &w.narrow_inc, to);
    shmem_put(item, &w.narrow_put, static_cast<std::uint32_t>(id), to);
  }
};

/// Collective. Lanes alternate between six commands, more than stay open side by side.
inline void check_interleaved_commands(Runtime& rt, std::uint64_t lanes) {
  const auto words = rt.heap().allocate<Words>(lanes);
  const auto handler = rt.register_handler<std::uint64_t, std::uint64_t>(
      "interleaved",
      [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & word, const std::uint64_t& value) { word += value; });
  const SendInterleaved body{words, handler};
  for (std::uint64_t round = 1; round <= 2; ++round) {
    if (round == 1)
      rt.launch(lanes, [=] ESKER_LAMBDA(WorkItem item) { body(item); });
    else
      rt.launch(lanes, [=] ESKER_LAMBDA(GroupItem & item) { body(item); });
    rt.barrier_all();
    const std::vector<Words> got = rt.heap().read(words);
    std::uint64_t wrong = 0;
    for (std::uint64_t id = 0; id < lanes; ++id) {
      const Words& w = got[id];
      wrong += w.put != (id % 2 == 0 ? id + 1 : 0) || w.inc != round || w.add != round * id ||
                       w.handled != round * 3 * id || w.narrow_inc != (id % 3 == 0 ? round : 0) ||
                       w.narrow_put != id
                   ? 1
                   : 0;
    }
    EXPECT_EQ(wrong, 0u) << "round " << round << " on PE " << rt.pe();
    rt.barrier_all();
  }
  rt.heap().free(words);
}

}  // namespace esker::testing
