// PageRank as the GAP benchmark suite defines it, by threads that share all ranks.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <vector>

#include "shared_graph.hpp"
#include "team.hpp"

namespace esker::bench {

inline constexpr float kDamping = 0.85F;

/// Vertices pull from their neighbours what these have by now, new or old (Gauss-Seidel, without an order).
/// Vertices without edges give nothing. It ends when the ranks together have changed by less than
/// `tolerance` in an iteration.
class SharedPageRank {
 public:
  SharedPageRank(const SharedGraph& graph, std::uint32_t threads)
      : graph_{graph}, threads_{threads}, base_{(1 - kDamping) / static_cast<float>(graph.vertices())} {}

  void prepare() {
    const auto n = static_cast<std::size_t>(graph_.vertices());
    const float start = 1 / static_cast<float>(n);
    ranks_.assign(n, start);
    gives_.resize(n);
    for (Vertex v = 0; v < graph_.vertices(); ++v)
      gives_[SharedGraph::at(v)] = start / static_cast<float>(graph_.degree(v));
  }

  /// Returns the number of iterations.
  std::uint64_t run(double tolerance, std::uint64_t most) {
    struct alignas(64) Change {
      double of_mine = 0;
    };
    std::vector<Change> changes(threads_);
    std::vector<std::atomic<std::int64_t>> next(most);  // chunk of an iteration
    Meeting meeting(threads_);
    std::uint64_t done = 0;
    team_.run([&](std::uint32_t me) {
      for (std::uint64_t i = 0; i < most; ++i) {
        double change = 0;
        for (;;) {
          const std::int64_t begin = next[i].fetch_add(kChunk, std::memory_order_relaxed);
          if (begin >= graph_.vertices()) break;
          change += update(static_cast<Vertex>(begin));
        }
        changes[me].of_mine = change;
        meeting.meet();
        double all = 0;
        for (const Change& part : changes) all += part.of_mine;
        if (me == 0) done = i + 1;
        if (all < tolerance) break;
        meeting.meet();
      }
    });
    return done;
  }

  /// GAP's check: by how much one more iteration, from the ranks as they are, would change them all together.
  double residual() const {
    double sum = 0;
    for (Vertex u = 0; u < graph_.vertices(); ++u) {
      double came = 0;
      for (std::int64_t e = graph_.first[SharedGraph::at(u)]; e < graph_.first[SharedGraph::at(u) + 1]; ++e) {
        const Vertex v = graph_.to[static_cast<std::size_t>(e)];
        came += static_cast<double>(ranks_[SharedGraph::at(v)]) / static_cast<double>(graph_.degree(v));
      }
      sum += std::abs(static_cast<double>(base_) + static_cast<double>(kDamping) * came -
                      static_cast<double>(ranks_[SharedGraph::at(u)]));
    }
    return sum;
  }

 private:
  static constexpr Vertex kChunk = 1024;

  /// A chunk of vertices, and by how much their ranks have changed.
  double update(Vertex begin) {
    const Vertex end = std::min(begin + kChunk, graph_.vertices());
    const Vertex* const to = graph_.to.data();
    const float* const gives = gives_.data();
    double change = 0;
    for (Vertex u = begin; u < end; ++u) {
      float came = 0;
      const std::int64_t last = graph_.first[SharedGraph::at(u) + 1];
      for (std::int64_t e = graph_.first[SharedGraph::at(u)]; e < last; ++e) came += gives[to[e]];
      const float old = ranks_[SharedGraph::at(u)];
      const float now = base_ + kDamping * came;
      ranks_[SharedGraph::at(u)] = now;
      change += std::fabs(now - old);
      gives_[SharedGraph::at(u)] = now / static_cast<float>(graph_.degree(u));
    }
    return change;
  }

  const SharedGraph& graph_;
  const std::uint32_t threads_;
  Team team_{threads_};
  const float base_;
  std::vector<float> ranks_;
  std::vector<float> gives_;  // along each edge; others read it while it changes
};

}  // namespace esker::bench
