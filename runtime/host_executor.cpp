// Lanes on the host's cores, the heap in the host's memory.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include <esker/device/error.hpp>
#include <esker/queue/package_memory.hpp>
#include <esker/runtime/lane_executor.hpp>
#include <esker/runtime/peer_heaps.hpp>

namespace esker {
namespace {

class HostExecutor final : public LaneExecutor {
 public:
  HostExecutor(const Config& config, const JobShape& job) : config_{config}, job_{job} {}

  bool on_device() const override { return false; }
  const Device& device() const override { return device_; }
  std::string describe(std::uint32_t lane_threads) const override {
    return fmt::format("{} lane thread{}", lane_threads, lane_threads == 1 ? "" : "s");
  }
  std::string why_heaps_are_apart() const override { return why_apart_; }

  HeapMemory make_heap() override {
    const std::uint64_t automatic = std::min(total_host_bytes() / job_.pes_on_host, address_space_left()) / 2;
    return HeapMemory(config_.heap_bytes != 0 ? config_.heap_bytes : automatic, config_.huge_pages,
                      may_share());
  }
  bool heap_on_host() const override { return true; }
  BlockMemory* block_memory() override { return may_share() ? &heaps_ : nullptr; }
  std::uint64_t available_bytes(const HeapMemory& /*heap*/) const override {
    return available_host_bytes() / job_.pes_on_host;
  }
  void set_heap_end(std::uint64_t /*bytes*/) override {}
  void read(void* to, const std::byte* in_heap, std::uint64_t bytes) override {
    std::memcpy(to, in_heap, bytes);
  }
  void write(std::byte* in_heap, const void* from, std::uint64_t bytes) override {
    std::memcpy(in_heap, from, bytes);
  }

  PackageQueue make_queue(detail::KernelContext& context) override {
    queue_.emplace(config_.package_slots, config_.package_bytes);
    return context.queue = queue_->queue();
  }
  std::uint32_t aggregators() const override { return config_.aggregators; }
  const std::atomic<std::uint64_t>& published(const LaneCounters& on_host,
                                              const Aggregators& /*aggregators*/) const override {
    return on_host.published;
  }
  void attach(Network& network) override {
    if (may_share()) network.set_block_memory(heaps_);
  }
  void add_handler(std::uint32_t /*index*/, const HandlerTable::Entry& /*entry*/,
                   detail::KernelContext& /*context*/) override {}

  void link_peers(HeapMemory& heap, Collectives& collectives, detail::KernelContext& context) override {
    if (job_.destinations != job_.n_pes) return;
    why_apart_ = heaps_.open(job_, heap, collectives, may_share());
    context.peer_heaps = &heaps_;
  }
  void part_from_peers(Collectives& /*collectives*/) override {}
  bool abandon(std::chrono::seconds /*patience*/) override { return true; }

  void* stream() const override { return nullptr; }
  void reserve(const gpu::KernelFacts& /*kernel*/, std::uint32_t /*group_lanes*/,
               std::uint32_t /*scratch_bytes*/, detail::KernelContext& /*context*/) override {}
  void begin_launch(const char* kernel) override {
    misuse(fmt::format("launch of '{}' on a GPU: lanes run on the host", kernel));
  }
  void end_launch(const std::string& /*error*/) override {}
  std::span<ProgramMessage> program_memory() override { return {}; }
  void send_for_program(std::span<const ProgramMessage> /*messages*/,
                        const detail::KernelContext& /*context*/) override {}
  bool was_running() override { return false; }

  DeviceTraffic traffic() const override { return {}; }
  std::string was_doing() const override { return {}; }
  std::uint64_t was_occupied(const PackageQueue& queue) const override { return queue.was_occupied(); }

 private:
  /// Peers' heaps, where there are peers of this host and none of them is a projection.
  bool may_share() const {
    return config_.peer_memory != PeerMemory::kOff && job_.destinations == job_.n_pes &&
           job_.processes != nullptr && job_.pes_on_host > 1 && job_.process(job_.pe) != 0;
  }

  const Config& config_;
  const JobShape job_;
  const Device device_ = Device::open("cpu");
  PeerHeaps heaps_;
  std::string why_apart_;
  std::optional<PackageMemory> queue_;
};

}  // namespace

std::unique_ptr<LaneExecutor> make_host_executor(const Config& config, const JobShape& job) {
  return std::make_unique<HostExecutor>(config, job);
}

}  // namespace esker
