// A build without a device has no heap in one's memory.
#include <esker/runtime/program_messages.hpp>

namespace esker {

std::string start_program_messages(const detail::KernelContext& /*context*/,
                                   const ProgramMessage* /*messages*/, std::uint64_t /*count*/,
                                   void* /*stream*/, gpu::Occupancy& /*occupancy*/) {
  return "this build has no device";
}

}  // namespace esker
