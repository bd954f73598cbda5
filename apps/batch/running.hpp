// What both applications need to run on real devices: a queue, phases, kernels' times.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
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
  double seconds = 0;    // of its batches, one after the other
  double predicted = 0;  // the same
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
  void run(const esker::transfer::Batch& batch, Ran* ran) {
    for (const auto& part : parts_of(batch)) {
      const esker::transfer::BatchReport report = queue_.run(part);
      ran->seconds += report.makespan_s;
      ran->predicted += report.predicted.makespan_s;
      ++ran->batches;
    }
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
