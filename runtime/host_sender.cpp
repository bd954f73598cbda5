// One message of the program's.
#include <esker/runtime/host_sender.hpp>

#include <algorithm>

#include <esker/runtime/lane_executor.hpp>

namespace esker {

HostSender::HostSender(const ApplierSettings& settings, LaneExecutor& executor,
                       const detail::KernelContext& context, Network& network, WaitLoop& waits,
                       const Failure& failure)
    : executor_{executor},
      context_{context},
      waits_{waits},
      failure_{failure},
      pool_{settings.buffer_bytes, settings.buffers},
      buffers_{settings.pe, settings.n_pes, pool_, OnExhausted::kPushBack, network, settings.tracer} {}

bool HostSender::sends_by_kernels() const { return executor_.on_device() && !executor_.heap_on_host(); }

void HostSender::post(Command command, std::uint32_t width, const std::uint64_t* words) {
  failure_.raise_if_set();
  if (sends_by_kernels()) return post_to_kernel(command, width, words);
  // Counted before it can be seen.
  if (esker::may_send(command)) has_called_.store(true, std::memory_order_relaxed);
  if (is_request(command.operation)) asked_.fetch_add(1, std::memory_order_release);
  sent_.fetch_add(1, std::memory_order_release);
  while (buffers_.append({command.word(), width, 1, 1, words}, 0) == 0)
    waits_.wait(
        "a free node buffer", [this] { return pool_.had_one(); }, false);
}

void HostSender::post_to_kernel(Command command, std::uint32_t width, const std::uint64_t* words) {
  if (filled_ == 0) {
    const std::span<ProgramMessage> memory = executor_.program_memory();
    const std::size_t half = memory.size() / 2;
    half_ = memory.subspan(is_second_half_ ? half : 0, half);
    // Kernels of the user's may run on beside the second half; before the first is filled anew, all have
    // ended.
    if (!is_second_half_)
      waits_.wait(
          "the kernel that sends the program's messages", [this] { return !executor_.was_running(); }, false);
    is_second_half_ = !is_second_half_;
  }
  ProgramMessage& message = half_[filled_++];
  message.command = command.word();
  message.width = width;
  std::copy_n(words, width, message.words);
  if (filled_ == half_.size()) close();
}

void HostSender::close() {
  buffers_.close();
  if (filled_ == 0) return;
  executor_.send_for_program(half_.first(filled_), context_);  // where it throws they wait for the next call
  filled_ = 0;
}

}  // namespace esker
