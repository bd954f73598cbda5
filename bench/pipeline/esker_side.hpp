// The ping-pong and its chains by esker::pipeline.
#pragma once

#include <cstdint>
#include <string>

#include "bench.hpp"

namespace esker::bench {

struct Chain {
  std::uint64_t frame_bytes, frames;
  std::uint32_t stages = 1;        // on the device: n
  bool returns_each_time = false;  // C(GC)n, else C(G)nC
  pipeline::Crossing crossing = pipeline::Crossing::kAuto;
  std::uint32_t parts = 1;
  std::uint32_t slots = 256;
  std::uint32_t host_threads = 1;  // that publish, and as many that look at what comes back
};
/// Doubles each frame n times. Verified. Returns seconds, from start() to the end of the run;
/// `last_to_end_us`: the time from the last frame to it.
double run_chain(const Device& device, const Chain& chain, double* last_to_end_us = nullptr,
                 std::string* report = nullptr);

}  // namespace esker::bench
