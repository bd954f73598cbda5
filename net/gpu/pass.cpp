// The library's own pass.
#include <esker/net/gpu/pass.hpp>

namespace esker::gpu {

void load_plain_pass() { (void)resident_groups<Pass<NoHandler>>(1); }

std::string start_plain_pass(const DeviceShare* share, std::uint64_t number, std::uint32_t groups,
                             void* stream) {
  return start_pass(NoHandler{}, share, number, groups, stream);
}

}  // namespace esker::gpu
