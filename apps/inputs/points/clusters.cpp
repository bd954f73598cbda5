// Normal deviates from counters, by Box and Muller's method.
#include "clusters.hpp"

#include <esker/device/error.hpp>

#include <cmath>
#include <numbers>

#include "../random.hpp"

namespace inputs {
namespace {

enum Stream : std::uint64_t { kCluster, kCentre, kRadius, kAngle };

void require(bool legal, const char* what) {
  if (!legal) throw esker::Error(esker::Error::Kind::kConfiguration, what);
}

}  // namespace

Clusters::Clusters(const ClusterOptions& options) : options_{options} {
  require(options.points > 0, "generated points: there are none");
  require(options.columns > 0, "generated points: they have no coordinates");
  require(options.clusters > 0, "generated points: no cluster");
  require(options.spread >= 0 && std::isfinite(options.spread),
          "generated points: the spread is not a number from 0 on");
  require(options.box >= 0 && std::isfinite(options.box),
          "generated points: the box is not a number from 0 on");
}

std::uint64_t Clusters::cluster_of(std::uint64_t i) const {
  return scale(random_word(options_.seed, kCluster, i), options_.clusters);
}

double Clusters::centre(std::uint64_t cluster, std::uint64_t column) const {
  const std::uint64_t word = random_word(options_.seed, kCentre, cluster * options_.columns + column);
  return options_.box * (2 * unit(word) - 1);
}

template <class Real>
void Clusters::write(std::uint64_t i, std::span<Real> point) const {
  const std::uint64_t cluster = cluster_of(i);
  for (std::uint64_t c = 0; c < options_.columns; ++c) {
    const std::uint64_t counter = i * options_.columns + c;
    const double radius = std::sqrt(-2 * std::log(unit(random_word(options_.seed, kRadius, counter))));
    const double angle = 2 * std::numbers::pi * unit(random_word(options_.seed, kAngle, counter));
    point[c] = static_cast<Real>(centre(cluster, c) + options_.spread * radius * std::cos(angle));
  }
}

template <class Real>
Points<Real> generate(const Clusters& clusters, std::uint64_t part, std::uint64_t parts) {
  const Range mine = part_of(clusters.points(), part, parts);
  const std::uint64_t columns = clusters.columns();
  Points<Real> points{columns, std::vector<Real>((mine.end - mine.begin) * columns)};
  for (std::uint64_t i = mine.begin; i < mine.end; ++i) {
    clusters.write(i, std::span(points.values).subspan((i - mine.begin) * columns, columns));
  }
  return points;
}

template void Clusters::write(std::uint64_t, std::span<float>) const;
template void Clusters::write(std::uint64_t, std::span<double>) const;
template Points<float> generate(const Clusters&, std::uint64_t, std::uint64_t);
template Points<double> generate(const Clusters&, std::uint64_t, std::uint64_t);

}  // namespace inputs
