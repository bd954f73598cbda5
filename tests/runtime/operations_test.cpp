// Every operation against a serial reference, over loopback, in several shapes of the runtime.
#include "operations.hpp"

#include "pes.hpp"

namespace esker::testing {
namespace {

std::vector<Way> shapes() {
  if (kOnGpu) return gpu_ways();
  const auto shape = [](std::uint32_t n_pes, std::uint32_t lane_threads, std::uint32_t helpers,
                        std::uint32_t aggregators) {
    return way(std::to_string(lane_threads) + " lane threads, " + std::to_string(helpers) + " helpers, " +
                   std::to_string(aggregators) + " aggregators",
               n_pes, [=](Config& config) {
                 config.cpu_threads = lane_threads;
                 config.apply_helpers = helpers;
                 config.aggregators = aggregators;
               });
  };
  return {shape(1, 1, 0, 1), shape(2, 1, 0, 1), shape(2, 3, 1, 3), shape(3, 2, 3, 1), shape(4, 1, 1, 3)};
}

class Operations : public ::testing::TestWithParam<Way> {};

TEST_P(Operations, PutsOfEverySizeArriveOnce) { run_pes(GetParam(), check_all_puts); }

TEST_P(Operations, UpdatesOfEveryTypeMatchASerialReference) { run_pes(GetParam(), check_all_numbers); }

INSTANTIATE_TEST_SUITE_P(Shapes, Operations, ::testing::ValuesIn(shapes()));

}  // namespace
}  // namespace esker::testing
