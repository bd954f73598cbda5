// Direction-optimising breadth-first search by threads that share the parents of all vertices.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shared_graph.hpp"
#include "team.hpp"

namespace esker::bench {

/// As in the GAP benchmark suite: steps go down from a queue, or up where the frontier has more than
/// 1 / kAlpha of the edges that are left, until it shrinks below 1 / kBeta of the vertices.
///
/// Encoding. A vertex's parent, or before it is reached minus its degree, or -1 if it has no edges.
class SharedSearch {
 public:
  SharedSearch(const SharedGraph& graph, std::uint32_t threads)
      : graph_{graph},
        threads_{threads},
        parents_(SharedGraph::at(graph.vertices())),
        queue_(parents_.size() + 1) {
    for (Bitmap& bitmap : bitmaps_) bitmap.resize(parents_.size() / 64 + 1);
  }

  /// Returns the number of steps.
  std::uint64_t run(Vertex source) {
    steps_.clear();
    Meeting meeting(threads_);
    team_.run([&](std::uint32_t me) {
      share(parents_.size(), me, [&](std::size_t begin, std::size_t end) {
        for (std::size_t v = begin; v < end; ++v) {
          const auto degree = static_cast<Vertex>(graph_.degree(static_cast<Vertex>(v)));
          parents_[v] = degree == 0 ? -1 : -degree;
        }
      });
      meeting.meet();
      if (me == 0) begin_at(source);
      meeting.meet();
      while (state_.begin < state_.end) {
        if (state_.scout > state_.unexplored / kAlpha) {
          go_up(me, meeting);
        } else {
          go_down(me, meeting);
        }
      }
    });
    return steps_.size();
  }

  /// Vertices whose parent is not what a breadth-first search finds, by GAP's rules.
  std::uint64_t count_wrong(Vertex source) const {
    std::vector<Vertex> depths(parents_.size(), -1), found{source};
    depths[SharedGraph::at(source)] = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (const Vertex v : neighbours(found[i])) {
        if (depths[SharedGraph::at(v)] >= 0) continue;
        depths[SharedGraph::at(v)] = depths[SharedGraph::at(found[i])] + 1;
        found.push_back(v);
      }
    }
    std::uint64_t wrong = 0;
    for (Vertex v = 0; v < graph_.vertices(); ++v) {
      const Vertex parent = parents_[SharedGraph::at(v)];
      if (v == source || parent < 0) {
        wrong += v == source ? (parent != source ? 1 : 0) : (depths[SharedGraph::at(v)] >= 0 ? 1 : 0);
        continue;
      }
      const auto around = neighbours(v);
      const bool is_neighbour = std::find(around.begin(), around.end(), parent) != around.end();
      wrong += is_neighbour && depths[SharedGraph::at(v)] == depths[SharedGraph::at(parent)] + 1 ? 0 : 1;
    }
    return wrong;
  }

 private:
  using Bitmap = std::vector<std::uint64_t>;
  static constexpr std::int64_t kAlpha = 15, kBeta = 18;
  static constexpr std::size_t kChunk = 1024;  // vertices, whole words of a bitmap
  static constexpr std::size_t kFew = 64;      // of a queue

  /// What threads agree on; thread 0 changes it between meetings.
  struct State {
    std::size_t begin = 0, end = 0;  // the frontier in the queue
    std::int64_t scout = 0, unexplored = 0, awake = 0;
  };

  std::span<const Vertex> neighbours(Vertex v) const {
    return std::span(graph_.to).subspan(static_cast<std::size_t>(graph_.first[SharedGraph::at(v)]),
                                        static_cast<std::size_t>(graph_.degree(v)));
  }
  /// Parts of [0, count) in turn, the same for a thread at each call.
  template <class Work>
  void share(std::size_t count, std::uint32_t me, const Work& work) const {
    for (std::size_t begin = me * kChunk; begin < count; begin += threads_ * kChunk)
      work(begin, std::min(begin + kChunk, count));
  }
  /// Parts of [0, count) as threads come for them.
  template <class Work>
  void take(std::size_t count, std::size_t chunk, const Work& work) {
    for (;;) {
      const std::size_t begin = taken_.fetch_add(chunk, std::memory_order_relaxed);
      if (begin >= count) return;
      work(begin, std::min(begin + chunk, count));
    }
  }

  void begin_at(Vertex source) {
    parents_[SharedGraph::at(source)] = source;
    queue_[0] = source;
    state_ = {0, 1, graph_.degree(source), graph_.first.back(), 0};
    filled_ = 1;
    taken_ = 0;
    found_ = 0;
  }

  void append(std::vector<Vertex>& mine) {
    const std::size_t at = filled_.fetch_add(mine.size(), std::memory_order_relaxed);
    std::copy(mine.begin(), mine.end(), queue_.begin() + static_cast<std::ptrdiff_t>(at));
    mine.clear();
  }

  void go_down(std::uint32_t me, Meeting& meeting) {
    std::vector<Vertex> mine;
    std::int64_t scout = 0;
    take(state_.end - state_.begin, kFew, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        const Vertex u = queue_[state_.begin + i];
        for (const Vertex v : neighbours(u)) {
          const std::atomic_ref parent(parents_[SharedGraph::at(v)]);
          Vertex seen = parent.load(std::memory_order_relaxed);
          if (seen >= 0 || !parent.compare_exchange_strong(seen, u, std::memory_order_relaxed)) continue;
          scout -= seen;
          mine.push_back(v);
        }
        if (mine.size() >= kChunk) append(mine);
      }
    });
    append(mine);
    found_.fetch_add(scout, std::memory_order_relaxed);
    meeting.meet();
    if (me == 0) {
      state_.unexplored -= state_.scout;
      finish_step(found_.load(std::memory_order_relaxed), state_.end);
      steps_.push_back('d');
    }
    meeting.meet();
  }

  void finish_step(std::int64_t scout, std::size_t begin) {
    state_.begin = begin;
    state_.end = filled_.load(std::memory_order_relaxed);
    state_.scout = scout;
    taken_ = 0;
    found_ = 0;
  }

  void go_up(std::uint32_t me, Meeting& meeting) {
    Bitmap *front = &bitmaps_[0], *next = &bitmaps_[1];
    share(parents_.size() + 64, me, [&](std::size_t begin, std::size_t end) {
      std::fill(front->begin() + static_cast<std::ptrdiff_t>(begin / 64),
                front->begin() + static_cast<std::ptrdiff_t>(std::min(end / 64, front->size())), 0);
    });
    meeting.meet();
    take(state_.end - state_.begin, kFew, [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = state_.begin + begin; i < state_.begin + end; ++i) {
        const auto v = static_cast<std::size_t>(queue_[i]);
        std::atomic_ref((*front)[v / 64]).fetch_or(std::uint64_t{1} << v % 64, std::memory_order_relaxed);
      }
    });
    meeting.meet();
    if (me == 0) {
      state_.awake = static_cast<std::int64_t>(state_.end - state_.begin);
      taken_ = 0;
      found_ = 0;
    }
    meeting.meet();
    for (bool goes_on = true; goes_on;) {
      const std::int64_t before = state_.awake;
      std::int64_t awake = 0;
      take(parents_.size(), kChunk, [&](std::size_t begin, std::size_t end) {
        for (std::size_t v = begin; v < end; v += 64)
          (*next)[v / 64] = look_up(*front, v, std::min(v + 64, end), awake);
      });
      found_.fetch_add(awake, std::memory_order_relaxed);
      meeting.meet();
      if (me == 0) {
        state_.awake = found_.load(std::memory_order_relaxed);
        taken_ = 0;
        found_ = 0;
        steps_.push_back('u');
      }
      meeting.meet();
      std::swap(front, next);
      goes_on = state_.awake >= before || state_.awake > graph_.vertices() / kBeta;
    }
    std::vector<Vertex> mine;
    share(parents_.size(), me, [&](std::size_t begin, std::size_t end) {
      for (std::size_t v = begin; v < end; ++v) {
        if (((*front)[v / 64] >> v % 64 & 1) != 0) mine.push_back(static_cast<Vertex>(v));
      }
    });
    append(mine);
    meeting.meet();
    if (me == 0) finish_step(1, state_.end);
    meeting.meet();
  }

  /// Bits of those of 64 vertices that have a neighbour in the frontier, which becomes their parent.
  std::uint64_t look_up(const Bitmap& front, std::size_t begin, std::size_t end, std::int64_t& awake) {
    std::uint64_t bits = 0;
    for (std::size_t v = begin; v < end; ++v) {
      if (parents_[v] >= 0) continue;
      for (const Vertex u : neighbours(static_cast<Vertex>(v))) {
        const std::size_t at = SharedGraph::at(u);
        if ((front[at / 64] >> at % 64 & 1) == 0) continue;
        parents_[v] = u;
        bits |= std::uint64_t{1} << v % 64;
        ++awake;
        break;
      }
    }
    return bits;
  }

  const SharedGraph& graph_;
  const std::uint32_t threads_;
  Team team_{threads_};
  std::vector<Vertex> parents_;
  std::vector<Vertex> queue_;
  Bitmap bitmaps_[2];
  State state_;
  std::vector<char> steps_;  // of the last run: down or up
  alignas(64) std::atomic<std::size_t> taken_{0};
  alignas(64) std::atomic<std::size_t> filled_{0};
  alignas(64) std::atomic<std::int64_t> found_{0};
};

}  // namespace esker::bench
