// The kernels of kmeans: what lanes compute and send. See kmeans.cpp for the invariant.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>

#include "../styles/message.hpp"
#include "nearest.hpp"

namespace kmeans {

/// The clusters, and who owns which.
struct Clustering {
  std::uint32_t clusters;
  std::uint32_t dimensions;
  std::uint32_t pes;
  double scale;          // 2^s
  std::uint32_t stride;  // words between two sums

  /// Words of a cluster's row: a sum of each coordinate, and the count.
  ESKER_HD std::uint32_t row_words() const { return dimensions + 1; }
  ESKER_HD std::uint32_t rows() const { return (clusters + pes - 1) / pes; }
  ESKER_HD std::uint32_t owner(std::uint32_t cluster) const { return cluster % pes; }
  ESKER_HD std::uint64_t word(std::uint32_t cluster, std::uint32_t column) const {
    return (std::uint64_t{cluster / pes} * row_words() + column) * stride;
  }
  ESKER_HD std::uint64_t centroid_word(std::uint32_t cluster, std::uint32_t dimension) const {
    return std::uint64_t{cluster} * dimensions + dimension;
  }
  /// What a point adds to word `column` of its cluster.
  ESKER_HD std::int64_t addend(const double* point, std::uint32_t column) const {
    if (column == dimensions) return 1;
    const double scaled = point[column] * scale;
    return static_cast<std::int64_t>(scaled + (scaled < 0 ? -0.5 : 0.5));
  }
  /// The lower of two that are equally far.
  ESKER_HD std::uint32_t nearest(const double* point, const double* centroids) const {
    std::uint32_t best = 0;
    double least = 0;
    for (std::uint32_t c = 0; c < clusters; ++c) {
      double distance = 0;
      for (std::uint32_t d = 0; d < dimensions; ++d) {
        const double difference = point[d] - centroids[centroid_word(c, d)];
        distance += difference * difference;
      }
      const bool is_nearer = c == 0 || distance < least;  // selected, not branched on: nobody can predict it
      best = is_nearer ? c : best;
      least = is_nearer ? distance : least;
    }
    return best;
  }
};

/// A lane sends its point, word after word.
struct Assign {
  using Message = styles::Add<std::int64_t>;
  struct State {
    std::uint64_t point;
    std::uint32_t cluster;
    std::uint32_t column;
  };
  Clustering clustering;
  esker::SymmetricArray<double> points;
  esker::SymmetricArray<double> centroids;
  esker::SymmetricArray<std::int64_t> sums;

  ESKER_HD const double* at(std::uint64_t point) const { return &points[point * clustering.dimensions]; }
  ESKER_HD State start(std::uint64_t id) const {
    return {id, clustering.nearest(at(id), centroids.data()), 0};
  }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.column > clustering.dimensions) return false;
    message = {&sums[clustering.word(state.cluster, state.column)], clustering.owner(state.cluster),
               clustering.addend(at(state.point), state.column)};
    ++state.column;
    return true;
  }
};

/// What --combine is about: each of a row of workers adds up the points that are its, on its own.
///
/// Encoding. Worker after worker, or on a GPU word after word, so that a wave's lanes touch neighbours.
struct Partial {
  esker::SymmetricArray<std::int64_t> words;
  std::uint64_t workers;
  std::uint64_t words_each;
  bool interleaved;

  ESKER_HD std::int64_t& at(std::uint64_t worker, std::uint64_t word) const {
    return words[interleaved ? word * workers + worker : worker * words_each + word];
  }
};

/// Of `count` things in a row, those of one of `parts`: every parts-th on a GPU, neighbours on the CPU.
struct Portion {
  std::uint64_t begin, end, step;
  ESKER_HD static Portion of(std::uint64_t part, std::uint64_t parts, std::uint64_t count, bool interleaved) {
    if (interleaved) return {part, count, parts};
    const std::uint64_t each = (count + parts - 1) / parts;
    const std::uint64_t begin = part * each;
    return {begin, begin + each < count ? begin + each : count, 1};
  }
};

/// A lane adds up its points, and sends nothing.
struct AddUp {
  Assign assign;
  Partial partial;
  std::uint64_t points;

  ESKER_HD void operator()(esker::Lane lane) const {
    const Clustering& k = assign.clustering;
    const std::uint64_t me = lane.global_id();
    for (std::uint64_t w = 0; w < partial.words_each; ++w) partial.at(me, w) = 0;
    const Portion mine = Portion::of(me, partial.workers, points, partial.interleaved);
#if defined(ESKER_ON_CPU)
    constexpr std::uint64_t kPoints = 64;
    std::uint32_t nearest[kPoints];
    for (std::uint64_t first = mine.begin; first < mine.end; first += kPoints) {
      const std::uint64_t n = mine.end - first < kPoints ? mine.end - first : kPoints;
      find_nearest(assign.at(first), n, assign.centroids.data(), k.clusters, k.dimensions, nearest);
      for (std::uint64_t i = 0; i < n; ++i) add(me, first + i, nearest[i]);
    }
#else
    for (std::uint64_t p = mine.begin; p < mine.end; p += mine.step)
      add(me, p, k.nearest(assign.at(p), assign.centroids.data()));
#endif
  }
  ESKER_HD void add(std::uint64_t me, std::uint64_t point, std::uint32_t cluster) const {
    const Clustering& k = assign.clustering;
    const std::uint64_t row = std::uint64_t{cluster} * k.row_words();
    for (std::uint32_t d = 0; d <= k.dimensions; ++d)
      partial.at(me, row + d) += k.addend(assign.at(point), d);
  }
};

/// A lane adds up one word of some workers, and sends that.
struct SendSums {
  using Message = Assign::Message;
  struct State {
    std::uint64_t lane;
    bool has_sent;
  };
  Assign assign;
  Partial partial;
  std::uint64_t lanes_a_word;

  ESKER_HD State start(std::uint64_t lane) const { return {lane, false}; }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.has_sent) return false;
    state.has_sent = true;
    const Clustering& k = assign.clustering;
    const std::uint64_t word = state.lane / lanes_a_word;
    const auto cluster = static_cast<std::uint32_t>(word / k.row_words());
    const auto column = static_cast<std::uint32_t>(word % k.row_words());
    std::int64_t sum = 0;
    const Portion mine =
        Portion::of(state.lane % lanes_a_word, lanes_a_word, partial.workers, partial.interleaved);
    for (std::uint64_t w = mine.begin; w < mine.end; w += mine.step) sum += partial.at(w, word);
    message = {&assign.sums[k.word(cluster, column)], k.owner(cluster), sum};
    return sum != 0;
  }
};

/// A lane gives one coordinate of a centroid to all PEs, and clears what the next iteration adds to. A
/// cluster without points stays where it is.
struct Give {
  using Message = styles::Put<double>;
  struct State {
    std::uint32_t cluster;
    std::uint32_t column;
    std::uint32_t pe;  // that is next
  };
  Clustering clustering;
  esker::SymmetricArray<double> centroids;
  esker::SymmetricArray<std::int64_t> sums, next_sums;
  std::uint32_t me;

  ESKER_HD State start(std::uint64_t id) const {
    const Clustering& k = clustering;
    const auto row = static_cast<std::uint32_t>(id / k.dimensions);
    const auto column = static_cast<std::uint32_t>(id % k.dimensions);
    const std::uint32_t cluster = row * k.pes + me;
    next_sums[k.word(cluster, column)] = 0;
    if (column == 0) next_sums[k.word(cluster, k.dimensions)] = 0;
    const bool is_empty = cluster >= k.clusters || sums[k.word(cluster, k.dimensions)] == 0;
    return {cluster, column, is_empty ? k.pes : 0};
  }
  ESKER_HD bool next(State& state, Message& message) const {
    const Clustering& k = clustering;
    if (state.pe == k.pes) return false;
    const auto sum = static_cast<double>(sums[k.word(state.cluster, state.column)]);
    const auto count = static_cast<double>(sums[k.word(state.cluster, k.dimensions)]);
    message = {&centroids[k.centroid_word(state.cluster, state.column)], state.pe, sum / k.scale / count};
    ++state.pe;
    return true;
  }
};

}  // namespace kmeans
