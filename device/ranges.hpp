// Ranges of a host thread's time for the device's profiler: NVTX in a CUDA build, nothing elsewhere.
#pragma once

namespace esker::ranges {

/// A profiler is attached that shows ranges. Constant while the process runs.
bool are_watched();

/// Ranges of one thread nest. `name` is copied. Without a profiler a call costs a load and a branch.
void push(const char* name);
void pop();

}  // namespace esker::ranges
