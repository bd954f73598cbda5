// Batches of copies and kernels on several devices, whose time is known before they run.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/device/platform.hpp>
#include <esker/transfer/batch/schedule.hpp>
#include <esker/transfer/batch/topology.hpp>

namespace esker::transfer {

/// The host's memory as an end of a copy; devices are named by their place in the BatchQueue.
inline constexpr std::int32_t kHost = -1;

/// A copy, a kernel, or a copy to a device and then a kernel there that uses it.
struct CommandStream {
  std::int32_t to = kHost, from = kHost;  // a kernel alone runs on `to`
  void* destination = nullptr;
  const void* source = nullptr;  // pinned, for the speed that is predicted
  std::size_t bytes = 0;         // 0: no copy
  /// Puts the kernel on the stream, which is the device's. Called by the queue's thread.
  std::function<void(const Device& device, const Stream& stream)> kernel;
  /// What the kernel takes, given by the user; above 0 if there is a kernel.
  std::chrono::nanoseconds kernel_time{0};
};
using Batch = std::vector<CommandStream>;

/// How a batch went beside what was predicted.
struct BatchReport {
  Timeline predicted;
  std::vector<StreamTimes> measured;  // a stream, from the batch's begin; by the devices' clocks
  double makespan_s = 0;              // the last end of them
  double waited_s = 0;                // from the call until the batches before it had ended
  double prepared_s = 0;              // from then until its begin
  bool is_behind = false;             // its first copies were on the devices before that
  bool is_late = false;               // it ended after the deadline it was accepted for
  std::string cause;  // of that: the link, kernel or batch that took longer, or the stream that began late
};

/// A batch that is waiting, under way or done. Copies mean the same one.
class ESKER_API BatchHandle {
 public:
  struct State;
  explicit BatchHandle(std::shared_ptr<State> state) : state_{std::move(state)} {}

  bool is_done() const;
  /// Waits until it is. Throws what its kernels or copies threw.
  const BatchReport& synchronize() const&;
  BatchReport synchronize() &&;

 private:
  std::shared_ptr<State> state_;
};

/// What becomes of a batch with a deadline.
struct Admission {
  bool is_accepted = false;
  double predicted_s = 0;            // until its end, with the batches before it
  std::string reason;                // why it is refused; "" where it is accepted
  std::optional<BatchHandle> batch;  // where it is accepted
};

struct BatchOptions {
  /// Copies above this go in pieces of it, so that another one, which is no part of a batch, waits no longer
  /// than a piece where engines take turns. 0: whole, the fastest.
  std::size_t piece_bytes = 0;
};

/// Runs batches one at a time, in the order in which they come.
///
/// State    A thread of its own starts each command stream at the moment that align_ends() gives it, and
///          sleeps in between. It keeps the streams that its batches needed: two for each device, one a
///          direction, and those of kernels that run beside others. Once all streams of a batch have been
///          started, the next batch, if it waits and copies from and to pinned memory, has its first copies
///          put behind them: the devices begin them when the batch has ended. A batch that nothing is before
///          comes, on a GPU, behind a copy of 96 KiB of the queue's own, during which the host makes the
///          batch's calls. So what a batch takes does not depend on how fast the host is.
/// Contract Any thread may call. While a batch runs nothing else copies between these memories: what it
///          takes is predicted on that condition. Memory of a batch stays as it is until the batch is done.
///          Within a batch nothing has an order but a stream's copy before its kernel: what one stream
///          writes no other may read. On the CPU back end a copy is done at its call, so streams run one by
///          one. Destroyed, it first runs what it has.
/// Errors   Error{kTransfer}, before anything runs: a device that is not there, destinations that overlap, a
///          kernel without a time or a time without a kernel, memory that is missing; all that align_ends()
///          refuses. The message names the stream. Streams of 0 bytes and no kernel are done at once.
class ESKER_API BatchQueue {
 public:
  /// `topology` is machine_topology(devices), calibrated().
  ///
  /// Errors. Error{kTransfer}: it is of another machine (both are named), or has a link of unknown bandwidth
  ///         to a device, or there is no device.
  BatchQueue(std::vector<Device> devices, Topology topology, const BatchOptions& options = {});
  ~BatchQueue();
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  /// Runs it to its end.
  BatchReport run(const Batch& batch);
  BatchHandle run_async(const Batch& batch);
  /// Runs it if it will be done `deadline` from now, which includes what is waiting and under way. If it is
  /// late all the same, its report says why.
  Admission submit(const Batch& batch, std::chrono::nanoseconds deadline);
  /// When everything of it happens. Memory may be missing, and kernels: their times count.
  Timeline predict(const Batch& batch) const;

  const Topology& topology() const;
  const std::vector<Device>& devices() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// A batch as the model of any topology sees it: for predictions of machines that are modelled.
ESKER_API std::vector<StreamModel> model_of(const Topology& topology, const Batch& batch,
                                            std::size_t piece_bytes = 0);

}  // namespace esker::transfer
