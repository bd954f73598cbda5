// Frames of numbers in a row, for tests of pipelines.
#pragma once

#include <esker/pipeline.hpp>

#include <cstdint>

namespace esker::testing {

inline pipeline::Options small_groups() {
  pipeline::Options options;
  options.group_lanes = 64;
  return options;
}

/// Publishes `frames` frames of `n` words: 0, 1, 2, ... A frame's tag is its number and 7.
struct Count {
  pipeline::Topic<std::uint32_t> to;
  std::uint32_t frames, n;
  std::uint32_t* next;
  bool operator()(auto& stage) const {
    if (*next == frames) return false;
    auto frame = stage.open(to);
    if (frame.data == nullptr) return false;
    frame.count = n;
    for (std::uint32_t i = 0; i < n; ++i) frame[i] = *next * n + i;
    frame.tag = *next + 7;
    stage.publish(to, frame);
    ++*next;
    return true;
  }
};

}  // namespace esker::testing
