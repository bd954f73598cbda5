// How frames cross the bus where the user leaves it open: by what was measured on this machine.
#pragma once

#include <cstdint>
#include <string>

#include <esker/device/device.hpp>

namespace esker::pipeline {

/// Where measurements of this machine are kept: ESKER_MACHINE_FILE, else esker/machine.json in the user's
/// folder of caches (XDG_CACHE_HOME, or .cache in HOME). "": neither is known.
ESKER_API std::string machine_file();

/// Frames of so many bytes and more cross faster by a copy engine than by lanes, on devices of this kind:
/// what keep_batched_from() has kept, or 1 MiB, as on an H200 (docs/results/pipelines.md).
///
/// Errors. Error{kConfiguration}: the file is there, and says something else; it is named.
ESKER_API std::uint64_t batched_from(const Device& device);
/// Errors. Error{kConfiguration}: the file cannot be written.
ESKER_API void keep_batched_from(const Device& device, std::uint64_t bytes);

}  // namespace esker::pipeline
