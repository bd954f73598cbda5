// The kernel that sends what the program itself sends.
#include <esker/runtime.hpp>
#include <esker/runtime/program_messages.hpp>

namespace esker {
namespace {

ESKER_PASS_BEGIN

struct SendOn {
  const ProgramMessage* messages;
  ESKER_HD void operator()([[maybe_unused]] WorkItem item) const {
#if defined(ESKER_ON_GPU)
    const ProgramMessage message = messages[item.global_id()];
    detail::SenderAccess::post_words(item, Command::from_word(message.command), message.width, message.words);
#endif
  }
};

ESKER_PASS_END

}  // namespace

std::string start_program_messages(const detail::KernelContext& context, const ProgramMessage* messages,
                                   std::uint64_t count, void* stream, gpu::Occupancy& occupancy) {
  return detail::DeviceKernel<SendOn>::start(context, LaunchShape{count}, SendOn{messages}, stream,
                                             occupancy);
}

}  // namespace esker
