// What both applications need to run on real devices: a queue, phases, kernels' times.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <esker/device.hpp>
#include <esker/error.hpp>
#include <esker/transfer.hpp>

#include "models.hpp"

namespace batch_apps {

struct Machine {
  std::vector<esker::Device> devices;  // one may stand for several
  esker::transfer::Topology topology;  // calibrated
};

/// How a run went.
struct Ran {
  double seconds = 0;     // from the first batch to the end of the last one, by the host's clock
  double on_devices = 0;  // of the batches, by the devices' clocks
  double predicted = 0;   // the same
  std::uint64_t batches = 0;
  std::uint64_t late = 0, refused = 0;  // of those with a deadline
  std::string cause;                    // of the last that was late or refused
  bool is_right = true;
};

/// Runs phases by a method: the streams of a phase together, or one by one.
class Phases {
 public:
  Phases(Method method, const Machine& machine) : method_{method}, queue_{machine.devices, machine.topology} {
    if (method == Method::kBandwidth) {
      throw esker::Error(
          esker::Error::Kind::kConfiguration,
          "--method bandwidth: nothing on this machine divides the bandwidth of a link: it runs on "
          "--system nehalem and sandy-bridge, which are modelled");
    }
  }
  double predict(const esker::transfer::Batch& batch) const {
    double time = 0;
    for (const auto& part : parts_of(batch)) time += queue_.predict(part).makespan_s;
    return time;
  }
  /// Puts a phase into the queue.
  void add(const esker::transfer::Batch& batch) {
    for (const auto& part : parts_of(batch)) add(queue_.run_async(part));
  }
  void add(esker::transfer::BatchHandle handle) { handles_.push_back(std::move(handle)); }
  /// Waits for all of them, the first of which was put there at `began`.
  void finish(std::chrono::steady_clock::time_point began, Ran* ran) {
    for (const auto& handle : handles_) {
      const esker::transfer::BatchReport& report = handle.synchronize();
      ran->on_devices += report.makespan_s;
      ran->predicted += report.predicted.makespan_s;
      ++ran->batches;
      if (!report.is_late) continue;
      ++ran->late;
      ran->cause = report.cause;
    }
    ran->seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    handles_.clear();
  }
  esker::transfer::BatchQueue& queue() { return queue_; }

 private:
  std::vector<esker::transfer::Batch> parts_of(const esker::transfer::Batch& batch) const {
    if (method_ == Method::kBatch) return {batch};
    std::vector<esker::transfer::Batch> parts;
    for (const auto& stream : batch) parts.push_back({stream});
    return parts;
  }

  const Method method_;
  esker::transfer::BatchQueue queue_;
  std::vector<esker::transfer::BatchHandle> handles_;  // of what is in the queue
};

/// What `launch` takes on a device: the longest of some.
template <class Launch>
std::chrono::nanoseconds time_kernel(const esker::Device& device, const Launch& launch) {
  const esker::Stream stream = device.stream();
  const esker::Event begin = device.event(), end = device.event();
  std::chrono::nanoseconds longest{1};
  for (int i = 0; i < 6; ++i) {
    stream.record(begin);
    launch(device, stream);
    stream.record(end);
    end.synchronize();
    if (i > 0) longest = std::max(longest, end.elapsed_since(begin));
  }
  return longest;
}

}  // namespace batch_apps
