// Which GPU a PE uses, where its heap stands, and whose inboxes it reaches.
#include <cstdlib>

#include <esker/build_info.hpp>
#include <esker/runtime/impl.hpp>

namespace esker {
namespace {

/// This PE among those of its host, by the launcher's word; else as if PEs were placed block by block.
std::uint32_t rank_on_host(std::uint32_t pe, std::uint32_t pes_on_host) {
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID", "PMI_LOCAL_RANK"}) {
    if (const char* text = std::getenv(name); text != nullptr) {
      return static_cast<std::uint32_t>(std::strtoul(text, nullptr, 10));
    }
  }
  return pe % pes_on_host;
}

}  // namespace

std::unique_ptr<DeviceEngine> Runtime::Impl::open_device() {
  pes_on_host_ = owner_.transport().pes_on_host();
  const bool wanted = config_.device == DeviceKind::kCuda || config_.device == DeviceKind::kHip;
  if (config_.device == DeviceKind::kCpu) return nullptr;
  if (count_devices() == 0) {
    if (wanted)
      throw Error(Error::Kind::kDevice, "device: no GPU is there, or its driver is not; use --device cpu");
    if (config_.heap == HeapKind::kDevice) {
      throw Error(Error::Kind::kConfiguration,
                  "heap: there is no GPU for a heap in device memory; use --heap host");
    }
    return nullptr;
  }
  if (config_.pending_messages != 0) {
    throw Error(Error::Kind::kConfiguration,
                "pending_messages: lanes on a GPU do not bound what is pending; use --device cpu");
  }
  return make_device_engine({pe_, destinations(), config_.project_pes != 0, rank_on_host(pe_, pes_on_host_),
                             config_.heap != HeapKind::kHost, config_.direct_messages, config_.heap_bytes,
                             pes_on_host_, config_.device_package_slots, config_.package_bytes,
                             config_.node_buffer_bytes});
}

HeapMemory Runtime::Impl::make_heap() {
  if (device_) {
    return HeapMemory(device_->heap_base(), device_->heap_limit(),
                      [this](std::uint64_t offset, std::uint64_t bytes) { device_->clear(offset, bytes); });
  }
  const std::uint64_t automatic = std::min(total_host_bytes() / pes_on_host_, address_space_left()) / 2;
  return HeapMemory(config_.heap_bytes != 0 ? config_.heap_bytes : automatic, config_.huge_pages);
}

void Runtime::Impl::link_peers() {
  const InboxOffer mine = device_->offer();
  std::vector<InboxOffer> offers(n_pes_);
  for (std::size_t at = 0; at < InboxOffer::kWords; at += 6) {
    std::array<std::uint64_t, 6> part{};
    std::copy_n(mine.words.begin() + static_cast<std::ptrdiff_t>(at), 6, part.begin());
    const auto blocks = gather(Collective::kStart, part);
    for (std::uint32_t pe = 0; pe < n_pes_; ++pe) {
      std::copy_n(blocks[pe].values.begin(), 6, offers[pe].words.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  // What one end cannot open, neither uses: a package that has no way back keeps its slot for ever.
  const std::uint64_t mine_opened = device_->open_peers(offers, config_.peer_memory != PeerMemory::kOff);
  const auto blocks = gather(Collective::kStart, {mine_opened});
  std::vector<std::uint64_t> opened(n_pes_);
  for (std::uint32_t pe = 0; pe < n_pes_; ++pe) opened[pe] = blocks[pe].values[0];
  const std::uint32_t links = device_->link(opened);
  if (config_.peer_memory == PeerMemory::kOn && links + 1 < n_pes_) {
    throw Error(Error::Kind::kDevice,
                fmt::format("peer_memory: of {} other PEs {} are linked; {}; use --peer-memory auto, which "
                            "reaches the rest through the network",
                            n_pes_ - 1, links, device_->why_not_linked()));
  }
  context_.bins = device_->bins();
  gather(Collective::kStart, {});  // nobody sends before everybody has linked
}

void Runtime::Impl::part_from_peers() {
  device_->close_peers();
  gather(Collective::kEnd, {});
  device_->retract_offer();
}

}  // namespace esker
