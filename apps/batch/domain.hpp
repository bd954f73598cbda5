// Domain decomposition on two devices: an array of words, each of which becomes left + 3 self + right, a part
// on each device, boundaries exchanged each time (Verner et al., section 4.2).
#pragma once

#include <cstdint>
#include <vector>

#include <esker/device.hpp>
#include <esker/transfer.hpp>

#include "models.hpp"
#include "running.hpp"

namespace batch_apps {

struct DomainRun {
  std::uint64_t words;     // in all; even
  std::uint64_t boundary;  // words that are sent each way
  std::uint32_t iterations;
};
/// Error{kConfiguration}: bandwidth allocation, which nothing on a real machine does.
Ran run_domain(Method method, const Machine& machine, const DomainRun& run, bool verify);

}  // namespace batch_apps
