// Where a PE's lanes run, and its heap stands: on the host or on a GPU. Chosen once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <esker/aggregator/aggregator.hpp>
#include <esker/config.hpp>
#include <esker/device/device.hpp>
#include <esker/net/device_engine.hpp>
#include <esker/net/handler_table.hpp>
#include <esker/net/network.hpp>
#include <esker/queue/package_queue.hpp>
#include <esker/runtime/collectives.hpp>
#include <esker/runtime/device_context.hpp>
#include <esker/runtime/heap_memory.hpp>
#include <esker/runtime/job_shape.hpp>
#include <esker/runtime/producers.hpp>
#include <esker/runtime/program_messages.hpp>

namespace esker {

/// State    made -> heap -> queue -> attached -> linked -> running -> parted -> abandoned. A job that fails
///          goes from any state to the last one.
/// Contract The user's thread calls, but for those that are marked.
/// Errors   Error{kDevice} and {kOutOfMemory} from any call.
class LaneExecutor {
 public:
  virtual ~LaneExecutor() = default;

  virtual bool on_device() const = 0;
  virtual const Device& device() const = 0;
  /// For the start-up line: what runs lanes.
  virtual std::string describe(std::uint32_t lane_threads) const = 0;

  /// Why some peers' heaps that should be within reach are not; "": all are.
  virtual std::string why_heaps_are_apart() const { return {}; }

  // --- The heap.

  virtual HeapMemory make_heap() = 0;
  virtual bool heap_on_host() const = 0;
  /// How blocks are copied where it is not, or peers' heaps are within reach; else null.
  virtual BlockMemory* block_memory() { return nullptr; }
  /// Bytes that an allocation may take of this PE's part of the memory.
  virtual std::uint64_t available_bytes(const HeapMemory& heap) const = 0;
  /// Messages may touch offsets below this from now on.
  virtual void set_heap_end(std::uint64_t bytes) = 0;
  /// Wait for this PE's kernels. Any memory of the device's will do.
  virtual void read(void* to, const std::byte* in_heap, std::uint64_t bytes) = 0;
  virtual void write(std::byte* in_heap, const void* from, std::uint64_t bytes) = 0;

  // --- The way of messages.

  /// What aggregators take from; lanes are told of it by the context, with whatever else they need.
  virtual PackageQueue make_queue(detail::KernelContext& context) = 0;
  virtual std::uint32_t aggregators() const = 0;
  /// Lanes' messages so far, as far as the host can know.
  virtual const std::atomic<std::uint64_t>& published(const LaneCounters& on_host,
                                                      const Aggregators& aggregators) const = 0;
  /// Tells the network what runs beside it. After its lanes.
  virtual void attach(Network& network) = 0;
  /// A handler is registered under this number.
  virtual void add_handler(std::uint32_t index, const HandlerTable::Entry& entry,
                           detail::KernelContext& context) = 0;

  // --- The job. Collective.

  /// Opens what PEs of one host share.
  virtual void link_peers(HeapMemory& heap, Collectives& collectives, detail::KernelContext& context) = 0;
  /// After the last barrier: closes it.
  virtual void part_from_peers(Collectives& collectives) = 0;
  /// When the network's owner and the aggregators have ended. False: a kernel still runs after `patience`, if
  /// that is not 0.
  virtual bool abandon(std::chrono::seconds patience) = 0;

  // --- Launches; of those only stream() where lanes run on the host.

  virtual void* stream() const = 0;
  /// Runtime::reserve_for(). Throws Error{kDevice} if no group of the kernel fits.
  virtual void reserve(const gpu::KernelFacts& kernel, std::uint32_t group_lanes, std::uint32_t scratch_bytes,
                       detail::KernelContext& context) = 0;
  virtual void begin_launch(const char* kernel) = 0;
  virtual void end_launch(const std::string& error) = 0;

  /// Where the heap is in a GPU's memory, lanes send what the program itself sends: memory for it, and the
  /// start of their kernel. Elsewhere there is none.
  virtual std::span<ProgramMessage> program_memory() = 0;
  virtual void send_for_program(std::span<const ProgramMessage> messages,
                                const detail::KernelContext& context) = 0;
  /// Kernels on stream() have not ended.
  virtual bool was_running() = 0;

  // --- For reports; any thread.

  /// What does not pass the host.
  virtual DeviceTraffic traffic() const = 0;
  virtual std::string was_doing() const = 0;
  /// Slots of the package queue that are taken, if the host can see that.
  virtual std::uint64_t was_occupied(const PackageQueue& queue) const = 0;
};

std::unique_ptr<LaneExecutor> make_host_executor(const Config& config, const JobShape& job);
/// On a GPU if the settings allow and there is one. Error{kDevice} or {kConfiguration} if what they ask for
/// is not there.
std::unique_ptr<LaneExecutor> make_executor(const Config& config, const JobShape& job);

}  // namespace esker
