// Lanes on a GPU: which one a PE uses, where its heap stands, and whose inboxes it reaches.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include <esker/device/error.hpp>
#include <esker/device/gpu/occupancy.hpp>
#include <esker/runtime/lane_executor.hpp>

namespace esker {
namespace {

/// This PE among those of its host, by the launcher's word; else as if PEs were placed block by block.
std::uint32_t rank_on_host(const JobShape& job) {
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID", "PMI_LOCAL_RANK"}) {
    if (const char* text = std::getenv(name); text != nullptr) {
      return static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
    }
  }
  return job.pe % job.pes_on_host;
}

class DeviceExecutor final : public LaneExecutor {
 public:
  DeviceExecutor(const Config& config, const JobShape& job, std::unique_ptr<DeviceEngine> engine)
      : config_{config}, job_{job}, engine_{std::move(engine)} {}

  bool on_device() const override { return true; }
  const Device& device() const override { return engine_->device(); }
  std::string describe(std::uint32_t /*lane_threads*/) const override {
    return fmt::format("{} ({} by peer memory)", device().name(), engine_->links());
  }

  HeapMemory make_heap() override {
    return HeapMemory(engine_->heap_base(), engine_->heap_limit(),
                      [this](std::uint64_t offset, std::uint64_t bytes) { engine_->clear(offset, bytes); });
  }
  bool heap_on_host() const override { return config_.heap == HeapKind::kHost; }
  BlockMemory* block_memory() override { return heap_on_host() ? nullptr : engine_.get(); }
  std::uint64_t available_bytes(const HeapMemory& heap) const override { return heap.limit_bytes(); }
  void set_heap_end(std::uint64_t bytes) override { engine_->set_heap_end(bytes); }
  void read(void* to, const std::byte* in_heap, std::uint64_t bytes) override {
    engine_->read(offset_of(in_heap), to, bytes);
  }
  void write(std::byte* in_heap, const void* from, std::uint64_t bytes) override {
    engine_->write(offset_of(in_heap), from, bytes);
  }

  PackageQueue make_queue(detail::KernelContext& context) override {
    context.pe_state = engine_->pe_state();
    return context.queue = engine_->host_queue();
  }
  std::uint32_t aggregators() const override { return config_.device_aggregators; }
  const std::atomic<std::uint64_t>& published(const LaneCounters& /*on_host*/,
                                              const Aggregators& aggregators) const override {
    return aggregators.messages_counter();
  }
  void attach(Network& network) override { network.add_device(*engine_, !heap_on_host()); }
  void add_handler(std::uint32_t index, const HandlerTable::Entry& entry,
                   detail::KernelContext& context) override {
    if (index > HandlerTable::kMaxHandlers) return;
    engine_->add_handler(index, entry);
    context.bins = engine_->bins();
  }

  void link_peers(HeapMemory& heap, Collectives& collectives, detail::KernelContext& context) override;
  void part_from_peers(Collectives& collectives) override {
    engine_->close_peers();
    collectives.gather(Collective::kEnd, {});
    engine_->retract_offer();
  }
  bool abandon(std::chrono::seconds patience) override { return engine_->abandon(patience); }

  void* stream() const override { return engine_->stream(); }
  void reserve(const gpu::KernelFacts& kernel, std::uint32_t group_lanes, std::uint32_t scratch_bytes,
               detail::KernelContext& context) override {
    const std::string refusal = device().occupancy()->reserve(kernel, group_lanes, scratch_bytes);
    if (!refusal.empty()) throw Error(Error::Kind::kDevice, "reserve_for: " + refusal);
    context.is_reserved = true;
  }
  void begin_launch(const char* kernel) override { engine_->begin_launch(kernel); }
  void end_launch(const std::string& error) override { engine_->end_launch(error); }
  std::span<ProgramMessage> program_memory() override {
    if (heap_on_host()) return {};
    if (program_memory_.empty())
      program_memory_ = device().pinned<ProgramMessage>(kProgramMessages, {"messages of the program's own"});
    return {program_memory_.data(), program_memory_.size()};
  }
  void send_for_program(std::span<const ProgramMessage> messages,
                        const detail::KernelContext& context) override {
    begin_launch("messages of the program's own");
    end_launch(
        start_program_messages(context, messages.data(), messages.size(), stream(), *device().occupancy()));
  }
  bool was_running() override { return engine_->was_running(); }

  DeviceTraffic traffic() const override { return engine_->traffic(); }
  std::string was_doing() const override { return engine_->was_doing(); }
  /// The tail is out of the host's sight.
  std::uint64_t was_occupied(const PackageQueue& /*queue*/) const override { return 0; }

 private:
  std::uint64_t offset_of(const std::byte* in_heap) const {
    return static_cast<std::uint64_t>(in_heap - engine_->heap_base());
  }

  static constexpr std::size_t kProgramMessages = 2048;

  const Config& config_;
  const JobShape job_;
  const std::unique_ptr<DeviceEngine> engine_;
  PinnedArray<ProgramMessage> program_memory_;  // made with the first of them
};

void DeviceExecutor::link_peers(HeapMemory& /*heap*/, Collectives& collectives,
                                detail::KernelContext& context) {
  constexpr std::size_t kAGather = std::tuple_size_v<Collectives::Values>;
  const InboxOffer mine = engine_->offer();
  std::vector<InboxOffer> offers(job_.n_pes);
  for (std::size_t at = 0; at < InboxOffer::kWords; at += kAGather) {
    Collectives::Values part{};
    std::copy_n(mine.words.begin() + static_cast<std::ptrdiff_t>(at), kAGather, part.begin());
    const auto blocks = collectives.gather(Collective::kStart, part);
    for (std::uint32_t pe = 0; pe < job_.n_pes; ++pe) {
      std::copy_n(blocks[pe].values.begin(), kAGather,
                  offers[pe].words.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  // What one end cannot open, neither uses: a package that has no way back keeps its slot for ever.
  const std::uint64_t mine_opened = engine_->open_peers(offers, config_.peer_memory != PeerMemory::kOff);
  const auto blocks = collectives.gather(Collective::kStart, {mine_opened});
  std::vector<std::uint64_t> opened(job_.n_pes);
  for (std::uint32_t pe = 0; pe < job_.n_pes; ++pe) opened[pe] = blocks[pe].values[0];
  const std::uint32_t links = engine_->link(opened);
  if (config_.peer_memory == PeerMemory::kOn && links + 1 < job_.n_pes) {
    throw Error(Error::Kind::kDevice,
                fmt::format("peer_memory: of {} other PEs {} are linked; {}; use --peer-memory auto, which "
                            "reaches the rest through the network",
                            job_.n_pes - 1, links, engine_->why_not_linked()));
  }
  context.bins = engine_->bins();
  collectives.gather(Collective::kStart, {});  // no PE sends before all have linked
}

}  // namespace

std::unique_ptr<LaneExecutor> make_executor(const Config& config, const JobShape& job) {
  if (config.device == DeviceKind::kCpu) return make_host_executor(config, job);
  if (detail::count_gpus() == 0) {
    if (config.device != DeviceKind::kAuto)
      throw Error(Error::Kind::kDevice, "device: no GPU is there, or its driver is not; use --device cpu");
    if (config.heap == HeapKind::kDevice) {
      throw Error(Error::Kind::kConfiguration,
                  "heap: there is no GPU for a heap in device memory; use --heap host");
    }
    return make_host_executor(config, job);
  }
  if (config.pending_messages != 0) {
    throw Error(Error::Kind::kConfiguration,
                "pending_messages: lanes on a GPU do not bound what is pending; use --device cpu");
  }
  return std::make_unique<DeviceExecutor>(
      config, job,
      make_device_engine({job.pe, job.destinations, config.project_pes != 0, rank_on_host(job),
                          config.heap != HeapKind::kHost, config.direct_messages, config.heap_bytes,
                          job.pes_on_host, config.device_package_slots, config.package_bytes,
                          config.node_buffer_bytes}));
}

}  // namespace esker
