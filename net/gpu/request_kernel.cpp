// The progress kernel that applies requests.
#include <esker/net/gpu/answer.hpp>
#include <esker/net/gpu/handler_code.hpp>

namespace esker::gpu {

HandlerOnDevice code_for_requests() {
  using Handlers = OneHandler<RequestCall>;
  return {load_progress_kernel<Handlers>, [](std::uint32_t index, const PeState* pe_state,
                                             std::uint64_t number, ProgressShape shape, void* stream) {
            return start_progress_kernel(Handlers{index, {}}, pe_state, number, shape, stream);
          }};
}

}  // namespace esker::gpu
