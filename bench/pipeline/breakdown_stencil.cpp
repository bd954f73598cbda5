// A stencil of five points over a grid that the host makes, with HiWayLib's techniques added one by one, and
// by bands of rows that are copied.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "../../apps/pipelines/stencil/by_bands.hpp"
#include "../../apps/pipelines/stencil/by_items.hpp"
#include "../../apps/pipelines/stencil/by_regions.hpp"
#include "breakdown.hpp"

namespace esker::bench {

namespace {

using namespace pipeline;
using stencil::Problem;

std::vector<float> expected_of(const Problem& problem) {
  const std::uint32_t side = problem.cells.x;
  std::vector<float> values(problem.cells.volume()), results(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = problem.make(i);
  const auto at = [&](std::uint32_t x, std::uint32_t y) {
    return x < side && y < side ? values[std::size_t{y} * side + x] : 0;
  };
  for (std::uint32_t y = 0; y < side; ++y) {
    for (std::uint32_t x = 0; x < side; ++x)
      results[std::size_t{y} * side + x] =
          4 * at(x, y) + at(x - 1, y) + at(x + 1, y) + at(x, y - 1) + at(x, y + 1);
  }
  return results;
}

}  // namespace

nlohmann::json take_stencil(const PipelineBench& bench) {
  // A task of five values and a result are 32 bytes.
  const auto side =
      static_cast<std::uint32_t>(std::clamp(std::sqrt(static_cast<double>(bench.bytes) / 32), 64.0, 8192.0));
  const Problem problem{{side, side, 1}, stencil::Shape::star(2), 1};
  const std::vector<float> expected = expected_of(problem);
  std::vector<float> results(expected.size());
  const auto timed = [&](const std::function<const float*()>& run) {
    std::fill(results.begin(), results.end(), std::numeric_limits<float>::quiet_NaN());
    const auto began = std::chrono::steady_clock::now();
    const float* const found = run();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    if (!std::equal(expected.begin(), expected.end(), found)) throw std::runtime_error("a cell is wrong");
    return seconds;
  };
  const auto topics = [&](Crossing crossing) {
    return stencil::Topics{65536, std::min(bench.frames, 64u), 1, crossing};
  };
  const auto bands = [&](std::uint32_t streams) {
    stencil::ByBands by(bench.device, problem, std::max(16384 / side, 1u), streams);
    return timed([&] { return by.run(), by.results(); });
  };
  const auto items = [&]<class Election>(Election*, Crossing crossing) {
    stencil::ByItems<5, Election> by(bench.device, {}, problem, topics(crossing));
    return timed([&] { return by.run(results.data()), results.data(); });
  };
  const auto regions = [&](Crossing crossing) {
    stencil::ByRegions by(bench.device, {}, problem, {128, 128, 1}, topics(crossing));
    return timed([&] { return by.run(results.data()), results.data(); });
  };
  constexpr PerLane* kAlone = nullptr;
  constexpr PerConvergedWave* kElected = nullptr;
  constexpr StatusArray* kByStatus = nullptr;
  return take_turns(bench, "stencil",
                    {{"bands, copy-kernel-copy", [&] { return bands(1); }},
                     {"bands, 4 streams", [&] { return bands(4); }},
                     {"basic scheme", [&] { return items(kAlone, Crossing::kBatched); }},
                     {"+ election of a lane", [&] { return items(kElected, Crossing::kBatched); }},
                     {"+ status array", [&] { return items(kByStatus, Crossing::kBatched); }},
                     {"+ lazy regions", [&] { return regions(Crossing::kBatched); }},
                     {"Esker: direct, regions", [&] { return regions(Crossing::kDirect); }}},
                    static_cast<double>(expected.size()) / 1e6, "M cells/s");
}

nlohmann::json take_breakdown(const PipelineBench& bench) {
  return {{"recursion", take_recursion(bench)}, {"stencil", take_stencil(bench)}};
}

}  // namespace esker::bench
