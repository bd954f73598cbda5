// What the sources of active_message_test share: ways to run, and arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <esker/runtime.hpp>

#include "../device/gtest.hpp"
#include "seed.hpp"
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

/// Arguments of N bytes that say which message they are, in the first and the last of them.
template <std::size_t N>
struct Payload {
  std::uint8_t bytes[N];
  ESKER_HD static Payload of(std::uint64_t message) {
    Payload payload;
    for (std::size_t i = 0; i < N; ++i) payload.bytes[i] = static_cast<std::uint8_t>(mix(message * 64 + i));
    return payload;
  }
  ESKER_HD bool is_of(std::uint64_t message) const {
    const Payload expected = of(message);
    for (std::size_t i = 0; i < N; ++i) {
      if (bytes[i] != expected.bytes[i]) return false;
    }
    return true;
  }
};
template <>
struct Payload<0> {
  ESKER_HD static Payload of(std::uint64_t) { return {}; }
  ESKER_HD bool is_of(std::uint64_t) const { return true; }
};

struct Hop {
  std::uint32_t left;
};

class ActiveMessage : public ::testing::TestWithParam<Way> {};

}  // namespace esker::testing
