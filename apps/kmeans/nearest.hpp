// Which centroid each of many points is next to, on the CPU.
#pragma once

#include <cstdint>

namespace kmeans {

/// Centroids as kernels read them: by coordinate, so that a vector holds one coordinate of eight clusters, in
/// rows filled up to a whole number of vectors.
inline constexpr std::uint32_t kVector = 8;

/// Words from one coordinate of a centroid to the next.
constexpr std::uint32_t centroid_stride(std::uint32_t clusters) {
  return (clusters + kVector - 1) / kVector * kVector;
}

/// For each of `n` points, a row of `dimensions` words each, the centroid that is next to it; the lower of
/// two that are equally far. What fills rows up must be infinite. With the vectors that this machine has.
void find_nearest(const double* points, std::uint64_t n, const double* centroids, std::uint32_t clusters,
                  std::uint32_t dimensions, std::uint32_t* nearest);

}  // namespace kmeans
