// Figures of batches (Verner et al.): what they share.
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json.hpp>

#include <esker/device.hpp>

namespace esker::bench {

struct BatchBench {
  std::vector<Device> devices;
  std::uint32_t repeats;
  std::uint64_t most_bytes;  // of a copy
};

/// Table 1: both applications on the modelled systems, by three methods, beside what the paper prints.
nlohmann::json take_methods(const BatchBench& bench);
/// Table 2: predicted against measured times of batches that the fit has not seen, on these devices.
nlohmann::json take_prediction(const BatchBench& bench);
/// Figure 7: aggregate bandwidth to the devices, to the host and both, of one device, of two, ... of all.
nlohmann::json take_bandwidth(const BatchBench& bench);
/// How long 4 KiB wait behind a copy of `most_bytes`: in chunks, on its stream, on another stream.
nlohmann::json take_behind_large(const BatchBench& bench);

}  // namespace esker::bench
