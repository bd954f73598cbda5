// GUPS with the election named: for comparing elections, not for speed.
#pragma once

#include <cstdint>
#include <string>

#include "updates.hpp"

namespace gups {

/// Launches `updates` lanes, one update each: `op` as --op and `election` as --election name them, "auto"
/// aside.
void send_with_election(esker::Runtime& rt, const std::string& election, const std::string& op,
                        std::uint64_t updates, const Send& send);

}  // namespace gups
