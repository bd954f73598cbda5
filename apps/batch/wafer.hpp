// Wafer inspection: an image comes to the host every period, is split over the devices, 40, 10, 10 and 40 %,
// and a report of the same size goes back (Verner et al., section 4.2).
#pragma once

#include <chrono>
#include <cstdint>

#include "models.hpp"
#include "running.hpp"

namespace batch_apps {

struct WaferRun {
  std::uint64_t image_bytes;
  std::uint32_t images;
  std::chrono::nanoseconds period, deadline;
};
/// Images whose batches would be late are refused, and not inspected. Errors: as of run_domain().
Ran run_wafer(Method method, const Machine& machine, const WaferRun& run, std::uint64_t seed, bool verify);

}  // namespace batch_apps
