// Kronecker and uniform edges by index.
#include "random_graphs.hpp"

#include <fmt/format.h>
#include <esker/error.hpp>

namespace inputs {
namespace {

// Words of an edge's stream.
constexpr std::uint64_t kWeightWord = 1;
constexpr std::uint64_t kFirstWord = 2;

// Upper ends of the quadrants A, B and C of a level, for 32 random bits.
constexpr double kTwo32 = 4294967296.0;
constexpr auto kEndA = static_cast<std::uint32_t>(0.57 * kTwo32);
constexpr auto kEndB = static_cast<std::uint32_t>((0.57 + 0.19) * kTwo32);
constexpr auto kEndC = static_cast<std::uint32_t>((0.57 + 0.19 + 0.19) * kTwo32);

}  // namespace

RandomGraph::RandomGraph(unsigned scale, std::uint64_t degree, std::uint64_t seed)
    : scale_{scale}, degree_{degree}, random_{seed} {
  if (scale > kMaxScale || degree == 0 || degree > kMaxDegree) {
    throw esker::Error(
        esker::Error::Kind::kConfiguration,
        fmt::format("random graph: scale {} and degree {}: the scale is at most {}, the degree 1 to {}",
                    scale, degree, kMaxScale, kMaxDegree));
  }
}

void RandomGraph::for_each_edge(Part part, const EdgeVisitor& visit) const {
  const Range mine = range_of(edges(), part);
  for (std::uint64_t i = mine.begin; i < mine.end; ++i) visit(edge(i));
}

double RandomGraph::weight(std::uint64_t i) const {
  return static_cast<double>(1 + scaled(random_(i, kWeightWord), kMaxWeight));
}

// Another seed, so that the names are unrelated to the edges.
Kronecker::Kronecker(unsigned scale, std::uint64_t degree, std::uint64_t seed)
    : RandomGraph(scale, degree, seed), rename_{vertices(), mix(seed)} {}

Edge Kronecker::edge(std::uint64_t i) const {
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::uint64_t bits = 0;
  for (unsigned level = 0; level < scale(); ++level) {
    bits = level % 2 == 0 ? random()(i, kFirstWord + level / 2) : bits >> 32;  // a word serves two levels
    const auto draw = static_cast<std::uint32_t>(bits);
    from = from << 1 | (draw >= kEndB ? 1u : 0u);
    to = to << 1 | ((draw >= kEndA && draw < kEndB) || draw >= kEndC ? 1u : 0u);
  }
  return {rename_(from), rename_(to), weight(i)};
}

UniformRandom::UniformRandom(unsigned scale, std::uint64_t degree, std::uint64_t seed)
    : RandomGraph(scale, degree, seed) {}

Edge UniformRandom::edge(std::uint64_t i) const {
  return {scaled(random()(i, kFirstWord), vertices()), scaled(random()(i, kFirstWord + 1), vertices()),
          weight(i)};
}

}  // namespace inputs
