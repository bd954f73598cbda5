// The vertices whose distance has fallen, and those of them whose turn it is.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <esker/atomic.hpp>
#include <esker/esker.hpp>

#include "../graph/distributed_graph.hpp"
#include "../graph/edge_chunks.hpp"

namespace sssp {

inline constexpr double kFar = std::numeric_limits<double>::infinity();

/// A vertex of this PE, a handler's target.
struct Vertex {
  static constexpr std::uint64_t kFallen = 1;  // in the list of those whose distance has fallen
  static constexpr std::uint64_t kHeld = 2;    // in the list of those that wait for a higher threshold
  double distance;
  std::uint64_t lists;

  /// While others may lower it.
  ESKER_HD double distance_now() const {
    return reinterpret_cast<const esker::DeviceAtomic<double>&>(distance).load_relaxed();
  }
  /// Whether it was above `candidate`, which it becomes then.
  ESKER_HD bool lower_to(double candidate) {
    double seen = distance_now();
    while (candidate < seen) {
      if (reinterpret_cast<esker::DeviceAtomic<double>&>(distance).compare_exchange_relaxed(seen, candidate))
        return true;
    }
    return false;
  }
  /// Whether it was in no list of those that have fallen, and is in one from now on.
  ESKER_HD bool fall() {
    auto& word = reinterpret_cast<esker::DeviceAtomic<std::uint64_t>&>(lists);
    std::uint64_t seen = word.load_relaxed();
    while ((seen & kFallen) == 0) {
      if (word.compare_exchange_relaxed(seen, seen | kFallen)) return true;
    }
    return false;
  }
};

/// Edges of vertices to relax, with the distances these had when they were taken: later ones belong to the
/// next round.
using Taken = graph::EdgeChunks<double>;

/// The lists as lanes and handlers see them. A list's length is an atomic word, so that handlers on several
/// ownership blocks append at once; each vertex is in a list once.
struct Lists {
  enum Name : std::uint64_t { kFallen, kTaken, kHeld, kHeldNext, kLists };
  esker::SymmetricArray<Vertex> vertices;
  esker::SymmetricArray<std::uint64_t> fallen;
  Taken taken;
  esker::SymmetricArray<std::uint64_t> lengths;  // kLists of them

  ESKER_HD std::uint64_t next(Name list) const {
    return reinterpret_cast<esker::DeviceAtomic<std::uint64_t>&>(lengths[list]).fetch_add_relaxed(1);
  }
  ESKER_HD void take(std::uint64_t vertex, double distance) const {
    taken.add(lengths[kTaken], vertex, distance);
  }
  /// The vertex's distance becomes `candidate` if that is less. Any lanes and handlers at once.
  ESKER_HD void lower(Vertex& vertex, double candidate) const {
    if (vertex.lower_to(candidate) && vertex.fall())
      fallen[next(kFallen)] = static_cast<std::uint64_t>(&vertex - vertices.data());
  }
};

/// Fallen vertices, kRun a lane: below the threshold they are taken, others held.
template <std::uint64_t kRun>
struct TakeFallen {
  Lists lists;
  std::uint64_t count;
  esker::SymmetricArray<std::uint64_t> held;
  double threshold;
  ESKER_HD void operator()(esker::Lane lane) const {
    const std::uint64_t first = lane.global_id() * kRun;
    const std::uint64_t end = count - first < kRun ? count : first + kRun;
    std::uint64_t took = first, parts = 0;  // the list from `first` to `took`: who is taken
    for (std::uint64_t i = first; i < end; ++i) {
      const std::uint64_t v = lists.fallen[i];
      Vertex& vertex = lists.vertices[v];
      vertex.lists &= ~Vertex::kFallen;
      if (vertex.distance < threshold) {
        if (took != i) lists.fallen[took] = v;
        ++took;
        parts += lists.taken.count(v);
      } else if ((vertex.lists & Vertex::kHeld) == 0) {
        vertex.lists |= Vertex::kHeld;
        held[lists.next(Lists::kHeld)] = v;
      }
    }
    if (parts == 0) return;
    std::uint64_t at = Taken::reserve(lists.lengths[Lists::kTaken], parts);
    for (std::uint64_t i = first; i < took; ++i) {
      const std::uint64_t v = lists.fallen[i];
      at = lists.taken.write(at, v, lists.vertices[v].distance);
    }
  }
};

/// Held vertices, when the threshold has risen from `last`. One below that fell since and has had its turn.
struct TakeHeld {
  Lists lists;
  esker::SymmetricArray<std::uint64_t> held, held_next;
  double last, threshold;
  ESKER_HD void operator()(esker::Lane lane) const {
    const std::uint64_t v = held[lane.global_id()];
    Vertex& vertex = lists.vertices[v];
    if (vertex.distance >= threshold) {
      held_next[lists.next(Lists::kHeldNext)] = v;
      return;
    }
    vertex.lists &= ~Vertex::kHeld;
    if (vertex.distance >= last) lists.take(v, vertex.distance);
  }
};

/// The least distance of a held vertex that is not below the threshold.
struct LeastHeld {
  Lists lists;
  esker::SymmetricArray<std::uint64_t> held;
  esker::SymmetricArray<double> least;
  double threshold;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const double distance = lists.vertices[held[item.global_id()]].distance;
    if (distance >= threshold) esker::shmem_min(item, least.data(), distance, item.pe());
  }
};

/// Says which vertices are relaxed in a round.
///
/// State.    A bucket: distances below the threshold. It rises by `delta` when no vertex below it is left on
///           any PE, past distances that no vertex has. Without a delta it is infinite.
/// Contract. start(), then take() before each round until it returns false; all are collective. In between,
///           whoever finds a shorter way to a vertex calls lists().lower().
class Frontier {
 public:
  Frontier(esker::Runtime& rt, const graph::DistributedGraph& graph, double delta)
      : rt_{rt},
        delta_{delta},
        lists_{rt.heap().allocate<Vertex>(graph.most_vertices),
               rt.heap().allocate<std::uint64_t>(graph.most_vertices),
               Taken::allocate(rt, graph, Taken::kMostOnDevice),
               rt.heap().allocate<std::uint64_t>(Lists::kLists)},
        held_{rt.heap().allocate<std::uint64_t>(graph.most_vertices)},
        held_next_{rt.heap().allocate<std::uint64_t>(graph.most_vertices)},
        least_{rt.heap().allocate<double>(1)} {}

  const Lists& lists() const { return lists_; }
  std::uint64_t taken() const { return taken_; }

  /// All vertices are far; `here`: this PE has the source, its vertex `source`.
  void start(bool here, std::uint64_t source) {
    std::vector<Vertex> vertices(lists_.vertices.size(), Vertex{kFar, 0});
    std::array<std::uint64_t, Lists::kLists> lengths{};
    if (here) {
      vertices[source] = {0, Vertex::kFallen};
      const std::array<std::uint64_t, 1> first{source};
      rt_.heap().write(lists_.fallen, 0, std::span<const std::uint64_t>(first));
      lengths[Lists::kFallen] = 1;
    }
    rt_.heap().write(lists_.vertices, 0, std::span<const Vertex>(vertices));
    rt_.heap().write(lists_.lengths, 0, std::span<const std::uint64_t>(lengths));
    threshold_ = delta_ > 0 ? delta_ : kFar;
  }

  /// Takes this PE's vertices of the next round. False: there is none on any PE. On return no PE is still
  /// taking, so messages may reach the vertices.
  bool take() {
    auto lengths = read_lengths();
    const std::uint64_t fallen = lengths[Lists::kFallen];
    lengths[Lists::kFallen] = lengths[Lists::kTaken] = 0;
    write_lengths(lengths);
    take_fallen(fallen);
    lengths = read_lengths();
    while (!any(lengths[Lists::kTaken])) {
      const double least = least_held(lengths[Lists::kHeld]);
      if (!(least < kFar)) return false;
      const double last = std::exchange(threshold_, bucket_end(least));
      rt_.launch(lengths[Lists::kHeld], TakeHeld{lists_, held_, held_next_, last, threshold_},
                 "sssp-take-held");
      lengths = read_lengths();
      std::swap(held_, held_next_);
      lengths[Lists::kHeld] = std::exchange(lengths[Lists::kHeldNext], 0);
      write_lengths(lengths);
    }
    taken_ = lengths[Lists::kTaken];
    return true;
  }

 private:
  using Lengths = std::array<std::uint64_t, Lists::kLists>;

  Lengths read_lengths() const {
    Lengths lengths;
    rt_.heap().read(lists_.lengths, 0, std::span<std::uint64_t>(lengths));
    return lengths;
  }
  void write_lengths(const Lengths& lengths) {
    rt_.heap().write(lists_.lengths, 0, std::span<const std::uint64_t>(lengths));
  }

  void take_fallen(std::uint64_t count) {
    graph::launch_runs(rt_, count, "sssp-take", [&]<std::uint64_t kRun>() {
      return TakeFallen<kRun>{lists_, count, held_, threshold_};
    });
  }

  bool any(std::uint64_t taken) {
    std::array<std::uint64_t, 1> all{taken};
    rt_.all_reduce(std::span<std::uint64_t>(all), esker::Reduction::kSum);
    return all[0] > 0;
  }

  double least_held(std::uint64_t held) {
    std::array<double, 1> least{kFar};
    if (delta_ > 0) {
      rt_.heap().write(least_, 0, std::span<const double>(least));
      rt_.launch(held, LeastHeld{lists_, held_, least_, threshold_}, "sssp-least");
      rt_.quiet();
      rt_.heap().read(least_, 0, std::span<double>(least));
    }
    rt_.all_reduce(std::span<double>(least), esker::Reduction::kMin);
    return least[0];
  }

  /// A multiple of delta above `distance`; where doubles are too coarse for that, the next double.
  double bucket_end(double distance) const {
    return std::max((std::floor(distance / delta_) + 1) * delta_, std::nextafter(distance, kFar));
  }

  esker::Runtime& rt_;
  double delta_;
  Lists lists_;
  esker::SymmetricArray<std::uint64_t> held_, held_next_;
  esker::SymmetricArray<double> least_;
  double threshold_ = kFar;
  std::uint64_t taken_ = 0;
};

}  // namespace sssp
