// What the network's owner lets other threads see of the engine.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include <esker/net/device_engine.hpp>
#include <esker/net/gpu/totals.hpp>

namespace esker::gpu {

/// Of one moment.
struct Observation {
  std::uint64_t progress_started = 0;
  std::uint64_t progress_ended = 0;
  std::uint32_t frames = 0;     // on the device
  bool was_quiet = false;       // the last progress kernel has found nothing
  ProgressSnapshot snapshot{};  // of that one
};

/// Contract. The network's owner publishes, any thread reads: also while the owner stands still, and without
///           a call to the device.
class Diagnostics {
 public:
  void publish(const Observation& observation);

  DeviceTraffic traffic() const;
  /// For the hang report. `pe_of_link[link]` are the linked PEs.
  std::string describe(std::string_view kernel, std::span<const std::uint32_t> pe_of_link) const;

 private:
  mutable std::mutex mutex_;
  Observation seen_;  // guarded by mutex_
};

}  // namespace esker::gpu
