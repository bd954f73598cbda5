// One batch, run by its schedule on devices. For BatchQueue.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <esker/transfer/batch/batch.hpp>

namespace esker::transfer {

/// Streams and memory that batches use one after the other.
class BatchExecution {
 public:
  BatchExecution(const std::vector<Device>& devices, std::size_t piece_bytes)
      : devices_{devices}, piece_bytes_{piece_bytes}, events_(devices.size()), lead_in_(devices.size()) {}

  /// Waits for all that batches have put on streams.
  void synchronize() const;

 private:
  friend class BatchRun;
  /// What a stream carries. One direction only: after a change of direction the driver runs the first copies
  /// of a batch that goes both ways one after the other.
  enum Use : std::size_t {
    kIn,    // copies to the device, and kernels behind them
    kOut,   // copies from it
    kOther  // + a sequence: its other kernels
  };
  const Stream& stream_of(std::size_t use, std::size_t device);
  /// Where a lead-in copy starts or ends.
  std::byte* lead_in_at(std::int32_t place);
  std::size_t lead_in_bytes(std::size_t device) const;
  Event take_event(std::size_t device);
  void give_event(std::size_t device, Event event) { events_[device].push_back(std::move(event)); }

  const std::vector<Device>& devices_;
  const std::size_t piece_bytes_;
  std::map<std::pair<std::size_t, std::size_t>, Stream> streams_;  // by use and device
  std::vector<std::vector<Event>> events_;                         // by device, for batches to come
  PinnedArray<std::byte> stage_;
  std::vector<std::optional<DeviceArray<std::byte>>> lead_in_;  // by device
  std::optional<PinnedArray<std::byte>> lead_in_host_;
};

/// One batch, from its first copy on a stream to its times.
///
/// A device that has nothing to do begins a copy as soon as the host has made the call; then what a batch
/// takes depends on how fast the host makes the calls. So each begins behind something: the batch before it,
/// or a short copy for the purpose, the lead-in, during which the host makes the calls.
class BatchRun {
 public:
  /// Makes what it needs, and starts nothing. `batch` and `schedule` outlive it.
  BatchRun(BatchExecution& execution, const Batch& batch, const Timeline& schedule);

  /// All that has been started is done.
  ~BatchRun();
  BatchRun(const BatchRun&) = delete;
  BatchRun& operator=(const BatchRun&) = delete;

  /// Whether it begins with copies that may be given to the devices while what is before it runs: they read
  /// and write memory at their turn, and not at the call.
  bool may_start_behind() const;
  /// Puts the copies that begin at once behind all of `before`, which has been started. start() follows, once
  /// `before` has ended.
  void start_behind(const BatchRun& before);
  /// Starts each sequence when the schedule says, and returns when the last one has been.
  ///
  /// Errors. What a copy or a kernel throws, once all that has been started is done.
  void start();
  /// Waits for its end. Measured times go to the report.
  void finish(BatchReport* report) const;

  /// When it began: what it needs is there, and what was before it has ended.
  std::chrono::steady_clock::time_point begin() const { return begin_; }

 private:
  /// Where one leg, or one kernel, begins and ends. Its marks exist before the clock starts.
  struct Span {
    std::size_t device = 0;
    const Stream* stream = nullptr;
    std::vector<Event> marks;  // two; none: there is no such kernel
    bool is_started = false;
  };

  void prepare(Span& span, std::size_t use, std::size_t device);
  bool is_at_once(std::uint32_t sequence) const;
  void lead_in();
  void begin_span(Span& span);
  void end_span(const Span& span);
  void start_leg(std::uint32_t id);
  void start_kernels(std::uint32_t sequence);
  /// As much of the sequences that have begun as waits for nothing that is not yet on a stream.
  void start_what_can();

  BatchExecution& execution_;
  const Batch& batch_;
  const Timeline& schedule_;
  double first_s_ = 0;                      // when the schedule's first sequence begins
  std::vector<std::uint32_t> order_;        // sequences by their begins
  std::vector<Span> legs_, kernels_;        // by leg, by stream of the batch
  std::vector<std::vector<Event>> pieces_;  // of first halves: each in host memory
  std::vector<std::uint32_t> second_of_;    // a leg's second half
  std::vector<std::uint32_t> last_leg_;     // a stream's, whose end is that of its copy
  std::vector<std::size_t> stage_of_;       // a stream's place in memory for staged copies
  std::size_t staged_bytes_ = 0;
  std::vector<std::size_t> next_;                // a sequence's next leg
  std::vector<bool> is_started_, has_kernels_;   // sequences
  std::map<const Stream*, const Event*> ends_;   // the last mark of each stream
  std::set<const Stream*> behind_begin_;         // streams that carry nothing from before the begin
  const Event* begin_mark_ = nullptr;            // the first mark of all
  std::vector<const Event*> device_begins_;      // the first of each device
  std::vector<double> offsets_;                  // of it, from the begin
  const BatchRun* before_ = nullptr;             // during start_behind()
  std::chrono::steady_clock::time_point begin_;  // by the host's clock
};

}  // namespace esker::transfer
