// Ranges as NVTX shows them: Nsight Systems and Nsight Compute.
#include <esker/device/ranges.hpp>

#include <nvtx3/nvToolsExt.h>

#include <cstdlib>

namespace esker::ranges {

bool are_watched() {
  // How a profiler has NVTX load its library; NVTX itself has no question for it.
  static const bool watched = std::getenv("NVTX_INJECTION64_PATH") != nullptr;
  return watched;
}
void push(const char* name) { nvtxRangePushA(name); }
void pop() { nvtxRangePop(); }

}  // namespace esker::ranges
