// What lanes do with the lists: take vertices, relax their edges, tell other PEs.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>

#include "../graph/list_runs.hpp"
#include "../styles/message.hpp"
#include "vertices.hpp"

namespace sssp {

/// The least distance that lanes have met.
template <class D>
struct Least {
  esker::SymmetricArray<D> word;
  ESKER_HD void lower(D candidate) const {
    auto& least = reinterpret_cast<esker::DeviceAtomic<D>&>(word[0]);
    D seen = least.load_relaxed();
    while (candidate < seen && !least.compare_exchange_relaxed(seen, candidate)) {
    }
  }
};

/// Vertices that wait, in one of two lists: those below the horizon, which are looked at whenever the
/// threshold rises, and those beyond. A vertex may be in both, where it has fallen from one to the other.
template <class D>
struct Waiting {
  typename Lists<D>::Name name;
  typename Vertex<D>::Marks mark;
  esker::SymmetricArray<std::uint32_t> list;
  Least<D> least;  // of the list, or less
};

/// Fallen vertices, kRun a lane: below the threshold they are taken, others wait.
template <class D, std::uint64_t kRun>
struct TakeFallen {
  Lists<D> lists;
  std::uint64_t count;
  Waiting<D> held, far;
  D threshold, horizon;
  ESKER_HD void operator()(esker::Lane lane) const {
    const graph::RunOf<kRun> run(lane.global_id(), count);
    graph::Appender<std::uint32_t, kRun> holds(lists.lengths[held.name], held.list);
    graph::Appender<std::uint32_t, kRun> puts_off(lists.lengths[far.name], far.list);
    D nearest_held = kFar<D>, nearest_far = kFar<D>;
    std::uint64_t took = run.first, parts = 0;  // the list from run.first to `took`: who is taken
    for (std::uint64_t i = run.first; i < run.end; ++i) {
      const std::uint32_t v = lists.fallen[i];
      Vertex<D>& vertex = lists.vertices[v];
      vertex.marks &= ~Vertex<D>::kFallen;
      if (vertex.distance < threshold) {
        if (took != i) lists.fallen[took] = v;
        ++took;
        parts += lists.taken.count(v);
        continue;
      }
      const bool is_far = vertex.distance >= horizon;
      D& nearest = is_far ? nearest_far : nearest_held;
      nearest = vertex.distance < nearest ? vertex.distance : nearest;
      const auto mark = is_far ? far.mark : held.mark;
      if ((vertex.marks & mark) != 0) continue;
      vertex.marks |= mark;
      (is_far ? puts_off : holds).add(v);
    }
    held.least.lower(nearest_held);
    far.least.lower(nearest_far);
    if (parts == 0) return;
    std::uint64_t at = lists.reserve(Lists<D>::kTaken, parts);
    for (std::uint64_t i = run.first; i < took; ++i) {
      const std::uint32_t v = lists.fallen[i];
      at = lists.taken.write(at, v, lists.vertices[v].distance);
    }
  }
};

/// Waiting vertices, kRun a lane, when what they wait for has risen to `end`: those below it go on to the
/// next list, unless they are there, or have fallen below `begin` since and had their turn. Others stay.
template <class D, std::uint64_t kRun>
struct Release {
  Lists<D> lists;
  std::uint64_t count;
  Waiting<D> from, to;
  esker::SymmetricArray<std::uint32_t> stay;
  D begin, end;
  ESKER_HD void operator()(esker::Lane lane) const {
    const graph::RunOf<kRun> run(lane.global_id(), count);
    graph::Appender<std::uint32_t, kRun> stays(lists.lengths[Lists<D>::kStay], stay);
    graph::Appender<std::uint32_t, kRun> goes(lists.lengths[to.name], to.list);
    D nearest_from = kFar<D>, nearest_to = kFar<D>;
    for (std::uint64_t i = run.first; i < run.end; ++i) {
      const std::uint32_t v = from.list[i];
      Vertex<D>& vertex = lists.vertices[v];
      const bool remains = vertex.distance >= end;
      D& nearest = remains ? nearest_from : nearest_to;
      nearest = vertex.distance < nearest ? vertex.distance : nearest;
      if (remains) {
        stays.add(v);
        continue;
      }
      vertex.marks &= ~from.mark;
      if (vertex.distance < begin || (vertex.marks & to.mark) != 0) continue;
      vertex.marks |= to.mark;
      goes.add(v);
    }
    from.least.lower(nearest_from);
    if (to.least.word.size() > 0) to.least.lower(nearest_to);
  }
};

/// Edges of taken vertices, kRun chunks a lane. The ends that are this PE's fall; of others' vertices this PE
/// remembers what it has found.
template <class D, std::uint64_t kRun>
struct Relax {
  Lists<D> lists;
  esker::SymmetricArray<Edge<D>> edges;
  std::uint64_t count;
  ESKER_HD void operator()(esker::Lane lane) const {
    const graph::RunOf<kRun> run(lane.global_id(), count);
    graph::Appender<std::uint32_t, kRun> falls(lists.lengths[Lists<D>::kFallen], lists.fallen);
    graph::Appender<std::uint32_t, kRun> tells(lists.lengths[Lists<D>::kRemote], lists.remote);
    for (std::uint64_t i = run.first; i < run.end; ++i) {
      const auto chunk = lists.taken[i];
      for (std::uint64_t e = chunk.edge; e < chunk.end; ++e) {
        const Edge<D> edge = edges[e];
        if (!lists.vertices[edge.to].falls_to(chunk.word + edge.weight)) continue;
        (edge.to < lists.first_remote ? falls : tells).add(edge.to);
      }
    }
  }
};

/// At the owner of a vertex, by active message: the least distance stays.
template <class D>
struct Lower {
  static constexpr std::uint64_t kOwnershipBytes = 0;  // Lists::lower() is all atomics
  Lists<D> lists;
  ESKER_HD bool is_needless(const Vertex<D>& vertex, const D& candidate) const {
    return !(candidate < vertex.distance_now());
  }
  ESKER_HD void operator()(esker::HandlerContext& /*context*/, Vertex<D>& vertex, const D& candidate) const {
    lists.lower(vertex, candidate);
  }
};

/// A lane tells the owners of some remote vertices what it has found, once for all their edges.
template <class D>
struct Tell {
  using Message = styles::Call<Vertex<D>, D>;
  struct State {
    std::uint64_t next, end;
  };
  Lists<D> lists;
  esker::SymmetricArray<graph::Location> locations;
  esker::Handler<Vertex<D>, D> lower;
  std::uint64_t count, per_lane;

  ESKER_HD State start(std::uint64_t id) const {
    const std::uint64_t first = id * per_lane;
    return {first, count - first < per_lane ? count : first + per_lane};
  }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.next == state.end) return false;
    const std::uint32_t endpoint = lists.remote[state.next++];
    Vertex<D>& found = lists.vertices[endpoint];
    found.marks = 0;
    const graph::Location at = locations[endpoint - lists.first_remote];
    message = {&lists.vertices[at.index()], at.pe(), lower, found.distance};
    return true;
  }
};

/// The thesis's way: slots hold the last, and so the least, distance that came along their edge.
template <class D>
struct OfferByPut {
  using Message = styles::Put<D>;
  struct State {
    std::uint64_t edge, end;
    D distance;
  };
  typename Lists<D>::Taken taken;
  esker::SymmetricArray<Edge<D>> edges;
  esker::SymmetricArray<graph::Location> slot_of_edge;
  esker::SymmetricArray<D> slots;

  ESKER_HD State start(std::uint64_t id) const {
    const auto chunk = taken[id];
    return {chunk.edge, chunk.end, chunk.word};
  }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.edge == state.end) return false;
    const graph::Location slot = slot_of_edge[state.edge];
    message = {&slots[slot.index()], slot.pe(), state.distance + edges[state.edge].weight};
    ++state.edge;
    return true;
  }
};

/// A lane takes the least of its vertex's slots.
template <class D>
struct LowerFromSlots {
  Lists<D> lists;
  esker::SymmetricArray<std::uint64_t> first_slot;
  esker::SymmetricArray<D> slots;
  ESKER_HD void operator()(esker::Lane lane) const {
    const std::uint64_t v = lane.global_id();
    D least = kFar<D>;
    for (std::uint64_t s = first_slot[v]; s < first_slot[v + 1]; ++s)
      least = slots[s] < least ? slots[s] : least;
    lists.lower(lists.vertices[v], least);
  }
};

}  // namespace sssp
