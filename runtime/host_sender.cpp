// Messages of the program's.
#include <esker/runtime/host_sender.hpp>

#include <esker/runtime/lane_executor.hpp>
#include <esker/runtime/peer_heaps.hpp>

namespace esker {

HostSender::HostSender(const ApplierSettings& settings, LaneExecutor& executor,
                       const detail::KernelContext& context, Network& network, WaitLoop& waits,
                       Producers& producers, const Failure& failure)
    : executor_{executor},
      context_{context},
      waits_{waits},
      producers_{producers},
      failure_{failure},
      pool_{settings.buffer_bytes, settings.buffers},
      buffers_{settings.pe, settings.n_pes, pool_, OnExhausted::kPushBack, network, settings.tracer} {}

bool HostSender::sends_by_kernels() const { return executor_.on_device() && !executor_.heap_on_host(); }

void HostSender::post(Command command, std::uint32_t width, std::uint32_t count, const std::uint64_t* rows) {
  failure_.raise_if_set();
  if (sends_by_kernels()) {
    for (std::uint32_t i = 0; i < count; ++i) post_to_kernel(command, width, count, rows + i);
    return;
  }
  if (context_.peer_heaps != nullptr && command.operation == Operation::kGet && command.handler == 0) {
    gets_.assign(rows, rows + std::size_t{width} * count);
    const std::uint32_t left = context_.peer_heaps->serve_gets(command, gets_.data(), count, count);
    if (left > 0) append({command.word(), width, left, count, gets_.data()});
    return;
  }
  append({command.word(), width, count, count, rows});
}

void HostSender::append(const PackageView& messages) {
  const Command command = Command::from_word(messages.command);
  // Counted before it can be seen.
  if (esker::may_send(command)) has_called_.store(true, std::memory_order_relaxed);
  if (is_request(command.operation)) asked_.fetch_add(messages.count, std::memory_order_release);
  sent_.fetch_add(messages.count, std::memory_order_release);
  producers_.count_program(messages.count);
  for (std::uint32_t taken = 0; (taken = buffers_.append(messages, taken)) < messages.count;)
    waits_.wait(
        "a free node buffer", [this] { return pool_.had_one(); }, false);
}

void HostSender::post_to_kernel(Command command, std::uint32_t width, std::uint32_t stride,
                                const std::uint64_t* words) {
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
  for (std::uint32_t r = 0; r < width; ++r) message.words[r] = words[std::size_t{r} * stride];
  if (filled_ == half_.size()) close();
}

void HostSender::close() {
  buffers_.close();
  if (filled_ == 0) return;
  executor_.send_for_program(half_.first(filled_), context_);  // where it throws they wait for the next call
  filled_ = 0;
}

}  // namespace esker
