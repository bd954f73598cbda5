// stencil: the host makes a grid, the device computes a stencil over it: HiWayLib's stencil, of 5 points, or
// of 9, or of 7 in space. --by regions sends each value once; --by items sends a copy of all that a cell's
// stencil reads with each cell, which is the paper's baseline. --scheme copy-kernel-copy and streams send
// bands of rows.
//
// Verified against plain loops on the host. Values are small whole numbers, so results are equal.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "../../harness/application.hpp"
#include "../../harness/failure.hpp"
#include "../application.hpp"
#include "by_bands.hpp"
#include "by_items.hpp"
#include "by_regions.hpp"
#include "problem.hpp"

namespace {

using pipe_apps::Scheme;
using stencil::Extent;
using stencil::Problem;

/// The verifier: the stencils written out.
std::vector<float> expected_of(const Problem& p, const std::string& shape) {
  std::vector<float> values(p.cells.volume()), results(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = p.make(i);
  const auto at = [&](std::uint32_t x, std::uint32_t y, std::uint32_t z) {
    const bool is_inside = x < p.cells.x && y < p.cells.y && z < p.cells.z;
    return is_inside ? values[(std::size_t{z} * p.cells.y + y) * p.cells.x + x] : 0;
  };
  std::size_t i = 0;
  for (std::uint32_t z = 0; z < p.cells.z; ++z) {
    for (std::uint32_t y = 0; y < p.cells.y; ++y) {
      for (std::uint32_t x = 0; x < p.cells.x; ++x) {
        float sum = 4 * at(x, y, z) + at(x - 1, y, z) + at(x + 1, y, z) + at(x, y - 1, z) + at(x, y + 1, z);
        if (shape == "3d7") sum += at(x, y, z - 1) + at(x, y, z + 1);
        if (shape == "9")
          sum += at(x - 1, y - 1, z) + at(x + 1, y - 1, z) + at(x - 1, y + 1, z) + at(x + 1, y + 1, z);
        results[i++] = sum;
      }
    }
  }
  return results;
}

double seconds_of(const auto& function) {
  const auto began = std::chrono::steady_clock::now();
  function();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

/// What the command line says beside pipe_apps::Options.
struct Arguments {
  std::string by = "regions", shape = "5";
  std::uint64_t width = 0, height = 0, depth = 0, region_width = 0, region_height = 0, region_depth = 0;
};

constexpr std::uint64_t kMostCells = 65536;  // one way

Extent cells_of(const Arguments& a, const pipe_apps::Options& o) {
  const bool is_3d = a.shape == "3d7";
  const std::uint64_t side = is_3d ? o.by_size(48, 192, 320) : o.by_size(512, 2048, 4096);
  const auto one = [&](std::uint64_t given, std::uint64_t otherwise) {
    return static_cast<std::uint32_t>(given != 0 ? given : otherwise);
  };
  const Extent cells{one(a.width, side), one(a.height, side), one(a.depth, is_3d ? side : 1)};
  if (!is_3d && cells.z != 1) harness::usage("--depth is for --shape 3d7");
  if (std::max({a.width, a.height, a.depth}) > kMostCells || cells.volume() >= std::uint64_t{1} << 31)
    harness::usage("--width, --height and --depth are at most 65536, and the grid has fewer than 2^31 cells");
  return cells;
}
/// Those that are not given make a frame of --frame-bytes.
Extent region_of(const Arguments& a, const pipe_apps::Options& o) {
  const auto refuse = [] {
    harness::usage("a region's sizes are at most 65536, and it has fewer than 2^28 cells");
  };
  if (std::max({a.region_width, a.region_height, a.region_depth}) > kMostCells) refuse();
  const std::uint64_t cells = std::max<std::uint64_t>(o.frame_bytes / sizeof(float), 1);
  const bool is_3d = a.shape == "3d7";
  const auto rest = [&](std::uint64_t taken) { return std::max<std::uint64_t>(cells / taken, 1); };
  const std::uint64_t x =
      a.region_width != 0 ? a.region_width : std::min<std::uint64_t>(is_3d ? 32 : 128, cells);
  const std::uint64_t y = a.region_height != 0 ? a.region_height
                          : is_3d              ? std::min<std::uint64_t>(32, rest(x))
                                               : rest(x);
  const std::uint64_t z = a.region_depth != 0 ? a.region_depth : is_3d ? rest(x * y) : 1;
  if (std::max({x, y, z}) > kMostCells || x * y * z >= std::uint64_t{1} << 28) refuse();
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), static_cast<std::uint32_t>(z)};
}

int run(int argc, char** argv) {
  pipe_apps::Options o;
  Arguments a;
  esker::CommandLine line("esker-pipe-stencil",
                          "Computes a stencil on the device over a grid that the host makes.");
  o.add_to(line);
  line.add("shape", &a.shape, "of the stencil", {"5", "9", "3d7"})
      .add("by", &a.by, "how --scheme esker sends values", {"regions", "items"})
      .add("width", &a.width, "cells; 0: as --size says")
      .add("height", &a.height, "cells; 0: as --size says")
      .add("depth", &a.depth, "cells; 0: as --size says")
      .add("region-width", &a.region_width, "cells; 0: as --frame-bytes says")
      .add("region-height", &a.region_height, "cells; 0: as --frame-bytes says")
      .add("region-depth", &a.region_depth, "cells; 0: as --frame-bytes says");
  const esker::Device device = o.parse(line, argc, argv);
  o.require_scheme({Scheme::kEsker, Scheme::kCopyKernelCopy, Scheme::kStreams});

  const Problem problem{
      cells_of(a, o),
      a.shape == "9" ? stencil::Shape::square() : stencil::Shape::star(a.shape == "5" ? 2 : 3), o.seed};
  const std::size_t cells = problem.cells.volume();
  const std::vector<float> expected = o.verify ? expected_of(problem, a.shape) : std::vector<float>();
  std::vector<float> results(cells);
  std::uint64_t bytes = 0;
  nlohmann::json more = {{"shape", a.shape},
                         {"by", o.scheme == Scheme::kEsker ? a.by : "bands"},
                         {"cells", {problem.cells.x, problem.cells.y, problem.cells.z}}};
  const auto measure = [&](const auto& compute, const auto& found) {
    return pipe_apps::measure(
        o,
        [&] {
          std::fill(found(), found() + cells, std::numeric_limits<float>::quiet_NaN());
          return seconds_of(compute);
        },
        [&] { return std::equal(expected.begin(), expected.end(), found()); });
  };
  const auto in_results = [&] { return results.data(); };

  const esker::pipeline::Options options = o.pipeline_options();
  const stencil::Topics topics{o.frame_bytes, static_cast<std::uint32_t>(o.frames),
                               static_cast<std::uint32_t>(o.workers), o.crossing};
  const auto by_items = [&](auto n) {
    stencil::ByItems<decltype(n)::value> items(device, options, problem, topics);
    bytes = items.bytes();
    return measure([&] { more["pipeline"] = nlohmann::json::parse(items.run(results.data()).json()); },
                   in_results);
  };
  pipe_apps::Measured measured;
  if (o.scheme != Scheme::kEsker) {
    const auto rows = static_cast<std::uint32_t>(
        std::max<std::uint64_t>(o.frame_bytes / sizeof(float) / problem.cells.x, 1));
    stencil::ByBands bands(
        device, problem, rows,
        o.scheme == Scheme::kStreams ? static_cast<std::uint32_t>(std::max<std::uint64_t>(o.streams, 2)) : 1);
    measured = measure([&] { bands.run(); }, [&] { return bands.results(); });
    bytes = bands.bytes();
  } else if (a.by == "regions") {
    stencil::ByRegions regions(device, options, problem, region_of(a, o), topics);
    bytes = regions.bytes();
    const Extent& region = regions.grid().region;
    more["region"] = {region.x, region.y, region.z};
    measured = measure([&] { more["pipeline"] = nlohmann::json::parse(regions.run(results.data()).json()); },
                       in_results);
  } else if (a.shape == "5") {
    measured = by_items(std::integral_constant<std::uint32_t, 5>());
  } else if (a.shape == "9") {
    measured = by_items(std::integral_constant<std::uint32_t, 9>());
  } else {
    measured = by_items(std::integral_constant<std::uint32_t, 7>());
  }
  return pipe_apps::finish(o, device, "pipe-stencil", measured,
                           {static_cast<double>(cells), "cells", static_cast<double>(bytes)}, more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pipe-stencil", argc, argv, run); }
