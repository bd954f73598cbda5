// Grids of regions: what a program asks once, on the host.
#include <algorithm>
#include <string>
#include <vector>

#include <esker/device/error.hpp>
#include <esker/error.hpp>
#include <esker/pipeline/regions_grid.hpp>

namespace esker::pipeline {
namespace {

std::string text_of(const Extent& e) {
  return std::to_string(e.x) + " x " + std::to_string(e.y) + " x " + std::to_string(e.z);
}

}  // namespace

RegionGrid RegionGrid::of(const Extent& cells, const Extent& region) {
  const auto has_all = [](const Extent& e) { return e.x != 0 && e.y != 0 && e.z != 0; };
  const auto part = [](std::uint32_t all, std::uint32_t most) { return all < most ? all : most; };
  const auto parts = [](std::uint32_t all, std::uint32_t most) { return (all - 1) / most + 1; };
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
  const auto is_below_most = [](const Extent& e) {
    return std::uint64_t{e.x} * e.y < kMost && std::uint64_t{e.x} * e.y * e.z < kMost;
  };
  if (!has_all(cells) || !has_all(region))
    misuse("RegionGrid::of(): a grid of " + text_of(cells) + " cells in regions of " + text_of(region) +
           ": every size is 1 at least");
  RegionGrid grid;
  grid.cells = cells;
  grid.region = {part(region.x, cells.x), part(region.y, cells.y), part(region.z, cells.z)};
  grid.regions = {parts(cells.x, grid.region.x), parts(cells.y, grid.region.y),
                  parts(cells.z, grid.region.z)};
  if (!is_below_most(grid.region) || !is_below_most(grid.regions))
    misuse("RegionGrid::of(): a grid of " + text_of(cells) + " cells in " + text_of(grid.regions) +
           " regions of " + text_of(grid.region) + ": both numbers are below 2^31");
  return grid;
}

std::uint32_t buffers_in_order(const RegionGrid& grid, const Halo& halo) {
  // A region is read for the last time when the last region that one of its readers needs has arrived.
  std::vector<std::int32_t> change(std::size_t{grid.count()} + 1);
  for (std::uint32_t region = 0; region < grid.count(); ++region) {
    const Box readers = grid.readers_of(region, halo);
    if (readers.count() == 0) continue;
    // Ranges of needs grow with the reader in each dimension, so the last reader needs the last region.
    const Box needs = grid.needs_of(grid.number_of(readers.last()), halo);
    const std::uint32_t last = std::max(region, grid.number_of(needs.last()));
    ++change[region];
    --change[last + 1];
  }
  std::int32_t held = 0, most = 1;
  for (const std::int32_t c : change) most = std::max(most, held += c);
  return static_cast<std::uint32_t>(most);
}

std::uint32_t detail::enough_buffers(const RegionGrid& grid, const Halo& halo, std::uint32_t buffers) {
  if (buffers == 0 || buffers >= grid.count()) return buffers;
  if (const std::uint32_t needed = buffers_in_order(grid, halo); buffers < needed) {
    throw Error(Error::Kind::kConfiguration, "RegionTable: " + std::to_string(buffers) +
                                                 " buffers, and regions that come in order need " +
                                                 std::to_string(needed));
  }
  return buffers;
}

}  // namespace esker::pipeline
