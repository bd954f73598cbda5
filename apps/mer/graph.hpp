// Phase 2: contigs. K-mers with one neighbour on each side are the nodes of a graph; paths through it are
// ranked by pointer jumping, so that a path of n nodes takes log2(n) supersteps, and each node then knows
// where its base stands in its path's text.
//
// Invariant. A side of a node is linked to at most one side, and that one to it: the two k-mers name each
// other. A side that would be linked to itself (a palindrome goes on as itself) is an end. So nodes form
// paths and cycles, and no node is in two of them. A cycle is cut at its least k-mer, on that one's left.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>
#include <esker/lane.hpp>

#include "../styles/message.hpp"
#include "table.hpp"

namespace mer {

/// A side of a node of any PE, in one word. 0 is none.
struct SideName {
  std::uint64_t word;

  static ESKER_HD SideName of(std::uint32_t pe, std::uint64_t node, Side side) {
    return {(std::uint64_t{pe} << 40 | node << 1 | side) + 1};
  }
  ESKER_HD bool exists() const { return word != 0; }
  ESKER_HD std::uint32_t pe() const { return static_cast<std::uint32_t>((word - 1) >> 40); }
  ESKER_HD std::uint64_t node() const { return index() >> 1; }
  ESKER_HD Side side() const { return index() & 1 ? kRight : kLeft; }
  /// In an array of two elements a node.
  ESKER_HD std::uint64_t index() const { return (word - 1) & ((std::uint64_t{1} << 40) - 1); }
};

/// Where one comes to from a side. While it goes on: the side, of a node so many steps away, by which one
/// comes in. At an end: the side of the path's last node that has no link.
struct Reach {
  static constexpr std::uint64_t kEnded = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kCut = std::uint64_t{1} << 62;  // the end was made, of a cycle

  SideName to;
  std::uint64_t steps;

  ESKER_HD bool has_ended() const { return (steps & kEnded) != 0; }
  ESKER_HD bool is_cut() const { return (steps & kCut) != 0; }
  ESKER_HD std::uint64_t distance() const { return steps & (kCut - 1); }
};
static_assert(sizeof(Reach) == 16);

template <class Word>
struct Node {
  Stored<Word> kmer;
  std::uint8_t beside[2];  // Side: a base's code
  bool in_cycle;
};

/// What phase 2 has on the heap. Two elements a node: index 2 node + side.
template <class Word>
struct Graph {
  esker::SymmetricArray<Node<Word>> nodes;
  esker::SymmetricArray<std::uint64_t> links;  // SideName; 0: an end
  esker::SymmetricArray<Reach> reach[2];       // of this superstep, at `now`, and of the next
  std::uint64_t count;                         // nodes of this PE
};

ESKER_HD inline esker::DeviceAtomic<std::uint64_t>& counter(std::uint64_t& word) {
  return reinterpret_cast<esker::DeviceAtomic<std::uint64_t>&>(word);
}

/// A lane a slot: gives each node a number.
template <class Word>
struct NumberNodes {
  Table<Word> table;
  Threshold threshold;
  esker::SymmetricArray<std::uint64_t> next;

  ESKER_HD void operator()(esker::Lane lane) const {
    Slot<Word>& slot = table.slot(lane.global_id());
    slot.value.node = kNoNode;
    if (!slot.exists() || !threshold.is_unique(slot.value)) return;
    slot.value.node = static_cast<std::uint32_t>(counter(next[0]).fetch_add_relaxed(1));
  }
};

/// A lane a slot: the nodes' k-mers.
template <class Word>
struct GatherNodes {
  Table<Word> table;
  Threshold threshold;
  esker::SymmetricArray<Node<Word>> nodes;

  ESKER_HD void operator()(esker::WorkItem item) const {
    const Slot<Word>& slot = table.slot(item.global_id());
    const Tally& tally = slot.value;
    if (!slot.exists() || tally.node == kNoNode) return;
    nodes[tally.node] = {Stored<Word>::of(table.key_of(item.pe(), slot)),
                         {threshold.extension(tally.votes[kLeft]), threshold.extension(tally.votes[kRight])},
                         false};
  }
};

/// A node names its neighbour: "who has this k-mer, and `base` on `side`, is linked there to `from`".
template <class Word>
struct Named {
  Seen<Word> kmer;  // the votes' bits: base, and nothing
  std::uint64_t side;
  std::uint64_t from;  // SideName

  ESKER_HD Stored<Word> key() const { return kmer.key(); }
};

template <class Word>
struct Link {
  Threshold threshold;
  esker::SymmetricArray<std::uint64_t> links;

  ESKER_HD void operator()(esker::HandlerContext& context, Tally& tally, const Named<Word>& named) const {
    if (tally.node == kNoNode) return;
    const Side side = named.side == kLeft ? kLeft : kRight;
    if (threshold.extension(tally.votes[side]) != named.kmer.vote(kLeft)) return;
    if (named.from == SideName::of(context.pe(), tally.node, side).word) return;
    esker::shmem_put(context, &links[2 * std::uint64_t{tally.node} + side], named.from, context.pe());
  }
};

/// A lane a node: names both neighbours. Who is named has named in turn, or it refuses: so every link is
/// set on both sides by the other's message.
template <class Word>
struct NameNeighbours {
  using Message = styles::Call<Slot<Word>, Named<Word>>;
  struct State {
    std::uint64_t node;
    std::uint32_t side;
  };
  Graph<Word> graph;
  unsigned k;
  std::uint32_t pe;
  Table<Word> table;
  esker::Handler<Slot<Word>, Named<Word>> link;

  ESKER_HD State start(std::uint64_t id) const { return {id, 0}; }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.side > 1) return false;
    const Side side = state.side++ == 0 ? kLeft : kRight;
    const Node<Word>& node = graph.nodes[state.node];
    const Word kmer = node.kmer.word();
    const Word base = node.beside[side];
    // The neighbour on this k-mer's strand, and what it has to have on the side that faces this k-mer.
    const Word there = side == kRight ? ((kmer << 2) | base) & inputs::kmer_mask<Word>(k)
                                      : (kmer >> 2) | (base << (2 * (k - 1)));
    const auto expected = static_cast<std::uint8_t>(inputs::base_at(kmer, k, side == kRight ? 0 : k - 1));
    const Word name = inputs::canonical(there, k);
    const bool is_reversed = name != there;
    const auto at = table.place(name);
    message = {
        at.home, at.pe, link,
        Named<Word>{
            Seen<Word>::of(at.stored, is_reversed ? static_cast<std::uint8_t>(3 - expected) : expected, 0),
            std::uint64_t{is_reversed ? side : opposite(side)}, SideName::of(pe, state.node, side).word}};
    return true;
  }
};

/// A lane a node: begins to rank, all nodes or those in cycles.
template <class Word>
struct BeginRanks {
  Graph<Word> graph;
  std::uint32_t now;
  std::uint32_t pe;
  bool cycles_only;

  ESKER_HD void operator()(esker::Lane lane) const {
    const std::uint64_t node = lane.global_id();
    const bool in_cycle = graph.nodes[node].in_cycle;
    if (cycles_only && !in_cycle) return;
    for (const Side side : {kLeft, kRight}) {
      const SideName link{graph.links[2 * node + side]};
      const std::uint64_t end = Reach::kEnded | (in_cycle ? Reach::kCut : 0);
      graph.reach[now][2 * node + side] =
          link.exists() ? Reach{link, 1} : Reach{SideName::of(pe, node, side), end};
    }
  }
};

/// One doubling: a node tells whom it reaches on either side how far the other side reaches. So everyone
/// whose reach has not ended is told once how far it reaches in twice the steps; one that has ended keeps it.
template <class Word>
struct Double {
  using Message = styles::Put<Reach>;
  struct State {
    std::uint64_t node;
    std::uint32_t side;
  };
  Graph<Word> graph;
  std::uint32_t now;
  esker::SymmetricArray<std::uint64_t> going_on;  // sides that have not ended, counted

  ESKER_HD State start(std::uint64_t id) const {
    std::uint64_t going = 0;
    for (std::uint32_t side = 0; side < 2; ++side) {
      const Reach& mine = graph.reach[now][2 * id + side];
      if (mine.has_ended()) {
        graph.reach[1 - now][2 * id + side] = mine;
      } else {
        ++going;
      }
    }
    if (going > 0) (void)counter(going_on[0]).fetch_add_relaxed(going);
    return {id, 0};
  }
  ESKER_HD bool next(State& state, Message& message) const {
    while (state.side < 2) {
      const std::uint32_t side = state.side++;
      const Reach& mine = graph.reach[now][2 * state.node + side];
      if (mine.has_ended()) continue;
      const Reach& other = graph.reach[now][2 * state.node + (1 - side)];
      message = {&graph.reach[1 - now][mine.to.index()], mine.to.pe(),
                 Reach{other.to, other.steps + mine.steps}};
      return true;
    }
    return false;
  }
};

/// The least k-mer that a node of a cycle has heard of.
template <class Word>
struct Least {
  Stored<Word> kmer;
};

/// A lane a node: finds the cycles, once nothing changes any more.
template <class Word>
struct FindCycles {
  Graph<Word> graph;
  std::uint32_t now;
  esker::SymmetricArray<Least<Word>> least;

  ESKER_HD void operator()(esker::Lane lane) const {
    Node<Word>& node = graph.nodes[lane.global_id()];
    node.in_cycle = !graph.reach[now][2 * lane.global_id()].has_ended();
    least[lane.global_id()] = {node.kmer};
  }
};

template <class Word>
struct TakeLeast {
  ESKER_HD void operator()(esker::HandlerContext&, Least<Word>& mine, const Least<Word>& other) const {
    if (other.kmer.word() < mine.kmer.word()) mine = other;
  }
};

/// A lane a node: those in cycles tell whom they reach, on both sides, of the least k-mer that they know.
/// `told` is a copy of it: handlers write the other one meanwhile.
template <class Word>
struct TellLeast {
  using Message = styles::Call<Least<Word>, Least<Word>>;
  struct State {
    std::uint64_t node;
    std::uint32_t side;
  };
  Graph<Word> graph;
  std::uint32_t now;
  esker::SymmetricArray<Least<Word>> least;
  esker::SymmetricArray<Least<Word>> told;
  esker::Handler<Least<Word>, Least<Word>> take;

  ESKER_HD State start(std::uint64_t id) const { return {id, graph.nodes[id].in_cycle ? 0u : 2u}; }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.side > 1) return false;
    const SideName to = graph.reach[now][2 * state.node + state.side++].to;
    message = {&least[to.node()], to.pe(), take, told[state.node]};
    return true;
  }
};

template <class Word>
struct CopyLeast {
  esker::SymmetricArray<Least<Word>> from;
  esker::SymmetricArray<Least<Word>> to;
  ESKER_HD void operator()(esker::Lane lane) const { to[lane.global_id()] = from[lane.global_id()]; }
};

/// A lane a node: a cycle's least node gives up its left link, and takes it from the node there.
template <class Word>
struct CutCycles {
  using Message = styles::Put<std::uint64_t>;
  struct State {
    std::uint64_t node;
    bool done;
  };
  Graph<Word> graph;
  std::uint32_t pe;
  esker::SymmetricArray<Least<Word>> least;

  ESKER_HD State start(std::uint64_t id) const {
    const Node<Word>& node = graph.nodes[id];
    return {id, !node.in_cycle || least[id].kmer.word() != node.kmer.word()};
  }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.done) return false;
    state.done = true;
    const SideName other{graph.links[2 * state.node + kLeft]};
    graph.links[2 * state.node + kLeft] = 0;
    message = {&graph.links[other.index()], other.pe(), 0};
    return true;
  }
};

/// Where a node stands in its path, as seen from the end with the lesser name: that end's PE has the text.
struct Position {
  SideName end;
  Side from;            // the node's side that faces that end
  std::uint64_t steps;  // from there
  std::uint64_t nodes;  // of the path
  bool is_cut;

  static ESKER_HD Position of(const Reach& left, const Reach& right) {
    const bool by_left = left.to.word < right.to.word;
    const Reach& nearer = by_left ? left : right;
    return {nearer.to, by_left ? kLeft : kRight, nearer.distance(), left.distance() + right.distance() + 1,
            left.is_cut()};
  }
};

/// "The base at `position` behind the first k - 1 of your path's text."
struct Placed {
  std::uint64_t position_and_base;
};

/// The target says where its path's text begins.
struct PlaceBase {
  esker::SymmetricArray<std::uint8_t> text;
  unsigned k;

  ESKER_HD void operator()(esker::HandlerContext& context, std::uint64_t& begin, const Placed& placed) const {
    esker::shmem_put(context, &text[begin + k - 1 + (placed.position_and_base >> 2)],
                     static_cast<std::uint8_t>(placed.position_and_base & 3), context.pe());
  }
};

/// A lane a node: sends its last base, read from its path's end on. The end itself writes the bases before.
template <class Word>
struct SendBases {
  using Message = styles::Call<std::uint64_t, Placed>;
  struct State {
    std::uint64_t node;
    bool done;
  };
  Graph<Word> graph;
  std::uint32_t now;
  unsigned k;
  esker::SymmetricArray<std::uint64_t> begins;  // a node: of its path's text, where the node is the end
  esker::SymmetricArray<std::uint8_t> text;
  esker::Handler<std::uint64_t, Placed> place;

  ESKER_HD Position position(std::uint64_t node) const {
    return Position::of(graph.reach[now][2 * node], graph.reach[now][2 * node + 1]);
  }
  ESKER_HD State start(std::uint64_t id) const { return {id, false}; }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.done) return false;
    state.done = true;
    const Position at = position(state.node);
    Word kmer = graph.nodes[state.node].kmer.word();
    if (at.from == kRight) kmer = inputs::reverse_complement(kmer, k);
    if (at.steps == 0) {
      for (unsigned i = 0; i + 1 < k; ++i) text[begins[state.node] + i] = inputs::base_at(kmer, k, i);
    }
    message = {&begins[at.end.node()], at.end.pe(), place,
               Placed{at.steps << 2 | (static_cast<std::uint64_t>(kmer) & 3)}};
    return true;
  }
};

}  // namespace mer
