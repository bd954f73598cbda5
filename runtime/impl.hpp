// The parts of a Runtime put together. Private to runtime/.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>

#include <esker/aggregator/aggregator.hpp>
#include <esker/net/failure.hpp>
#include <esker/net/network.hpp>
#include <esker/queue/waiting.hpp>
#include <esker/runtime.hpp>
#include <esker/runtime/block_calls.hpp>
#include <esker/runtime/collectives.hpp>
#include <esker/runtime/current_call.hpp>
#include <esker/runtime/data_collectives.hpp>
#include <esker/runtime/handler_registry.hpp>
#include <esker/runtime/heap_allocator.hpp>
#include <esker/runtime/heap_memory.hpp>
#include <esker/runtime/host_sender.hpp>
#include <esker/runtime/job_shape.hpp>
#include <esker/runtime/lane_executor.hpp>
#include <esker/runtime/lane_workers.hpp>
#include <esker/runtime/launches.hpp>
#include <esker/runtime/medium.hpp>
#include <esker/runtime/network_owner.hpp>
#include <esker/runtime/producers.hpp>
#include <esker/runtime/supervision.hpp>
#include <esker/runtime/trace_file.hpp>
#include <esker/runtime/wait_loop.hpp>

namespace esker {

/// State    started -> ended. The members stand in the order in which they are made; the destructor says what
///          must go before the rest.
/// Contract The user's thread. What other threads call is in the parts.
class Runtime::Impl {
 public:
  Impl(const Config& config, Medium medium);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// Collective, once: the last barrier, or, in an exception, as much of it as peers take part in.
  void end(bool in_exception) noexcept;

  const Config& config() const { return config_; }
  const JobShape& job() const { return job_; }
  const std::string& transport_name() const { return transport_name_; }
  std::uint32_t host_threads() const { return lane_threads_; }
  std::uint64_t declared_memory_bytes() const { return declared_bytes_; }
  int exceptions_at_start() const { return exceptions_at_start_; }
  const detail::KernelContext& context() const { return context_; }

  LaneExecutor& executor() { return *executor_; }
  Collectives& collectives() { return collectives_; }
  HostSender& sender() { return sender_; }
  DataCollectives& data() { return data_; }
  SymmetricHeap& heap() { return heap_; }
  Launches& launches() { return launches_; }
  BlockCalls& blocks() { return blocks_; }
  /// Another PE's, where lanes and blocks reach it; else null.
  std::byte* reached_heap(std::uint32_t pe) const {
    BlockMemory* const memory = executor_->block_memory();
    return memory == nullptr ? nullptr : memory->reached_heap(pe);
  }
  /// Waits while the network has too much of that kind.
  void send_bytes(const detail::BytesCall& call) {
    if (network_->was_congested())
      waits_.wait(
          "the network to take messages with bytes", [this] { return !network_->was_congested(); }, false);
    producers_.count_program(1);
    blocks_.send_bytes(call, nullptr);
  }
  Mail& mail() { return network_->mail(); }
  CurrentCall& call() { return call_; }
  WaitLoop& waits() { return waits_; }
  std::uint16_t add_handler(HandlerTable::Entry entry) {
    return handlers_.add(std::move(entry), job_, collectives_, *executor_, context_);
  }

  /// A kernel of the user's own says what it takes, where lanes run on a GPU.
  void reserve(const gpu::KernelFacts& kernel, std::uint32_t group_lanes, std::uint32_t scratch_bytes) {
    executor_->reserve(kernel, group_lanes, scratch_bytes, context_);
  }

  Statistics statistics() const;
  StageStatistics stage_statistics() const {
    return read_stages(network_->shipping().stages(), trace_.tracer());
  }

 private:
  /// Fills what lanes are told, before there are any.
  PackageQueue make_context();
  std::unique_ptr<Network> make_network();
  std::unique_ptr<Aggregators> make_aggregators();
  /// Tells the network what sends and applies beside it.
  void connect();
  void start_together();
  /// For what goes wrong at the end, where no call is left that could throw it.
  void say(const char* when, const std::exception& error) const noexcept;

  const int exceptions_at_start_ = std::uncaught_exceptions();
  const Config config_;
  Failure failure_;
  Doorbell bell_;  // for the user's thread and lanes
  HandlerRegistry handlers_;
  NetworkOwner owner_;
  const JobShape job_;
  const std::uint32_t lane_threads_;
  const std::string transport_name_;
  TraceFile trace_;  // written at its end: after every thread's
  const std::unique_ptr<LaneExecutor> executor_;
  HeapMemory memory_;
  detail::KernelContext context_;
  const PackageQueue queue_;
  LaneCounters lanes_;
  std::unique_ptr<Network> network_;
  const std::unique_ptr<Aggregators> aggregators_;
  BlockCalls blocks_;
  CurrentCall call_;
  WaitLoop waits_;
  Producers producers_;
  HostSender sender_;
  Collectives collectives_;
  DataCollectives data_;
  HeapAllocator heap_;
  LaneWorkers workers_;
  Launches launches_;
  Supervision supervision_;
  std::uint64_t declared_bytes_ = 0;
  std::string name_before_;  // of the user's thread: another Runtime's
  bool ended_ = false;
};

}  // namespace esker
