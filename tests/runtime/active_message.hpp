// The ways in which every test of active messages runs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../device/gtest.hpp"
#include "ways.hpp"

namespace esker::testing {

inline std::vector<Way> active_message_ways() {
  if (kOnGpu) return gpu_ways();
  std::vector<Way> all;
  for (const std::uint32_t helpers : {0u, 1u, 3u}) {
    for (const std::uint32_t n : {1u, 2u, 3u, 4u}) {
      if (kIsSlow && helpers != (n == 2 ? 1u : n == 3 ? 3u : 0u)) continue;
      all.push_back(way(std::to_string(helpers) + " helpers", n,
                        [=](Config& config) { config.apply_helpers = helpers; }));
    }
  }
  return all;
}

class ActiveMessage : public ::testing::TestWithParam<Way> {};

}  // namespace esker::testing
