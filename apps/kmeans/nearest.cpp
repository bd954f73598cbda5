#include "nearest.hpp"

#include <cstring>
#include <vector>

#include "../harness/vector_width.hpp"

namespace kmeans {
namespace {

constexpr std::uint32_t kVector = 8;
using Words = double __attribute__((vector_size(kVector * sizeof(double))));
using Numbers = std::int64_t __attribute__((vector_size(kVector * sizeof(std::int64_t))));

/// Vectors of points at a time: each coordinate of a centroid is read once for them.
constexpr std::uint32_t kVectors = 2;
constexpr std::uint32_t kPoints = kVectors * kVector;

}  // namespace

FOR_EACH_VECTOR_WIDTH
void find_nearest(const double* points, std::uint64_t n, const double* centroids, std::uint32_t clusters,
                  std::uint32_t dimensions, std::uint32_t* nearest) {
  // Coordinate by coordinate, so that a vector holds one of eight points.
  thread_local std::vector<double> columns;
  columns.resize(std::size_t{dimensions} * kPoints);
  for (std::uint64_t first = 0; first < n; first += kPoints) {
    // The last ones are fewer: the last of them stands in for those that are not there.
    for (std::uint32_t p = 0; p < kPoints; ++p) {
      const double* const point = points + (first + p < n ? first + p : n - 1) * dimensions;
      for (std::uint32_t d = 0; d < dimensions; ++d) columns[d * kPoints + p] = point[d];
    }
    Words least[kVectors];
    Numbers at[kVectors] = {};
    for (std::uint32_t c = 0; c < clusters; ++c) {
      Words distance[kVectors] = {};
      for (std::uint32_t d = 0; d < dimensions; ++d) {
        const double coordinate = centroids[std::uint64_t{c} * dimensions + d];
        for (std::uint32_t v = 0; v < kVectors; ++v) {
          Words values;
          std::memcpy(&values, &columns[d * kPoints + v * kVector], sizeof values);
          const Words difference = values - coordinate;
          distance[v] += difference * difference;
        }
      }
      for (std::uint32_t v = 0; v < kVectors; ++v) {
        const Numbers is_less = c == 0 ? ~Numbers{} : distance[v] < least[v];
        least[v] = is_less ? distance[v] : least[v];
        at[v] = is_less ? Numbers{} + std::int64_t{c} : at[v];
      }
    }
    for (std::uint32_t p = 0; p < kPoints && first + p < n; ++p)
      nearest[first + p] = static_cast<std::uint32_t>(at[p / kVector][p % kVector]);
  }
}

}  // namespace kmeans
