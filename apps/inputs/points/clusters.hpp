// Generated points in Gaussian clusters: any point is a function of a seed and its number.
#pragma once

#include <cstdint>
#include <span>

#include "../random.hpp"
#include "points.hpp"

namespace inputs {

struct ClusterOptions {
  std::uint64_t seed = 1;
  std::uint64_t points = 10'000;
  std::uint64_t columns = 2;   // coordinates a point
  std::uint64_t clusters = 8;  // equally likely
  double spread = 0.05;        // standard deviation of each coordinate about its centre
  double box = 1;              // centres are uniform in [-box, box] in each coordinate
};

/// Contract The same options give the same points on every process of one machine; between machines they may
///          differ in the last bits, where log() and cos() do.
class Clusters {
 public:
  /// Throws esker::Error{kConfiguration} naming the option that has no legal value.
  explicit Clusters(const ClusterOptions& options);

  std::uint64_t points() const { return options_.points; }
  std::uint64_t columns() const { return options_.columns; }

  /// The cluster, below ClusterOptions::clusters, that point `i` < points() was drawn from.
  std::uint64_t cluster_of(std::uint64_t i) const;
  /// Coordinate `column` of the centre of a cluster.
  double centre(std::uint64_t cluster, std::uint64_t column) const;
  /// Writes point `i`, columns() coordinates. Real is float or double.
  template <class Real>
  void write(std::uint64_t i, std::span<Real> point) const;

 private:
  ClusterOptions options_;
  Random random_;
};

/// Points range_of(points(), part), in order.
template <class Real>
Points<Real> generate(const Clusters& clusters, Part part = {});

}  // namespace inputs
