// Which vertices are relaxed when.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <esker/esker.hpp>

#include "../graph/distributed_graph.hpp"
#include "../graph/edge_chunks.hpp"
#include "../harness/fill.hpp"
#include "kernels.hpp"
#include "vertices.hpp"

namespace sssp {

/// What all PEs do next.
enum class Next { kSuperstep, kGoOn, kEnd };

/// Says which vertices are relaxed when.
///
/// State.    A bucket: distances below the threshold. It rises by `delta` when no vertex below it is left on
///           any PE, past distances that no vertex has. Without a delta it is infinite. Vertices beyond the
///           horizon, some buckets on, wait by themselves, so that not all are looked at for each bucket.
/// Contract. start(). Then take() and relaxing what it has taken, until it finds nothing, and next(), which
/// is
///           collective, until that says kEnd. Other PEs' messages reach this PE's vertices in the superstep
///           that kSuperstep asks for, and at no other time.
template <class D>
class Frontier {
 public:
  /// `vertices`: of this PE and remembered of others.
  Frontier(esker::Runtime& rt, const graph::DistributedGraph& graph, double delta, std::uint64_t vertices)
      : rt_{rt},
        delta_{delta},
        lists_{rt.heap().allocate<Vertex<D>>(vertices),
               graph.most_vertices,
               rt.heap().allocate<std::uint32_t>(graph.most_vertices),
               rt.heap().allocate<std::uint32_t>(vertices - graph.most_vertices + 1),
               Lists<D>::Taken::allocate(rt, graph, Lists<D>::Taken::kMostOnDevice),
               rt.heap().allocate<std::uint64_t>(Lists<D>::kLists)},
        held_{Lists<D>::kHeld,
              Vertex<D>::kHeld,
              rt.heap().allocate<std::uint32_t>(graph.most_vertices),
              {rt.heap().allocate<D>(1)}},
        far_{Lists<D>::kFar,
             Vertex<D>::kFar,
             rt.heap().allocate<std::uint32_t>(graph.most_vertices),
             {rt.heap().allocate<D>(1)}},
        stay_{rt.heap().allocate<std::uint32_t>(graph.most_vertices)} {}

  const Lists<D>& lists() const { return lists_; }
  std::uint64_t taken() const { return taken_; }

  /// All vertices are far; `here`: this PE has the source, its vertex `source`.
  void start(bool here, std::uint64_t source) {
    harness::fill(rt_, lists_.vertices, lists_.vertices.size(), [](std::uint64_t) {
      return Vertex<D>{kFar<D>, 0};
    });
    Lengths lengths{};
    if (here) {
      const std::array<Vertex<D>, 1> vertex{{{0, Vertex<D>::kFallen}}};
      rt_.heap().write(lists_.vertices, source, std::span<const Vertex<D>>(vertex));
      const std::array<std::uint32_t, 1> first{static_cast<std::uint32_t>(source)};
      rt_.heap().write(lists_.fallen, 0, std::span<const std::uint32_t>(first));
      lengths[Lists<D>::kFallen] = 1;
    }
    write_lengths(lengths);
    write_least(held_, kFar<D>);
    write_least(far_, kFar<D>);
    threshold_ = delta_ > 0 ? bucket_end(0) : kFar<D>;
    horizon_ = delta_ > 0 ? bucket_end(kWindow * delta_) : kFar<D>;
  }

  /// Takes this PE's fallen vertices of the bucket, with their edges. False: there are none.
  bool take() {
    Lengths lengths = read_lengths();
    const std::uint64_t fallen = std::exchange(lengths[Lists<D>::kFallen], 0);
    lengths[Lists<D>::kTaken] = 0;
    if (fallen > 0) {
      write_lengths(lengths);
      graph::launch_runs(rt_, fallen, "sssp-take", [&]<std::uint64_t kRun>() {
        return TakeFallen<D, kRun>{lists_, fallen, held_, far_, threshold_, horizon_};
      });
      lengths = read_lengths();
    }
    taken_ = lengths[Lists<D>::kTaken];
    return taken_ > 0;
  }

  /// Collective, when this PE has nothing left to take. `asks`: it asks for a superstep. Where no PE does,
  /// the threshold rises, and PEs go on, or all is done.
  Next next(bool asks) {
    const D least = std::min(least_of(held_), least_of(far_));
    // Nothing waits at distance 0, which is below every threshold.
    std::array<double, 1> all{asks ? 0 : static_cast<double>(least)};
    rt_.all_reduce(std::span<double>(all), esker::Reduction::kMin);
    if (all[0] == 0) return Next::kSuperstep;
    if (!(all[0] < static_cast<double>(kFar<D>))) return Next::kEnd;
    const D last = std::exchange(threshold_, bucket_end(all[0]));
    if (threshold_ > horizon_) {
      horizon_ = bucket_end(all[0] + kWindow * delta_);
      if (least_of(far_) < horizon_) release(far_, held_, last, horizon_);
    }
    const Waiting<D> fallen{Lists<D>::kFallen, Vertex<D>::kFallen, lists_.fallen, {}};
    if (least_of(held_) < threshold_) release(held_, fallen, last, threshold_);
    return Next::kGoOn;
  }

  /// Of remote vertices that have fallen since they were last asked for.
  std::uint64_t remote() {
    Lengths lengths = read_lengths();
    const std::uint64_t count = std::exchange(lengths[Lists<D>::kRemote], 0);
    if (count > 0) write_lengths(lengths);
    return count;
  }

 private:
  static constexpr double kWindow = 16;  // buckets below the horizon, when it rises
  using Lengths = std::array<std::uint64_t, Lists<D>::kLists>;

  Lengths read_lengths() const {
    Lengths lengths;
    rt_.heap().read(lists_.lengths, 0, std::span<std::uint64_t>(lengths));
    return lengths;
  }
  void write_lengths(const Lengths& lengths) {
    rt_.heap().write(lists_.lengths, 0, std::span<const std::uint64_t>(lengths));
  }
  D least_of(const Waiting<D>& waiting) const {
    std::array<D, 1> least{};
    rt_.heap().read(waiting.least.word, 0, std::span<D>(least));
    return least[0];
  }
  void write_least(const Waiting<D>& waiting, D least) {
    const std::array<D, 1> word{least};
    rt_.heap().write(waiting.least.word, 0, std::span<const D>(word));
  }

  /// Those that have waited for `end`, which was `begin`, go on to another list.
  void release(Waiting<D>& from, const Waiting<D>& to, D begin, D end) {
    Lengths lengths = read_lengths();
    const std::uint64_t count = lengths[from.name];
    write_least(from, kFar<D>);
    graph::launch_runs(rt_, count, "sssp-release", [&]<std::uint64_t kRun>() {
      return Release<D, kRun>{lists_, count, from, to, stay_, begin, end};
    });
    lengths = read_lengths();
    std::swap(from.list, stay_);
    lengths[from.name] = std::exchange(lengths[Lists<D>::kStay], 0);
    write_lengths(lengths);
  }

  /// A multiple of delta above `distance`; where doubles are too coarse for that, the next double.
  D bucket_end(double distance) const {
    const double end = (std::floor(distance / delta_) + 1) * delta_;
    if constexpr (std::is_floating_point_v<D>) return std::max(end, std::nextafter(distance, kFar<D>));
    const double next = std::ceil(std::max(end, distance + 1));
    return next < static_cast<double>(kFar<D>) ? static_cast<D>(next) : kFar<D>;
  }

  esker::Runtime& rt_;
  double delta_;
  Lists<D> lists_;
  Waiting<D> held_, far_;
  esker::SymmetricArray<std::uint32_t> stay_;
  D threshold_ = kFar<D>, horizon_ = kFar<D>;
  std::uint64_t taken_ = 0;
};

}  // namespace sssp
