// Ranges of a host thread's time for the device's profiler: NVTX in a CUDA build, nothing elsewhere.
#pragma once

#include <esker/device/platform.hpp>

namespace esker::ranges {

/// A profiler is attached that shows ranges. Constant while the process runs.
ESKER_API bool are_watched();

/// Ranges of one thread nest. `name` is copied. Without a profiler a call costs a load and a branch.
ESKER_API void push(const char* name);
ESKER_API void pop();

}  // namespace esker::ranges
