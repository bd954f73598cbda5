// Sets of copies by each path.
#pragma once

#include <cstdint>

#include <nlohmann/json.hpp>

#include <esker/device.hpp>

namespace esker::bench {

/// Microseconds from the call to the end, by number, size and direction: separate copies, the driver's call,
/// a graph made before, a kernel, one copy of all bytes, and copy_batch() by a profile that is measured
/// first, at other points.
nlohmann::json take_paths(const Device& device, std::uint32_t repeats);

}  // namespace esker::bench
