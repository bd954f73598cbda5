// What lanes do in a breadth-first search: go down edges from the frontier, or look up from vertices that
// have not been reached for one in the frontier.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>
#include <esker/lane.hpp>

#include "../graph/edge_chunks.hpp"
#include "../graph/list_runs.hpp"
#include "../graph/positions.hpp"
#include "../styles/message.hpp"

namespace bfs {

inline constexpr std::uint32_t kNone = graph::Positions::kNone;

/// How a vertex was reached: from which one's position, and the edges from the source; kNone before.
/// A handler's target and arguments.
struct Visit {
  std::uint32_t parent, depth;
};

/// A bit for each position.
struct Bits {
  esker::SymmetricArray<std::uint64_t> words;

  ESKER_HD static std::uint64_t bit_of(std::uint32_t position) { return std::uint64_t{1} << position % 64; }
  /// While nobody adds.
  ESKER_HD bool has(std::uint32_t position) const { return (words[position / 64] & bit_of(position)) != 0; }
  /// True if it was not there. Any lanes and handlers at once.
  ESKER_HD bool add(std::uint32_t position) const {
    auto& word = reinterpret_cast<esker::DeviceAtomic<std::uint64_t>&>(words[position / 64]);
    std::uint64_t found = word.load_relaxed();
    while ((found & bit_of(position)) == 0) {
      if (word.compare_exchange_relaxed(found, found | bit_of(position))) return true;
    }
    return false;
  }
  ESKER_HD bool has_now(std::uint32_t position) const {
    const auto& word = reinterpret_cast<const esker::DeviceAtomic<std::uint64_t>&>(words[position / 64]);
    return (word.load_relaxed() & bit_of(position)) != 0;
  }
};

/// A vertex of another PE that this one has found.
struct Remote {
  std::uint32_t position, parent;
};

/// The search as lanes and handlers see it.
///
/// Encoding. The queue has this PE's vertices in the order in which they were reached, but for those of
/// bottom-up steps, of which it has the last step's alone; each is there once at most. `seen` has the
/// positions that need not be reached again: this PE's that have been, those where no edge leads, and of
/// other PEs' those that this PE has found or been told of.
struct Lists {
  enum Length : std::uint64_t { kQueue, kRemote, kChunks, kEdges, kAwake, kLengths };

  graph::Positions positions;
  esker::SymmetricArray<Visit> visits;  // of this PE's vertices
  Bits seen;
  esker::SymmetricArray<std::uint32_t> queue;
  esker::SymmetricArray<Remote> remote;
  graph::EdgeChunks<std::uint32_t> chunks;  // of the frontier: what leaves it, with the vertices' positions
  esker::SymmetricArray<std::uint64_t> lengths;

  ESKER_HD std::uint32_t position_of(std::uint64_t vertex) const {
    return static_cast<std::uint32_t>(positions.mine + vertex);
  }
};

/// A lane makes kRun words of `seen`, and their vertices, what they are before a search.
template <std::uint64_t kRun>
struct Start {
  Lists lists;
  esker::SymmetricArray<std::uint64_t> unreachable;  // of this PE's vertices
  std::uint32_t source;
  ESKER_HD void operator()(esker::Lane lane) const {
    const graph::RunOf<kRun> run(lane.global_id(), lists.seen.words.size());
    for (std::uint64_t w = run.first; w < run.end; ++w) {
      const std::uint64_t bit = w == source / 64 ? Bits::bit_of(source) : 0;
      const std::uint64_t own = w - lists.positions.mine / 64;
      lists.seen.words[w] = bit | (own < unreachable.size() ? unreachable[own] : 0);
      if (own >= unreachable.size()) continue;
      for (std::uint64_t v = own * 64; v < own * 64 + 64; ++v) lists.visits[v] = {kNone, kNone};
      if (bit == 0) continue;
      const std::uint64_t vertex = source - lists.positions.mine;
      lists.visits[vertex] = {source, 0};
      lists.queue[0] = static_cast<std::uint32_t>(vertex);
    }
  }
};

/// A lane lists the edges of kRun vertices of the frontier, which begins at `begin` in the queue.
template <std::uint64_t kRun>
struct Take {
  Lists lists;
  std::uint64_t begin, count;
  ESKER_HD void operator()(esker::Lane lane) const {
    const graph::RunOf<kRun> run(lane.global_id(), count);
    std::uint64_t parts = 0, edges = 0;
    for (std::uint64_t i = run.first; i < run.end; ++i) {
      const std::uint32_t v = lists.queue[begin + i];
      parts += lists.chunks.count(v);
      edges += lists.chunks.first[v + std::uint64_t{1}] - lists.chunks.first[v];
    }
    if (parts == 0) return;
    graph::reserve(lists.lengths[Lists::kEdges], edges);
    std::uint64_t at = graph::reserve(lists.lengths[Lists::kChunks], parts);
    for (std::uint64_t i = run.first; i < run.end; ++i) {
      const std::uint32_t v = lists.queue[begin + i];
      at = lists.chunks.write(at, v, lists.position_of(v));
    }
  }
};

/// Top-down: a lane goes along the edges of kRun chunks. This PE's vertices are reached; others' are noted.
template <std::uint64_t kRun>
struct Expand {
  Lists lists;
  esker::SymmetricArray<std::uint32_t> targets;  // of edges
  std::uint64_t count;
  std::uint32_t depth;
  ESKER_HD void operator()(esker::Lane lane) const {
    const graph::RunOf<kRun> run(lane.global_id(), count);
    graph::Appender<std::uint32_t, kRun> reached(lists.lengths[Lists::kQueue], lists.queue);
    graph::Appender<Remote, kRun> tells(lists.lengths[Lists::kRemote], lists.remote);
    for (std::uint64_t i = run.first; i < run.end; ++i) {
      const auto chunk = lists.chunks[i];
      for (std::uint64_t e = chunk.edge; e < chunk.end; ++e) {
        const std::uint32_t to = targets[e];
        if (!lists.seen.add(to)) continue;
        if (!lists.positions.is_mine(to)) {
          tells.add({to, chunk.word});
          continue;
        }
        const std::uint64_t vertex = to - lists.positions.mine;
        lists.visits[vertex] = {chunk.word, depth};
        reached.add(static_cast<std::uint32_t>(vertex));
      }
    }
  }
};

/// At the owner of a vertex, by active message: the first visit counts.
struct Reach {
  static constexpr std::uint64_t kOwnershipBytes = 0;  // who adds the bit, no other, writes the visit
  Lists lists;
  ESKER_HD bool is_needless(const Visit& mine, const Visit& /*visit*/) const {
    return lists.seen.has_now(lists.position_of(vertex_of(mine)));
  }
  ESKER_HD void operator()(esker::HandlerContext& /*context*/, Visit& mine, const Visit& visit) const {
    const std::uint64_t vertex = vertex_of(mine);
    if (!lists.seen.add(lists.position_of(vertex))) return;
    mine = visit;
    lists.queue[graph::reserve(lists.lengths[Lists::kQueue], 1)] = static_cast<std::uint32_t>(vertex);
  }

 private:
  ESKER_HD std::uint64_t vertex_of(const Visit& mine) const {
    return static_cast<std::uint64_t>(&mine - lists.visits.data());
  }
};

/// A lane tells the owners of some vertices that this PE has reached them.
struct Tell {
  using Message = styles::Call<Visit, Visit>;
  struct State {
    std::uint64_t next, end;
  };
  Lists lists;
  esker::Handler<Visit, Visit> reach;
  std::uint64_t count, per_lane;
  std::uint32_t depth;

  ESKER_HD State start(std::uint64_t id) const {
    const std::uint64_t first = id * per_lane;
    return {first, count - first < per_lane ? count : first + per_lane};
  }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.next == state.end) return false;
    const Remote found = lists.remote[state.next++];
    const graph::Location at = lists.positions.place(found.position);
    message = {&lists.visits[at.index()], at.pe(), reach, {found.parent, depth}};
    return true;
  }
};

/// A lane marks kRun vertices of the frontier.
template <std::uint64_t kRun>
struct Mark {
  Lists lists;
  Bits next;  // of this PE's vertices
  std::uint64_t begin, count;
  ESKER_HD void operator()(esker::Lane lane) const {
    const graph::RunOf<kRun> run(lane.global_id(), count);
    for (std::uint64_t i = run.first; i < run.end; ++i) (void)next.add(lists.queue[begin + i]);
  }
};

/// A lane takes note of kRun words of the frontier, and empties what it was gathered from.
template <std::uint64_t kRun>
struct Note {
  Bits seen, frontier;
  esker::SymmetricArray<std::uint64_t> next;
  ESKER_HD void operator()(esker::Lane lane) const {
    const graph::RunOf<kRun> run(lane.global_id(), frontier.words.size());
    for (std::uint64_t w = run.first; w < run.end; ++w) {
      seen.words[w] |= frontier.words[w];
      if (w < next.size()) next[w] = 0;
    }
  }
};

/// Bottom-up: a lane looks at kRun vertices that have not been reached, each until it finds a neighbour in
/// the frontier. No messages are under way.
template <std::uint64_t kRun>
struct LookUp {
  Lists lists;
  Bits frontier, next;  // of all PEs' vertices; of this PE's
  esker::SymmetricArray<std::uint64_t> first_in;
  esker::SymmetricArray<std::uint32_t> from;  // where the edges into this PE's vertices come from
  std::uint64_t vertices;
  std::uint32_t depth;
  ESKER_HD void operator()(esker::Lane lane) const {
    if constexpr (kRun == 1) {
      const std::uint64_t v = lane.global_id();
      if (lists.seen.has_now(lists.position_of(v)) || !finds_parent(v)) return;
      (void)lists.seen.add(lists.position_of(v));
      (void)next.add(static_cast<std::uint32_t>(v));
      graph::reserve(lists.lengths[Lists::kAwake], 1);
    } else {
      look_at_words(lane.global_id() * kRun / 64);
    }
  }

 private:
  ESKER_HD bool finds_parent(std::uint64_t v) const {
    const std::uint64_t end = first_in[v + 1];
    for (std::uint64_t e = first_in[v]; e < end; ++e) {
      if (!frontier.has(from[e])) continue;
      lists.visits[v] = {from[e], depth};
      return true;
    }
    return false;
  }
  /// Nobody else has these words.
  ESKER_HD void look_at_words(std::uint64_t first) const {
    static_assert(kRun == 1 || kRun % 64 == 0);
    const std::uint64_t words = (vertices + 63) / 64;
    const std::uint64_t end = words - first < kRun / 64 ? words : first + kRun / 64;
    std::uint64_t awake = 0;
    for (std::uint64_t w = first; w < end; ++w) {
      std::uint64_t& seen = lists.seen.words[lists.positions.mine / 64 + w];
      const std::uint64_t before = seen;  // vertices that do not exist among them
      if (before == ~std::uint64_t{0}) continue;
      std::uint64_t found = 0;
      for (std::uint64_t bit = 0; bit < 64; ++bit) {
        if ((before >> bit & 1) != 0 || !finds_parent(w * 64 + bit)) continue;
        found |= std::uint64_t{1} << bit;
        ++awake;
      }
      seen = before | found;
      next.words[w] = found;
    }
    if (awake > 0) graph::reserve(lists.lengths[Lists::kAwake], awake);
  }
};

/// A lane puts this PE's vertices of kRun words of the frontier into the queue.
template <std::uint64_t kRun>
struct Enqueue {
  Lists lists;
  Bits frontier;
  std::uint64_t words;
  ESKER_HD void operator()(esker::Lane lane) const {
    const graph::RunOf<kRun> run(lane.global_id(), words);
    graph::Appender<std::uint32_t, kRun> reached(lists.lengths[Lists::kQueue], lists.queue);
    for (std::uint64_t w = run.first; w < run.end; ++w) {
      const std::uint64_t word = frontier.words[lists.positions.mine / 64 + w];
      for (std::uint64_t bit = 0; word >> bit != 0; ++bit) {
        if ((word >> bit & 1) != 0) reached.add(static_cast<std::uint32_t>(w * 64 + bit));
        if (bit == 63) break;
      }
    }
  }
};

}  // namespace bfs
