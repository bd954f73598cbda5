// Publishing a PE's state to its kernels.
#include <esker/net/gpu/engine/pe_state_memory.hpp>
#include <utility>

namespace esker::gpu {

PeStateMemory::PeStateMemory(const OpenedDevice& device, std::uint32_t pe, std::uint32_t n_pes)
    : device_{device},
      host_{device.device().pinned<HostWords>(1, {"words shared with the device"})},
      totals_{device.device().memory<Totals>(1, {"counters"})},
      words_{device.device().memory<DeviceWords>(1, {"words that kernels share"})},
      for_kernels_{device.device().memory<PeState>(1, {"the PE's state"})},
      for_progress_kernels_{device.device().memory<PeState>(1, {"the PE's state for progress kernels"})} {
  state_.pe = pe;
  state_.n_pes = n_pes;
  state_.totals = totals_.data();
  state_.host = &host();
  state_.words = words_.data();
}

void PeStateMemory::publish() const {
  static constexpr const char* kWhat = "copying the PE's state";
  device_.use();
  for (const auto& [memory, stream] : {std::pair{&for_kernels_, device_.user_stream()},
                                       {&for_progress_kernels_, device_.progress_stream()}}) {
    device_.copy(memory->data(), &state_, sizeof state_, stream, kWhat);
    device_.wait_for(stream, kWhat);
  }
}

void PeStateMemory::set_heap_end(std::byte* base, std::uint64_t bytes) {
  static_assert(sizeof(DeviceWords::heap_end) == sizeof bytes);
  state_.heap = {base, bytes};
  heap_end_.store(bytes, std::memory_order_relaxed);
  device_.use();
  device_.copy(&state_.words->heap_end, &bytes, sizeof bytes, device_.user_stream(),
               "copying the heap's end");
  publish();  // waits for this copy too
}

void PeStateMemory::announce_abandoned() const {
  static constexpr std::uint32_t kAbandoned = 1;
  static_assert(sizeof(DeviceWords::abandoned) == sizeof kAbandoned);
  (void)ESKER_GPU(SetDevice)(device_.number());
  (void)ESKER_GPU(MemcpyAsync)(&state_.words->abandoned, &kAbandoned, sizeof kAbandoned,
                               ESKER_GPU(MemcpyDefault), device_.copy_stream());
}

}  // namespace esker::gpu
