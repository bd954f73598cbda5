// Plain words in scratchpad that lanes hand over by atomics that order nothing, and a fence for scratchpad
// alone.
#include <cstdint>
#include <string_view>

#include "on_device.hpp"
#include "scratch.hpp"

namespace esker::testing {
namespace {

// Of one lane; lanes of a simulated GPU are fibers, which switch each time.
constexpr std::uint32_t kRounds = std::string_view(gpu::kBackend) == "simulated" ? 2000 : 200'000;

TEST(Scratchpad, WhatALaneHandsOverBehindAFenceArrivesWhole) {
  constexpr std::uint64_t kGroups = 64;
  for (const std::uint32_t lanes : {1u, 7u, 64u, 250u, HandOver::kMostLanes}) {
    const SharedArray<DeviceAtomic<std::uint64_t>> wrong(kGroups);
    const Way way{{kGroups * lanes, lanes, hardware_wave_lanes()}, GroupExecution::kFibers};
    const std::uint32_t rounds = kRounds / lanes;
    run_on_device(way, HandOver{rounds, wrong.data()});
    for (std::uint64_t group = 0; group < kGroups; ++group)
      EXPECT_EQ(wrong[group].load_relaxed(), 0u) << lanes << " lanes, group " << group;
  }
}

}  // namespace
}  // namespace esker::testing
