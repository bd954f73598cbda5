// The library's own pass.
#include <esker/net/gpu/pass.hpp>

namespace esker::gpu {

void load_plain_pass() { (void)load_pass<NoHandler>(); }

std::string start_plain_pass(const DeviceShare* share, std::uint64_t number, PassShape shape, void* stream) {
  return start_pass(NoHandler{}, share, number, shape, stream);
}

}  // namespace esker::gpu
