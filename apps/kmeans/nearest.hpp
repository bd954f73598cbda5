// Which centroid each of many points is next to, on the CPU.
#pragma once

#include <cstdint>

namespace kmeans {

/// For each of `n` points, a row of `dimensions` words each, the centroid that is next to it, likewise a row;
/// the lower of two that are equally far. With the vectors that this machine has.
void find_nearest(const double* points, std::uint64_t n, const double* centroids, std::uint32_t clusters,
                  std::uint32_t dimensions, std::uint32_t* nearest);

}  // namespace kmeans
