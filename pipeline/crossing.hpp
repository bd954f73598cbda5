// How frames cross the bus where the user leaves it open: by what was measured on this machine.
#pragma once

#include <cstdint>

#include <esker/device/device.hpp>
#include <esker/device/machine_file.hpp>

namespace esker::pipeline {

/// Frames of so many bytes and more cross faster by a copy engine than by lanes, on devices of this kind:
/// what keep_batched_from() has kept, or 1 MiB, as on an H200 (docs/results/pipelines.md).
///
/// Errors. Error{kConfiguration}: the machine file is there, and says something else; it is named.
ESKER_API std::uint64_t batched_from(const Device& device);
/// Errors. Error{kConfiguration}: the machine file cannot be written.
ESKER_API void keep_batched_from(const Device& device, std::uint64_t bytes);

}  // namespace esker::pipeline
