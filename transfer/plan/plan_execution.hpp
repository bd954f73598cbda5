// The run of a plan: its steps on the streams of its devices, and the host's between them. Private to Plan.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/transfer/plan/plan_uses.hpp>

namespace esker::transfer::detail {

inline constexpr std::uint32_t kHostPlace = 0;

/// One thing that a run does, with its addresses.
struct PlanStep {
  struct Used {
    void* at;
    std::uint64_t bytes;
    bool is_written;
  };

  std::uint32_t place;     // of a copy: of the device whose stream has it
  std::vector<Used> used;  // of a copy: from, to
  // One of them, which outlives the execution, or neither: a copy.
  const DeviceFunction* device_function = nullptr;
  const HostFunction* host_function = nullptr;
  std::uint32_t from_place = 0, to_place = 0;  // of a copy

  bool is_copy() const { return device_function == nullptr && host_function == nullptr; }
  std::uint64_t bytes() const { return used[0].bytes; }  // of a copy
};

/// State    Devices have a stream each, the caller's or the execution's own. Steps are set, and then run any
///          number of times.
/// Contract A step does what it would do if all ran one after the other. One thread and one run at a time.
class PlanExecution {
 public:
  /// Error{kTransfer}: no device, more than an OperandGraph can have, or of several back ends.
  explicit PlanExecution(std::vector<Device> devices);

  const std::vector<Device>& devices() const { return devices_; }
  const Device& device_at(std::uint32_t place) const { return devices_[place - 1]; }
  std::uint32_t places() const { return static_cast<std::uint32_t>(devices_.size()) + 1; }
  const Stream& first_stream() const { return streams_[0]; }

  void set_steps(std::vector<PlanStep> steps);
  const std::vector<PlanStep>& steps() const { return steps_; }

  /// `first` is a stream of the first device.
  void run(const Stream& first, bool waits_for_copies);
  void replay(const Stream& first);
  void add_to(const Stream& first) { add_steps(0, static_cast<std::uint32_t>(steps_.size()), first); }
  void throw_error();

 private:
  /// Earlier steps at other places that one waits for, and an event for those that wait for it and cannot
  /// wait for all of its stream.
  struct Order {
    std::vector<std::uint32_t> waits;
    std::optional<Event> done;
  };
  /// Of a replay: steps of devices up to the next function of the host, or up to what a later one waits for;
  /// or one function of the host.
  struct Part {
    std::uint32_t begin, end;            // steps
    DeviceGraph graph;                   // empty: a function of the host
    std::optional<std::uint32_t> waits;  // of such a one: the last part that it waits for
    std::optional<Event> done;           // where one waits for it and parts of devices are between
  };

  void order_steps();
  void make_parts();
  void add_steps(std::uint32_t begin, std::uint32_t end, const Stream& first);
  /// `steps` puts work on streams and waits for it. When it has failed, nothing of it is under way.
  template <class Steps>
  void run_to_end(const Stream& first, const Steps& steps);
  const Stream& stream_at(std::uint32_t place, const Stream& first) const {
    return place <= 1 ? first : streams_[place - 1];
  }
  /// The other devices' streams go on behind this one, and it goes on behind them.
  void fork(const Stream& first) const;
  void join(const Stream& first) const;
  /// Waits for all streams, also where one has failed.
  void synchronize(const Stream& first) const;
  void put(std::uint32_t step, const Stream& first);
  void call_in_stream(std::uint32_t step) noexcept;

  std::vector<Device> devices_;
  std::vector<Stream> streams_;  // one a device; the first for runs that name none
  // By device: where a run begins on the first one's stream, and ends on another one's.
  std::vector<Event> marks_;
  std::vector<PlanStep> steps_;
  std::vector<std::vector<void*>> addresses_;  // of a kernel's operands, by step
  std::vector<Order> order_;
  std::vector<Part> parts_;  // none before the first replay

  std::mutex mutex_;
  std::exception_ptr error_;  // guarded by mutex_: of a function that a stream has called
};

}  // namespace esker::transfer::detail
