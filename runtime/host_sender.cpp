// One message of the program's.
#include <esker/runtime/host_sender.hpp>

namespace esker {

void HostSender::post(Command command, std::uint32_t width, const std::uint64_t* words) {
  failure_.raise_if_set();
  // Counted before it can be seen.
  if (esker::may_send(command)) has_called_.store(true, std::memory_order_relaxed);
  if (is_request(command.operation)) asked_.fetch_add(1, std::memory_order_release);
  sent_.fetch_add(1, std::memory_order_release);
  while (buffers_.append({command.word(), width, 1, 1, words}, 0) == 0)
    waits_.wait(
        "a free node buffer", [this] { return pool_.had_one(); }, false);
}

}  // namespace esker
