// kmeans: Lloyd's algorithm; every point adds itself to the sums of the centroid next to it (thesis, Table
// 5-3).
//
// Invariant. Points stay on their PE, and every PE has all centroids. Cluster c belongs to PE c % n_pes,
// which keeps its sums in row c / n_pes: one of each coordinate, and the number of points. Coordinate x
// counts as the integer nearest to x * 2^s, with the same s on every PE, so sums do not depend on the order.
// s is the largest with points * most |x| * 2^s < 2^62: no sum overflows, and a mean is off by less than
// points * most |x| / 2^62.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <esker/esker.hpp>

#include "../harness/application.hpp"
#include "../inputs/points/clusters.hpp"
#include "kernels.hpp"

namespace {

using kmeans::AddUp, kmeans::Assign, kmeans::Clustering, kmeans::Give, kmeans::Partial, kmeans::SendSums;

struct Options : harness::Options {
  std::uint64_t points = 0;      // of all PEs; 0: as --size says
  std::uint64_t dimensions = 0;  // 0: 2, or the input's
  std::uint64_t clusters = 8;    // Table 5-3
  std::uint64_t iterations = 10;
  std::uint64_t combine = 1;  // points that a lane adds up before it sends
  std::string input;
};

inputs::Points<double> load(const Options& o, inputs::Part part) {
  if (!o.input.empty()) return inputs::read_points<double>(o.input, part);
  inputs::ClusterOptions options;
  options.seed = o.seed;
  options.points = o.points;
  options.columns = o.dimensions;
  options.clusters = o.clusters;
  return inputs::generate<double>(inputs::Clusters(options), part);
}

/// Lloyd's algorithm, one point after the other, in floating point: centroids, then the number of points of
/// each in the last iteration.
std::vector<double> serial_lloyd(const inputs::Points<double>& points, std::vector<double> centroids,
                                 std::uint64_t iterations) {
  const std::size_t columns = points.columns;
  const std::size_t clusters = centroids.size() / columns;
  std::vector<double> counts;
  std::vector<double> squares(clusters);  // of a point's distances
  for (std::uint64_t i = 0; i < iterations; ++i) {
    std::vector<double> sums(centroids.size());
    counts.assign(clusters, 0);
    for (std::size_t p = 0; p < points.rows(); ++p) {
      std::fill(squares.begin(), squares.end(), 0.0);
      for (std::size_t w = 0; w < centroids.size(); ++w) {
        const double difference = points[p][w % columns] - centroids[w];
        squares[w / columns] += difference * difference;
      }
      const auto c =
          static_cast<std::size_t>(std::min_element(squares.begin(), squares.end()) - squares.begin());
      for (std::size_t d = 0; d < columns; ++d) sums[c * columns + d] += points[p][d];
      ++counts[c];
    }
    for (std::size_t w = 0; w < sums.size(); ++w) {
      if (counts[w / columns] > 0) centroids[w] = sums[w] / counts[w / columns];
    }
  }
  centroids.insert(centroids.end(), counts.begin(), counts.end());
  return centroids;
}

/// Collective. The sum of `mine` over the PEs before this one.
std::uint64_t sum_before(esker::Runtime& rt, std::uint64_t mine) {
  std::vector<std::uint64_t> all(rt.n_pes());
  all[rt.pe()] = mine;
  rt.all_reduce(std::span(all), esker::Reduction::kSum);
  return std::accumulate(all.begin(), all.begin() + rt.pe(), std::uint64_t{0});
}

/// What all PEs know of all points.
struct Problem {
  std::size_t columns = 0;
  std::uint64_t points = 0;     // of all PEs
  std::uint64_t rows = 0;       // of this PE
  std::uint64_t most_rows = 0;  // of a PE
  double most = 0;              // |x|
  std::vector<double> start;    // centroids: the first of all points
};

/// This PE's points, in order, some at a time: read again rather than held twice.
template <class Visit>
void for_each_chunk(const esker::Runtime& rt, const Options& o, Visit visit) {
  constexpr std::uint32_t kChunks = 8;
  for (std::uint32_t i = 0; i < kChunks; ++i) visit(load(o, {rt.pe() * kChunks + i, rt.n_pes() * kChunks}));
}

/// Collective.
Problem load_problem(esker::Runtime& rt, const Options& o) {
  harness::doing("reading the points", "fewer --points or --dimensions, or more PEs");
  Problem p = harness::agree(rt, [&] {
    Problem mine;
    for_each_chunk(rt, o, [&](const inputs::Points<double>& chunk) {
      mine.columns = chunk.columns;
      mine.rows += chunk.rows();
      for (const double x : chunk.values) mine.most = std::max(mine.most, std::abs(x));
      const std::size_t wanted = o.clusters * chunk.columns - mine.start.size();
      const auto first = std::span(chunk.values).first(std::min(wanted, chunk.values.size()));
      mine.start.insert(mine.start.end(), first.begin(), first.end());
    });
    return mine;
  });
  std::uint64_t total[1] = {p.rows};
  std::uint64_t most[1] = {p.rows};
  rt.all_reduce(std::span<std::uint64_t>(total), esker::Reduction::kSum);
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  p.points = total[0];
  p.most_rows = most[0];
  harness::agree(rt, [&] {
    if (o.dimensions != 0 && o.dimensions != p.columns)
      harness::usage(
          fmt::format("--dimensions {}: {} has {} coordinates a point", o.dimensions, o.input, p.columns));
    if (p.points < o.clusters)
      harness::usage(
          fmt::format("--clusters {}: they start from points, of which there are {}", o.clusters, p.points));
  });
  rt.all_reduce(std::span<double>(&p.most, 1), esker::Reduction::kMax);
  harness::agree(rt, [&] {
    const double squares = 4 * p.most * p.most * static_cast<double>(p.columns);  // of the longest distance
    if (!std::isfinite(squares * static_cast<double>(p.points)))
      harness::usage(
          fmt::format("{}: coordinates of up to {} are too large: sums of squares of distances overflow",
                      o.input, p.most));
  });
  // This PE's first points are some of all points' first ones, or come too late.
  const std::uint64_t before = std::min(sum_before(rt, p.rows), o.clusters) * p.columns;
  const std::uint64_t words = o.clusters * p.columns;
  p.start.resize(std::min<std::uint64_t>(p.start.size(), words - before));
  p.start.insert(p.start.begin(), before, 0.0);
  p.start.resize(words);
  rt.all_reduce(std::span<double>(p.start), esker::Reduction::kSum);
  return p;
}

double scale_of(const Problem& p) {
  const int s = p.most == 0 ? 0 : 61 - std::ilogb(static_cast<double>(p.points) * p.most);
  return std::ldexp(1.0, std::min(s, 1000));  // 2^s is finite for the smallest coordinates too
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line("esker-kmeans", "Groups points into clusters (Lloyd's algorithm).");
  o.add_to(line);
  line.add("points", &o.points, "generated points of all PEs together; 0: as --size says")
      .add("dimensions", &o.dimensions, "coordinates a point; 0: 2, or as --input has")
      .add("clusters", &o.clusters, "to find; they start at the first points")
      .add("iterations", &o.iterations, "of Lloyd's algorithm")
      .add("combine", &o.combine, "points that a lane adds up before anything is sent, and so on with lanes")
      .add("input", &o.input, "points from this file, CSV or .npy, instead of generated ones");
  o.add_output_to(line, "each centre: its coordinates, with commas between");
  esker::Config config = o.parse(line, argc, argv);
  harness::require_within("points", o.points, 0, 40);
  harness::require_within("dimensions", o.dimensions, 0, 16);
  harness::require_within("clusters", o.clusters, 1, 20);
  harness::require_within("iterations", o.iterations, 1, 32);
  harness::require_within("combine", o.combine, 1, 40);
  if (o.points == 0) {
    o.points = o.size == "paper" ? 16'000'000 : std::uint64_t{1} << (o.size == "small" ? 17 : 21);
  }
  if (o.dimensions == 0 && o.input.empty()) o.dimensions = 2;
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  if (o.input.empty()) {
    harness::require_memory(
        rt, sizeof(double) * static_cast<double>(o.points) * static_cast<double>(o.dimensions) / rt.n_pes(),
        "the points", "fewer --points or --dimensions");
    harness::require_memory(
        rt, sizeof(double) * static_cast<double>(o.clusters) * static_cast<double>(o.dimensions),
        "the centres", "fewer --clusters or --dimensions");
  }
  const Problem problem = load_problem(rt, o);
  // Lanes of a GPU add to the few sums by the million: what lies in one line of its memory is added to in
  // turn.
  const std::uint32_t stride = rt.runs_on_device() ? 128 / sizeof(std::int64_t) : 1;
  const Clustering clustering{static_cast<std::uint32_t>(o.clusters),
                              static_cast<std::uint32_t>(problem.columns), rt.n_pes(), scale_of(problem),
                              stride};
  auto& heap = rt.heap();
  const auto points = heap.allocate<double>(problem.most_rows * clustering.dimensions);
  const auto centroids = heap.allocate<double>(problem.start.size());
  // Iterations take turns: one's sums are read while the other's are cleared.
  const std::uint64_t words = std::uint64_t{clustering.rows()} * clustering.row_words() * clustering.stride;
  const esker::SymmetricArray<std::int64_t> sums[2] = {heap.allocate<std::int64_t>(words),
                                                       heap.allocate<std::int64_t>(words)};
  const auto lanes_of = [&](std::uint64_t items) {
    return items / o.combine + (items % o.combine == 0 ? 0 : 1);
  };
  const std::uint64_t words_each = std::uint64_t{clustering.clusters} * clustering.row_words();
  const Partial partial{
      heap.allocate<std::int64_t>(o.combine == 1 ? 1 : lanes_of(problem.most_rows) * words_each),
      lanes_of(problem.rows), words_each, rt.runs_on_device()};
  for_each_chunk(rt, o, [&, first = std::uint64_t{0}](const inputs::Points<double>& chunk) mutable {
    heap.write(points, first, std::span<const double>(chunk.values));
    first += chunk.values.size();
  });
  const std::uint64_t rows = problem.rows;

  std::vector<double> expected;
  const auto measured = harness::measure(
      rt, superstep, o,
      [&] {
        const std::vector<std::int64_t> zeros(words);
        heap.write(sums[0], 0, std::span<const std::int64_t>(zeros));
        heap.write(centroids, 0, std::span<const double>(problem.start));
      },
      [&] {
        for (std::uint64_t i = 0; i < o.iterations; ++i) {
          const Assign assign{clustering, points, centroids, sums[i % 2]};
          if (o.combine == 1) {
            superstep.run(rows, assign, "kmeans: assign");
          } else {
            rt.launch(partial.workers, AddUp{assign, partial, rows}, "kmeans: add up");
            const std::uint64_t lanes_a_word = lanes_of(partial.workers);
            superstep.run(lanes_a_word * partial.words_each, SendSums{assign, partial, lanes_a_word},
                          "kmeans: send sums");
          }
          superstep.run(std::uint64_t{clustering.rows()} * clustering.dimensions,
                        Give{clustering, centroids, sums[i % 2], sums[(i + 1) % 2], rt.pe()}, "kmeans: give");
        }
      },
      [&] {
        if (expected.empty()) {  // PE 0 works it out, the sum gives it to all
          expected.resize(problem.start.size() + o.clusters);
          if (rt.pe() == 0) expected = serial_lloyd(load(o, {}), problem.start, o.iterations);
          rt.all_reduce(std::span<double>(expected), esker::Reduction::kSum);
        }
        std::uint64_t wrong = 0;
        const auto found = heap.read(centroids);
        for (std::size_t i = 0; i < found.size(); ++i)
          wrong += std::abs(found[i] - expected[i]) <= 1e-6 * problem.most ? 0 : 1;
        const auto last = heap.read(sums[(o.iterations - 1) % 2]);
        for (std::uint32_t c = rt.pe(); c < clustering.clusters; c += rt.n_pes()) {
          const auto count = static_cast<double>(last[clustering.word(c, clustering.dimensions)]);
          wrong += count == expected[found.size() + c] ? 0 : 1;
        }
        return wrong;
      });
  const auto centres = rt.pe() == 0 ? heap.read(centroids) : std::vector<double>(problem.start.size());
  o.write_output(
      rt, centres.size(), [&](std::uint64_t i) { return std::bit_cast<std::uint64_t>(centres[i]); },
      [&](std::string& text, std::uint64_t i, std::uint64_t word) {
        fmt::format_to(std::back_inserter(text), "{}{}", std::bit_cast<double>(word),
                       (i + 1) % clustering.dimensions == 0 ? '\n' : ',');
      });
  const double work = static_cast<double>(problem.points) * static_cast<double>(o.iterations);
  return harness::finish(rt, o, "kmeans", measured, work, "points",
                         {{"points", problem.points},
                          {"dimensions", clustering.dimensions},
                          {"clusters", o.clusters},
                          {"iterations", o.iterations},
                          {"combine", o.combine},
                          {"input", o.input}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-kmeans", argc, argv, run); }
