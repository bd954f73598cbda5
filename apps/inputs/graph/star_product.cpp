#include "star_product.hpp"

#include <fmt/format.h>
#include <esker/config.hpp>
#include <esker/error.hpp>

#include <stdexcept>
#include <string_view>

#include "../random.hpp"  // Wide

namespace inputs {
namespace {

constexpr std::uint64_t kMostVertices = std::uint64_t{1} << 32;

[[noreturn]] void refuse(const std::string& specification, const std::string& why) {
  throw esker::Error(
      esker::Error::Kind::kConfiguration,
      fmt::format("stars:{}: {}; wanted: MODE:MxMx..., as 1:3x4x5, where MODE is 0 (no loops), "
                  "1 (at centres) or 2 (at leaves), and each M a star's leaves",
                  specification, why));
}

}  // namespace

StarProduct::StarProduct(const std::string& specification) {
  std::string_view left = specification;
  const std::size_t colon = left.find(':');
  if (colon != 1 || left[0] < '0' || left[0] > '2') refuse(specification, "it begins with no mode");
  mode_ = static_cast<std::uint64_t>(left[0] - '0');
  left.remove_prefix(2);
  for (bool is_last = false; !is_last;) {
    const std::size_t end = left.find('x');
    is_last = end == std::string_view::npos;
    const std::string_view number = left.substr(0, end);
    std::uint64_t leaves = 0;
    try {
      leaves = esker::parse_count(number);
    } catch (const std::invalid_argument& wrong) {
      refuse(specification, fmt::format("'{}' {}", number, wrong.what()));
    }
    if (leaves == 0) refuse(specification, "a star has no leaves");
    if (leaves >= kMostVertices || leaves + 1 > kMostVertices / vertices_)
      refuse(specification, "the product has more than 2^32 vertices");
    vertices_ *= leaves + 1;
    leaves_.push_back(leaves);
    if (!is_last) left.remove_prefix(end + 1);
  }
}

// Each star's matrix has 2 m entries, and one for its loop; the product's loop is not an edge.
std::uint64_t StarProduct::edges() const {
  Wide entries = 1;
  for (const std::uint64_t leaves : leaves_) entries *= 2 * leaves + (mode_ == 0 ? 0 : 1);
  return static_cast<std::uint64_t>((entries - (mode_ == 0 ? 0 : 1)) / 2);
}

// Closed walks of three steps, the trace of the matrix's cube, are the product of the stars': 0 without
// loops, 1 + 3 m with one at the centre, 4 with one at a leaf. To each triangle belong 6; those that use the
// product's loop, at a vertex of d other edges, are 1 + 3 d.
std::uint64_t StarProduct::triangles() const {
  if (mode_ == 0) return 0;
  Wide walks = 1, row = 1;  // row: d + 1
  for (const std::uint64_t leaves : leaves_) {
    walks *= mode_ == 1 ? 1 + 3 * leaves : 4;
    row *= mode_ == 1 ? 1 + leaves : 2;
  }
  return static_cast<std::uint64_t>((walks + 2 - 3 * row) / 6);
}

void StarProduct::for_each_edge(Part part, const EdgeVisitor& visit) const {
  // Neighbours of `vertex` whose digits before star `star` make `neighbour` so far.
  const auto extend = [&](const auto& self, std::uint64_t vertex, std::uint64_t neighbour, std::size_t star,
                          std::uint64_t weight) -> void {
    if (star == leaves_.size()) {
      if (neighbour < vertex) visit({vertex, neighbour, 1});
      return;
    }
    const std::uint64_t digits = leaves_[star] + 1;
    const std::uint64_t below = weight / digits;
    const std::uint64_t digit = vertex / below % digits;
    const auto go_on = [&](std::uint64_t other) {
      self(self, vertex, neighbour + other * below, star + 1, below);
    };
    if (digit == 0) {
      if (mode_ == 1) go_on(0);
      for (std::uint64_t leaf = 1; leaf < digits; ++leaf) go_on(leaf);
    } else {
      go_on(0);
      if (mode_ == 2 && digit == 1) go_on(1);
    }
  };
  const Range range = range_of(vertices_, part);
  for (std::uint64_t vertex = range.begin; vertex < range.end; ++vertex)
    extend(extend, vertex, 0, 0, vertices_);
}

}  // namespace inputs
