// Copy engines of the simulated GPUs: copies take the time that their bandwidth says.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

namespace esker::simulated {

using Moment = std::chrono::steady_clock::time_point;

/// Whether the environment's SIMULATED_COPY gives copies a speed; else they are done at once.
bool copies_take_time();

/// A copy of a stream that has come to it at `ready`, between these devices; a negative one is the host.
/// Returns when it has ended, which may lie a little in the past: the thread sleeps, and wakes late.
///
/// Contract. A device has an engine for each direction, which takes one copy at a time, in the order in which
///           they come. What the copies under way have of the bandwidth is max-min fair. `move` moves the
///           bytes, once the copy has its place.
Moment take_copy(int from, int to, std::size_t bytes, Moment ready, const std::function<void()>& move);

}  // namespace esker::simulated
