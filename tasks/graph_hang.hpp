// The report of a task graph in which nothing moves.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/tasks/graph_options.hpp>
#include <esker/tasks/hang.hpp>

namespace esker::tasks::detail {

/// How full a channel is, while a run is under way: of each number, as it was at some time.
struct Fullness {
  std::uint64_t elements = 0;  // that are published; of an output: that it has
  std::uint64_t spilled = 0, spill_capacity = 0;
  std::uint64_t seeds = 0, seeds_left = 0;
};

/// For a HangWatch's Explain: domains, what they run and hold, and channels, how full they are and whose
/// elements they wait for. A run's notes are elements of channel c in the buffer and on the stack of domain
/// d, at d * channels.size() + c.
ESKER_API std::string explain_graph(const SeenProgress& seen, const std::vector<Fullness>& fullness,
                                    const std::vector<GraphReport::Channel>& channels);

}  // namespace esker::tasks::detail
