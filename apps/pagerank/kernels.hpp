// What lanes do with ranks: push them to where edges lead, and add up what has been pushed.
//
// A vertex gives each of its edges the same: its share, rank / edges out of it. An array of shares has those
// of this PE's vertices, then their mirrors of others' (graph::Mirrors). With --push edges each edge has a
// slot of its own, as in the thesis (section 5.4).
#pragma once

#include <cmath>
#include <cstdint>

#include <esker/esker.hpp>
#include <esker/lane.hpp>

#include "../graph/edge_traversal.hpp"
#include "../graph/mirrors.hpp"
#include "../styles/message.hpp"

namespace pagerank {

inline constexpr double kDamping = 0.85;
inline constexpr std::uint32_t kGroupLanes = 256;  // of a GPU's groups

/// Shares that one put stores.
struct alignas(sizeof(float) * graph::Mirrors::kRun) Run {
  float shares[graph::Mirrors::kRun];
};

/// A lane pushes `per_lane` runs of shares to their mirrors.
struct PushRuns {
  using Message = styles::Put<Run>;
  struct State {
    std::uint64_t next, end;
  };
  esker::SymmetricArray<std::uint32_t> sent;
  esker::SymmetricArray<graph::Location> mirrors;
  esker::SymmetricArray<float> shares;
  esker::SymmetricArray<Run> others;  // shares of another PE
  std::uint64_t begin, end;           // runs
  std::uint64_t per_lane;

  ESKER_HD State start(std::uint64_t id) const {
    const std::uint64_t first = begin + id * per_lane;
    return {first, end - first < per_lane ? end : first + per_lane};
  }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.next == state.end) return false;
    const std::uint64_t run = state.next++;
    const graph::Location mirror = mirrors[run];
    message.target = &others[mirror.index() / graph::Mirrors::kRun];
    message.pe = mirror.pe();
    for (std::uint64_t i = 0; i < graph::Mirrors::kRun; ++i)
      message.value.shares[i] = shares[sent[run * graph::Mirrors::kRun + i]];
    return true;
  }
};

/// A lane pushes shares to slots of edges.
struct PushEdges {
  using Message = styles::Put<float>;
  struct State {
    graph::EdgeTraversal::State at;
    float share;
  };
  graph::EdgeTraversal traversal;
  esker::SymmetricArray<graph::Location> slot_of_edge;
  esker::SymmetricArray<float> shares;
  esker::SymmetricArray<float> slots;

  ESKER_HD State start(std::uint64_t id) const { return {traversal.begin(id), 0}; }
  ESKER_HD bool next(State& state, Message& message) const {
    if (!traversal.step(state.at)) {
      if (!traversal.next_row(state.at)) return false;
      state.share = shares[state.at.vertex];
    }
    const graph::Location slot = slot_of_edge[state.at.edge];
    message = {&slots[slot.index()], slot.pe(), state.share};
    return true;
  }
};

/// Where what comes along an edge stands.
enum class Reading {
  kSlots,         // in the edge's slot
  kShares,        // it is the share of the vertex that the edge leaves,
  kMovingShares,  // which others write while it is read
};

/// What comes along the edges into this PE's vertices.
template <Reading kReading>
struct Arrived {
  static constexpr bool kMoves = kReading == Reading::kMovingShares;
  esker::SymmetricArray<float> shares;  // or slots
  esker::SymmetricArray<std::uint32_t> source_of;

  ESKER_HD float operator[](std::uint64_t edge) const {
    if constexpr (kReading == Reading::kSlots) return shares[edge];
    const float& share = shares[source_of[edge]];
    if constexpr (!kMoves) return share;
    return reinterpret_cast<const esker::DeviceAtomic<float>&>(share).load_relaxed();
  }
  /// Few are added up as they are; of many, four sums at a time, so that no addition waits for the one
  /// before, and as doubles, so that a hub's is exact.
  ESKER_HD float sum(std::uint64_t begin, std::uint64_t end) const {
    if (begin + kFew >= end) {
      float few = 0;
      for (std::uint64_t e = begin; e < end; ++e) few += (*this)[e];
      return few;
    }
    double a = 0, b = 0, c = 0, d = 0;
    std::uint64_t e = begin;
    for (; e + 3 < end; e += 4) {
      a += static_cast<double>((*this)[e]);
      b += static_cast<double>((*this)[e + 1]);
      c += static_cast<double>((*this)[e + 2]);
      d += static_cast<double>((*this)[e + 3]);
    }
    for (; e < end; ++e) a += static_cast<double>((*this)[e]);
    return static_cast<float>((a + b) + (c + d));
  }
  /// Of every `step`-th edge from `begin` on, four at a time: by a lane of many, each of which has few.
  ESKER_HD double part_of_sum(std::uint64_t begin, std::uint64_t end, std::uint64_t step) const {
    float a = 0, b = 0, c = 0, d = 0;
    std::uint64_t e = begin;
    for (; e + 3 * step < end; e += 4 * step) {
      a += (*this)[e];
      b += (*this)[e + step];
      c += (*this)[e + 2 * step];
      d += (*this)[e + 3 * step];
    }
    for (; e < end; e += step) a += (*this)[e];
    return static_cast<double>((a + b) + (c + d));
  }

 private:
  static constexpr std::uint64_t kFew = 8;
};

/// On a GPU, waves take blocks of hubs' edges in turn and add each up, so that a hub finds most of its sum
/// made. A wave's lanes read neighbouring edges together.
template <Reading kReading>
struct SumBlocks {
  static constexpr std::uint32_t kMostGroupLanes = kGroupLanes, kGroupsHeld = 8;  // all waves that fit
  Arrived<kReading> arrived;
  esker::SymmetricArray<std::uint64_t> blocks;
  esker::SymmetricArray<double> block_sums;
  std::uint64_t block;       // edges
  std::uint64_t begin, end;  // of `blocks`
  ESKER_HD void operator()(esker::GroupLane& lane) const {
    const std::uint32_t width = lane.wave().size();
    const std::uint32_t me = lane.wave().index();
    for (std::uint64_t i = begin + lane.global_id() / width; i < end; i += lane.lanes() / width) {
      const std::uint64_t b = blocks[i];
      const double mine = arrived.part_of_sum(b * block + me, (b + 1) * block, width);
      const double sum = lane.wave().reduce(mine, esker::Sum{});
      if (me == 0) block_sums[b] = sum;
    }
  }
};

/// What was found at some vertices.
struct Sums {
  double dangling = 0;  // rank of vertices without edges
  double change = 0;    // of all ranks, in absolute value
};

/// Vertices get their new ranks and shares.
template <Reading kReading>
struct Gather {
  Arrived<kReading> arrived;
  esker::SymmetricArray<std::uint64_t> first_in;
  esker::SymmetricArray<float> per_edge;  // 1 / edges out of each vertex, 0 without
  esker::SymmetricArray<float> ranks;
  esker::SymmetricArray<float> shares;
  esker::SymmetricArray<double> block_sums;
  esker::SymmetricArray<Sums> sums;
  std::uint64_t begin, end;  // vertices
  std::uint64_t block;       // edges; 0: there are no block sums
  float base;                // of every rank

  /// Of what comes to vertex v, every `step`-th from number `from` on, by whole blocks where there are some.
  ESKER_HD double part_of(std::uint64_t v, std::uint64_t from, std::uint64_t step) const {
    const std::uint64_t first = first_in[v], last = first_in[v + 1];
    if (block == 0 || last - first < 2 * block) return arrived.part_of_sum(first + from, last, step);
    const std::uint64_t first_block = (first + block - 1) / block, last_block = last / block;
    double sum = 0;
    for (std::uint64_t b = first_block + from; b < last_block; b += step) sum += block_sums[b];
    return sum + arrived.part_of_sum(first + from, first_block * block, step) +
           arrived.part_of_sum(last_block * block + from, last, step);
  }
  /// In place the next vertex may wait for this share, which therefore is not made from the rank.
  ESKER_HD void give_rank(std::uint64_t v, float came, Sums& mine) const {
    const float each = per_edge[v];
    const float share = each * base + (each * kDampingOfShares) * came;
    if constexpr (Arrived<kReading>::kMoves) {
      reinterpret_cast<esker::DeviceAtomic<float>&>(shares[v]).store_relaxed(share);
    } else {
      shares[v] = share;
    }
    const float rank = base + kDampingOfShares * came;
    mine.change += static_cast<double>(std::fabs(rank - ranks[v]));
    if (each == 0) mine.dangling += static_cast<double>(rank);
    ranks[v] = rank;
  }

 private:
  static constexpr auto kDampingOfShares = static_cast<float>(kDamping);
};

/// On the CPU, each lane has a run of vertices.
template <Reading kReading>
struct GatherByLane {
  Gather<kReading> gather;
  std::uint64_t per_lane;
  ESKER_HD void operator()(esker::Lane lane) const {
    const Gather<kReading> own = gather;  // nothing that is stored can be thought to change it
    Sums mine;
    const std::uint64_t first = own.begin + lane.global_id() * per_lane;
    const std::uint64_t last = own.end - first < per_lane ? own.end : first + per_lane;
    for (std::uint64_t v = first, begin = own.first_in[first]; v < last; ++v) {
      const std::uint64_t end = own.first_in[v + 1];
      own.give_rank(v, own.arrived.sum(begin, end), mine);
      begin = end;
    }
    own.sums[lane.global_id()] = mine;
  }
};

/// On a GPU, waves take vertices in turn, and a wave adds up the parts of its sum.
template <Reading kReading>
struct GatherByWave {
  static constexpr std::uint32_t kMostGroupLanes = kGroupLanes, kGroupsHeld = 8;  // all waves that fit
  Gather<kReading> gather;
  ESKER_HD void operator()(esker::GroupLane& lane) const {
    Sums mine;
    const std::uint32_t width = lane.wave().size();
    const std::uint32_t me = lane.wave().index();
    for (std::uint64_t v = gather.begin + lane.global_id() / width; v < gather.end;
         v += lane.lanes() / width) {
      const double sum = lane.wave().reduce(gather.part_of(v, me, width), esker::Sum{});
      if (me == 0) gather.give_rank(v, static_cast<float>(sum), mine);
    }
    mine.dangling = lane.group().reduce(mine.dangling, esker::Sum{});
    mine.change = lane.group().reduce(mine.change, esker::Sum{});
    if (lane.lane() == 0) gather.sums[lane.group_id()] = mine;
  }
};

}  // namespace pagerank
