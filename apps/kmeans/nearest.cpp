#include "nearest.hpp"

#include <cstring>

// One copy of a function for machines with AVX-512, one with AVX2, one for all others; the program takes its
// own when it starts. Sanitizers have not started by then.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__SANITIZE_ADDRESS__)
#define FOR_EACH_VECTOR_WIDTH __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_VECTOR_WIDTH
#endif

namespace kmeans {
namespace {

using Words = double __attribute__((vector_size(kVector * sizeof(double))));
using Numbers = std::int64_t __attribute__((vector_size(kVector * sizeof(std::int64_t))));

/// Points at a time: each coordinate of the centroids is read once for them.
constexpr std::uint32_t kPoints = 4;

}  // namespace

FOR_EACH_VECTOR_WIDTH
void find_nearest(const double* points, std::uint64_t n, const double* centroids, std::uint32_t clusters,
                  std::uint32_t dimensions, std::uint32_t* nearest) {
  const std::uint64_t stride = centroid_stride(clusters);
  for (std::uint64_t first = 0; first < n; first += kPoints) {
    // The last ones are fewer: the last of them stands in for those that are not there.
    const double* point[kPoints];
    for (std::uint32_t p = 0; p < kPoints; ++p)
      point[p] = points + (first + p < n ? first + p : n - 1) * dimensions;
    Words least[kPoints];
    Numbers at[kPoints];
    Numbers clusters_here = {0, 1, 2, 3, 4, 5, 6, 7};
    for (std::uint64_t c = 0; c < stride; c += kVector, clusters_here += std::int64_t{kVector}) {
      Words distance[kPoints] = {};
      for (std::uint32_t d = 0; d < dimensions; ++d) {
        Words coordinate;
        std::memcpy(&coordinate, centroids + d * stride + c, sizeof coordinate);
        for (std::uint32_t p = 0; p < kPoints; ++p) {
          const Words difference = point[p][d] - coordinate;
          distance[p] += difference * difference;
        }
      }
      for (std::uint32_t p = 0; p < kPoints; ++p) {
        const Numbers is_less = c == 0 ? ~Numbers{} : distance[p] < least[p];
        least[p] = is_less ? distance[p] : least[p];
        at[p] = is_less ? clusters_here : at[p];
      }
    }
    for (std::uint32_t p = 0; p < kPoints && first + p < n; ++p) {
      std::uint32_t best = 0;
      for (std::uint32_t i = 1; i < kVector; ++i) {
        if (least[p][i] < least[p][best] || (least[p][i] == least[p][best] && at[p][i] < at[p][best]))
          best = i;
      }
      nearest[first + p] = static_cast<std::uint32_t>(at[p][best]);
    }
  }
}

}  // namespace kmeans
