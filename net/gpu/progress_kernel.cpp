// The library's own progress kernel.
#include <esker/net/gpu/progress_kernel.hpp>

namespace esker::gpu {

std::uint32_t load_plain_progress_kernel(const Occupancy& occupancy) {
  return load_progress_kernel<NoHandler>(occupancy);
}

std::string start_plain_progress_kernel(const PeState* pe_state, std::uint64_t number, ProgressShape shape,
                                        void* stream) {
  return start_progress_kernel(NoHandler{}, pe_state, number, shape, stream);
}

}  // namespace esker::gpu
