// Normal deviates from counters, by Box and Muller's method.
#include "clusters.hpp"

#include <esker/error.hpp>

#include <cmath>
#include <numbers>

namespace inputs {
namespace {

enum Stream : std::uint64_t { kCluster, kCentre, kRadius, kAngle };

void require(bool legal, const char* what) {
  if (!legal) throw esker::Error(esker::Error::Kind::kConfiguration, what);
}

}  // namespace

Clusters::Clusters(const ClusterOptions& options) : options_{options}, random_{options.seed} {
  require(options.points > 0, "generated points: there are none");
  require(options.columns > 0, "generated points: they have no coordinates");
  require(options.clusters > 0, "generated points: no cluster");
  require(options.spread >= 0 && std::isfinite(options.spread),
          "generated points: the spread is not a number from 0 on");
  require(options.box >= 0 && std::isfinite(options.box),
          "generated points: the box is not a number from 0 on");
}

std::uint64_t Clusters::cluster_of(std::uint64_t i) const {
  return scaled(random_(kCluster, i), options_.clusters);
}

double Clusters::centre(std::uint64_t cluster, std::uint64_t column) const {
  const std::uint64_t word = random_(kCentre, cluster * options_.columns + column);
  return options_.box * (2 * unit(word) - 1);
}

template <class Real>
void Clusters::write(std::uint64_t i, std::span<Real> point) const {
  const std::uint64_t cluster = cluster_of(i);
  for (std::uint64_t c = 0; c < options_.columns; ++c) {
    const std::uint64_t counter = i * options_.columns + c;
    const double radius = std::sqrt(-2 * std::log(unit(random_(kRadius, counter))));
    const double angle = 2 * std::numbers::pi * unit(random_(kAngle, counter));
    point[c] = static_cast<Real>(centre(cluster, c) + options_.spread * radius * std::cos(angle));
  }
}

template <class Real>
Points<Real> generate(const Clusters& clusters, Part part) {
  const Range mine = range_of(clusters.points(), part);
  const std::uint64_t columns = clusters.columns();
  Points<Real> points{columns, std::vector<Real>(mine.size() * columns)};
  for (std::uint64_t i = mine.begin; i < mine.end; ++i) {
    clusters.write(i, std::span(points.values).subspan((i - mine.begin) * columns, columns));
  }
  return points;
}

template void Clusters::write(std::uint64_t, std::span<float>) const;
template void Clusters::write(std::uint64_t, std::span<double>) const;
template Points<float> generate(const Clusters&, Part);
template Points<double> generate(const Clusters&, Part);

}  // namespace inputs
