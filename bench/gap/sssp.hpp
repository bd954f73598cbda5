// Delta-stepping with bins of each thread's own and bin fusion, on distances that threads share.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "shared_graph.hpp"
#include "team.hpp"

namespace esker::bench {

inline constexpr Weight kFar = std::numeric_limits<Weight>::max() / 2;

/// Meyer and Sanders's algorithm without light and heavy edges, as in the GAP benchmark suite, with Zhang et
/// al.'s bin fusion: a thread goes on with what it has itself put into the current bin, while that is little.
class SharedShortestPaths {
 public:
  SharedShortestPaths(const SharedGraph& graph, std::uint32_t threads, Weight delta)
      : graph_{graph}, threads_{threads}, delta_{delta}, frontier_(graph.edges.size() + 1) {}

  void prepare() { distances_.assign(SharedGraph::at(graph_.vertices()), kFar); }

  /// Returns the number of rounds, between which threads have met.
  std::uint64_t run(Vertex source) {
    distances_[SharedGraph::at(source)] = 0;
    frontier_[0] = source;
    Round rounds[2];
    rounds[0].bin = 0;
    rounds[0].length = 1;
    Meeting meeting(threads_);
    std::uint64_t done = 0;
    team_.run([&](std::uint32_t me) {
      std::vector<Bin> bins;
      for (std::uint64_t i = 0;; ++i) {
        Round& now = rounds[i % 2];
        Round& next = rounds[(i + 1) % 2];
        const std::size_t bin = now.bin.load(std::memory_order_relaxed);
        if (bin == kNone) {
          if (me == 0) done = i;
          return;
        }
        take_frontier(now, bin, bins);
        fuse(bin, bins);
        for (std::size_t b = bin; b < bins.size(); ++b) {
          if (bins[b].empty()) continue;
          std::size_t seen = next.bin.load(std::memory_order_relaxed);
          while (b < seen && !next.bin.compare_exchange_weak(seen, b)) {
          }
          break;
        }
        meeting.meet();
        const std::size_t chosen = next.bin.load(std::memory_order_relaxed);
        if (chosen < bins.size()) give(bins[chosen], next);
        if (me == 0) now.clear();
        meeting.meet();
      }
    });
    return done;
  }

  /// The number of vertices whose distance is wrong: no edge may offer less, and but for the source's, some
  /// edge must offer what there is. With weights above 0 that makes them shortest.
  std::uint64_t count_wrong(Vertex source) const {
    std::vector<Weight> offered(distances_.size(), kFar);
    offered[SharedGraph::at(source)] = 0;
    for (Vertex u = 0; u < graph_.vertices(); ++u) {
      const Weight mine = distances_[SharedGraph::at(u)];
      if (mine == kFar) continue;
      for (const WeightedEdge& edge : edges_of(u))
        offered[SharedGraph::at(edge.to)] = std::min(offered[SharedGraph::at(edge.to)], mine + edge.weight);
    }
    std::uint64_t wrong = 0;
    for (std::size_t v = 0; v < offered.size(); ++v) wrong += offered[v] != distances_[v] ? 1 : 0;
    return wrong;
  }

 private:
  using Bin = std::vector<Vertex>;
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  static constexpr std::size_t kFused = 1000;  // vertices of a bin that go on without a meeting, at most
  static constexpr std::size_t kChunk = 64;

  /// Of the frontier: which bin it is, and how far threads have taken and filled it.
  struct Round {
    std::atomic<std::size_t> bin{kNone};
    std::size_t length = 0;
    alignas(64) std::atomic<std::size_t> taken{0};
    alignas(64) std::atomic<std::size_t> filled{0};
    void clear() {
      bin = kNone;
      length = 0;
      taken = filled = 0;
    }
  };

  std::span<const WeightedEdge> edges_of(Vertex v) const {
    return std::span(graph_.edges)
        .subspan(static_cast<std::size_t>(graph_.first[SharedGraph::at(v)]),
                 static_cast<std::size_t>(graph_.degree(v)));
  }

  void relax(Vertex u, std::vector<Bin>& bins) {
    const Weight mine = std::atomic_ref(distances_[SharedGraph::at(u)]).load(std::memory_order_relaxed);
    for (const WeightedEdge& edge : edges_of(u)) {
      const std::atomic_ref known(distances_[SharedGraph::at(edge.to)]);
      const Weight through = mine + edge.weight;
      Weight seen = known.load(std::memory_order_relaxed);
      while (through < seen) {
        if (!known.compare_exchange_strong(seen, through, std::memory_order_relaxed)) continue;
        const auto bin = static_cast<std::size_t>(through / delta_);
        if (bin >= bins.size()) bins.resize(bin + 1);
        bins[bin].push_back(edge.to);
        break;
      }
    }
  }

  void take_frontier(Round& now, std::size_t bin, std::vector<Bin>& bins) {
    const std::size_t length = std::max(now.length, now.filled.load(std::memory_order_relaxed));
    const std::int64_t least = static_cast<std::int64_t>(bin) * delta_;
    for (;;) {
      const std::size_t begin = now.taken.fetch_add(kChunk, std::memory_order_relaxed);
      if (begin >= length) return;
      for (std::size_t i = begin; i < std::min(begin + kChunk, length); ++i) {
        const Vertex u = frontier_[i];
        if (std::atomic_ref(distances_[SharedGraph::at(u)]).load(std::memory_order_relaxed) >= least)
          relax(u, bins);  // else it has had its turn in an earlier bin
      }
    }
  }

  void fuse(std::size_t bin, std::vector<Bin>& bins) {
    Bin mine;
    while (bin < bins.size() && !bins[bin].empty() && bins[bin].size() < kFused) {
      mine.clear();
      std::swap(mine, bins[bin]);
      for (const Vertex u : mine) relax(u, bins);
    }
  }

  void give(Bin& bin, Round& next) {
    const std::size_t at = next.filled.fetch_add(bin.size(), std::memory_order_relaxed);
    std::copy(bin.begin(), bin.end(), frontier_.begin() + static_cast<std::ptrdiff_t>(at));
    bin.clear();
  }

  const SharedGraph& graph_;
  const std::uint32_t threads_;
  Team team_{threads_};
  const Weight delta_;
  std::vector<Weight> distances_;
  std::vector<Vertex> frontier_;
};

}  // namespace esker::bench
