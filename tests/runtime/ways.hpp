// What the runtime's tests run with: few PEs, and settings so small that everything is full most of the time.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <esker/config.hpp>

#include "../slow.hpp"

namespace esker::testing {

/// Whether this program is the one that tests the GPU: there lanes run on it.
#if defined(ESKER_TEST_CUDA) || defined(ESKER_TEST_HIP) || defined(ESKER_TEST_SIMULATED)
inline constexpr bool kOnGpu = true;
#else
inline constexpr bool kOnGpu = false;
#endif
/// Whether that GPU is threads of the host.
#if defined(ESKER_TEST_SIMULATED)
inline constexpr bool kSimulated = true;
#else
inline constexpr bool kSimulated = false;
#endif

/// Whether atomics on other GPUs' memory are one to these.
#if defined(ESKER_TEST_HIP)
inline constexpr bool kReachesPeersHeaps = false;
#else
inline constexpr bool kReachesPeersHeaps = kOnGpu;
#endif

/// Settings so small that queue, pools and buffers are full most of the time: every push-back runs.
inline Config tiny_config() {
  Config config;
  config.heap_bytes = 2 << 20;
  config.huge_pages = false;
  config.package_bytes = 1024;
  config.package_slots = 2;
  config.device_package_slots = 2;
  config.node_buffer_bytes = 1024;
  config.buffers_per_destination = 2;
  config.cpu_threads = 1;
  config.group_lanes = 32;
  config.wave_lanes = 8;
  config.hang_seconds = 30;  // a deadlock ends the test with a report
  config.hang_file = "unexpected-hang";
  config.startup = StartupPrint::kQuiet;
  return config;
}

/// One way to run a body.
struct Way {
  std::string name;
  std::uint32_t n_pes;
  Config config;

  friend void PrintTo(const Way& way, std::ostream* out) { *out << way.name; }
};

/// `change(config)` changes the tiny settings.
template <class Change>
Way way(std::string name, std::uint32_t n_pes, Change change) {
  Way result{std::to_string(n_pes) + (n_pes == 1 ? " PE, " : " PEs, ") + std::move(name), n_pes,
             tiny_config()};
  change(result.config);
  return result;
}

/// On a GPU: where the heap stands, whether peers' inboxes are reached or the host carries every message,
/// whether lanes reach peers' heaps too, and how few packages the host's queue holds. All PEs share the GPU,
/// as threads of one process.
inline std::vector<Way> gpu_ways() {
  const auto on_device = [](PeerMemory peers, std::uint32_t slots, std::uint32_t direct = 0) {
    return [=](Config& config) {
      config.heap = HeapKind::kDevice;
      config.peer_memory = peers;
      config.direct_messages = direct;
      config.device_package_slots = slots;
    };
  };
  const auto on_host = [](std::uint32_t slots) {
    return [=](Config& config) {
      config.heap = HeapKind::kHost;
      config.device_package_slots = slots;
    };
  };
  std::vector<Way> all{way("heap on the device", 1, on_device(PeerMemory::kAuto, 4)),
                       way("heap on the host", 1, on_host(2)),
                       way("packages to peers", 2, on_device(PeerMemory::kOn, 2)),
                       way("direct to peers, the first 3", 2, on_device(PeerMemory::kOn, 2, 3)),
                       way("no peer memory, 2 slots", 2, on_device(PeerMemory::kOff, 2))};
  if (kSimulated) return all;  // more threads than cores by far
  all.insert(all.end(), {way("heap on the host", 3, on_host(4)),
                         way("packages to peers", 3, on_device(PeerMemory::kOn, 4)),
                         way("no peer memory, 4 slots", 4, on_device(PeerMemory::kOff, 4)),
                         way("packages to peers", 4, on_device(PeerMemory::kAuto, 2)),
                         way("direct to peers", 4, on_device(PeerMemory::kAuto, 2, 16))});
  return all;
}

}  // namespace esker::testing
