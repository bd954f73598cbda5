// The queue of batches, and its thread.
#include <esker/transfer/batch/batch.hpp>

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include <esker/device/cpu/timers.hpp>
#include <esker/error.hpp>
#include <esker/transfer/batch/execution.hpp>
#include <esker/transfer/batch/machine.hpp>
#include <esker/transfer/copy/copies.hpp>

#include <fmt/format.h>

namespace esker::transfer {

namespace {

using Clock = std::chrono::steady_clock;

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

[[noreturn]] void refuse_batch(std::size_t stream, const std::string& why) {
  throw Error(Error::Kind::kTransfer, fmt::format("batch: stream {}: {}", stream, why));
}

/// What it takes to run, beside what it takes to be predicted.
void check_runnable(const Batch& batch) {
  std::vector<Copy> copies;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const CommandStream& stream = batch[i];
    copies.push_back({stream.destination, stream.source, stream.bytes});
    if (stream.kernel != nullptr && stream.kernel_time.count() <= 0)
      refuse_batch(i, "a kernel without a kernel_time: nothing could be predicted");
    if (stream.kernel == nullptr && stream.kernel_time.count() != 0)
      refuse_batch(i, fmt::format("a kernel_time of {} ns without a kernel", stream.kernel_time.count()));
  }
  try {
    check_copies(copies);
  } catch (const Error& error) {
    throw Error(Error::Kind::kTransfer,
                fmt::format("batch: its copies cannot run at the same time (copy i is stream i's): {}",
                            error.what()));
  }
}

/// What took most beside what was predicted: what came before, a late begin, a kernel or a copy.
std::string cause_of(const Topology& topology, const Batch& batch, const BatchReport& report,
                     double waited_more) {
  double most = 0;
  std::string cause = "nothing of it took longer than predicted";
  if (waited_more > most) {
    most = waited_more;
    cause = fmt::format("batches before it took {:.3f} ms longer than predicted", waited_more * 1e3);
  }
  for (const Sequence& sequence : report.predicted.sequences) {
    const bool has_legs = !sequence.legs.empty();
    // A second half begins when the first one lets it.
    if (has_legs && report.predicted.legs[sequence.legs[0]].source != Leg::kNone) continue;
    const std::uint32_t first =
        has_legs ? report.predicted.legs[sequence.legs[0]].stream : sequence.kernels[0];
    const StreamTimes& was = report.measured[first];
    const double late =
        report.prepared_s + (has_legs ? was.copy_begin_s : was.kernel_begin_s) - sequence.begin_s;
    if (late <= most) continue;
    most = late;
    cause = fmt::format("stream {} began {:.3f} ms late, {:.3f} ms of which it took to prepare the batch",
                        first, late * 1e3, report.prepared_s * 1e3);
  }
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const StreamTimes &was = report.measured[i], &was_to_be = report.predicted.streams[i];
    const double kernel =
        (was.kernel_end_s - was.kernel_begin_s) - (was_to_be.kernel_end_s - was_to_be.kernel_begin_s);
    if (kernel > most) {
      most = kernel;
      cause = fmt::format("the kernel of stream {} took {:.3f} ms, not {:.3f}", i,
                          (was.kernel_end_s - was.kernel_begin_s) * 1e3,
                          (was_to_be.kernel_end_s - was_to_be.kernel_begin_s) * 1e3);
    }
    const double copied = was.copy_end_s - was.copy_begin_s,
                 to_be_copied = was_to_be.copy_end_s - was_to_be.copy_begin_s;
    if (copied - to_be_copied <= most) continue;
    most = copied - to_be_copied;
    const Leg* slow = nullptr;
    for (const Leg& leg : report.predicted.legs) {
      if (leg.stream == i) slow = &leg;
    }
    if (slow == nullptr) continue;
    const std::uint32_t link = slow->bottleneck != Leg::kNone ? slow->bottleneck : slow->route.back();
    const auto bytes = static_cast<double>(batch[i].bytes);
    cause = fmt::format(
        "the link {} gave stream {} {:.3f} GB/s, not {:.3f}: its {} bytes took {:.3f} ms, not {:.3f}",
        topology.link_name(link), i, bytes / copied / 1e9, bytes / to_be_copied / 1e9, batch[i].bytes,
        copied * 1e3, to_be_copied * 1e3);
  }
  return cause;
}

}  // namespace

std::vector<StreamModel> model_of(const Topology& topology, const Batch& batch, std::size_t piece_bytes) {
  std::vector<StreamModel> streams;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const CommandStream& command = batch[i];
    const auto node = [&](std::int32_t place) {
      if (place == kHost) return topology.host();
      if (place < 0 || static_cast<std::size_t>(place) >= topology.devices().size())
        refuse_batch(i, fmt::format("device {} is not there: '{}' has {}", place, topology.name(),
                                    topology.devices().size()));
      return topology.device(static_cast<std::uint32_t>(place));
    };
    StreamModel stream{node(command.from), node(command.to), static_cast<double>(command.bytes),
                       seconds(command.kernel_time)};
    if (piece_bytes != 0 && command.bytes != 0)
      stream.pieces = std::ceil(stream.bytes / static_cast<double>(piece_bytes));
    streams.push_back(stream);
  }
  return streams;
}

struct BatchHandle::State {
  Batch batch;
  BatchReport report;
  Clock::time_point called = Clock::now();
  double predicted_wait_s = 0;
  std::optional<Clock::time_point> deadline;
  std::promise<void> promise;
  std::shared_future<void> done = promise.get_future().share();
};

bool BatchHandle::is_done() const {
  return state_->done.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

const BatchReport& BatchHandle::synchronize() const& {
  state_->done.get();
  return state_->report;
}
BatchReport BatchHandle::synchronize() && { return synchronize(); }

class BatchQueue::Impl {
 public:
  Impl(std::vector<Device> all, Topology graph, const BatchOptions& options)
      : devices{std::move(all)}, topology{std::move(graph)}, options_{options} {
    if (devices.empty()) throw Error(Error::Kind::kTransfer, "BatchQueue: there is no device");
    const std::string here = machine_name(devices);
    if (topology.name() != here) {
      throw Error(Error::Kind::kTransfer,
                  fmt::format("BatchQueue: the topology is of '{}', and this machine is '{}': predict with "
                              "align_ends(), or measure this machine's links",
                              topology.name(), here));
    }
    const Topology& t = topology;
    if (t.devices().size() != devices.size())
      throw Error(Error::Kind::kTransfer,
                  fmt::format("BatchQueue: the topology of '{}' has {} devices, not {}", here,
                              t.devices().size(), devices.size()));
    for (std::uint32_t link = 0; link < t.links().size(); ++link) {
      if (t.is_unknown(link))
        throw Error(Error::Kind::kTransfer,
                    fmt::format("BatchQueue: nobody knows the bandwidth of {} on '{}': measure it "
                                "(esker-topology --measure, measure_links())",
                                t.link_name(link), here));
    }
    // A topology that was read from a file says which devices reach each other, and lets none.
    for (std::size_t from = 0; from < devices.size(); ++from) {
      for (std::size_t to = 0; to < devices.size(); ++to) {
        if (from == to || t.is_staged(t.devices()[from], t.devices()[to])) continue;
        if (devices[from].reach(devices[to])) continue;
        throw Error(
            Error::Kind::kTransfer,
            fmt::format("BatchQueue: by the topology of '{}' {} copies to {} directly, and its device "
                        "does not reach the other's memory",
                        here, t.nodes()[t.devices()[from]].name, t.nodes()[t.devices()[to]].name));
      }
    }
    thread_ = std::thread([this] { work(); });
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      is_stopping_ = true;
    }
    news_.notify_all();
    thread_.join();
  }

  Timeline predict(const Batch& batch) const {
    return align_ends(topology, model_of(topology, batch, options_.piece_bytes));
  }
  /// Checked, and with a prediction; not yet in the queue.
  std::shared_ptr<BatchHandle::State> prepare(const Batch& batch) const {
    auto state = std::make_shared<BatchHandle::State>();
    state->report.predicted = predict(batch);
    check_runnable(batch);
    state->batch = batch;
    return state;
  }
  void add(const std::shared_ptr<BatchHandle::State>& state) {
    const std::lock_guard lock(mutex_);
    add_locked(state);
  }
  Admission submit(const Batch& batch, std::chrono::nanoseconds deadline) {
    const auto state = prepare(batch);
    Admission admission;
    const std::lock_guard lock(mutex_);
    const double before = time_of_queue();
    const double alone = state->report.predicted.makespan_s;
    admission.predicted_s = before + alone;
    if (admission.predicted_s > seconds(deadline)) {
      const std::uint32_t link = state->report.predicted.bottleneck;
      admission.reason = fmt::format(
          "it would take {:.3f} ms, {:.3f} of them behind batches before it, and its deadline is {:.3f} ms "
          "from now{}",
          admission.predicted_s * 1e3, before * 1e3, seconds(deadline) * 1e3,
          link == Leg::kNone
              ? ""
              : fmt::format("; {} is in use for {:.0f} % of its own {:.3f} ms", topology.link_name(link),
                            100 * state->report.predicted.utilisation[link], alone * 1e3));
      return admission;
    }
    admission.is_accepted = true;
    if (deadline < Clock::time_point::max() - state->called) state->deadline = state->called + deadline;
    add_locked(state);
    admission.batch.emplace(state);
    return admission;
  }

  const std::vector<Device> devices;
  const Topology topology;

 private:
  /// The first batches of the queue, on the devices.
  struct Started {
    std::unique_ptr<BatchRun> run;
    std::exception_ptr error;  // of its start
  };

  double time_of_queue() const {
    double time = 0;
    for (const auto& state : queue_) time += state->report.predicted.makespan_s;
    if (is_running_)
      time -= std::min(queue_.front()->report.predicted.makespan_s, seconds(Clock::now() - running_since_));
    return time;
  }
  void add_locked(const std::shared_ptr<BatchHandle::State>& state) {
    state->predicted_wait_s = time_of_queue();
    queue_.push_back(state);
    news_.notify_all();
  }
  void work() {
    use_fine_timers();
    BatchExecution execution(devices, options_.piece_bytes);
    Started next;
    std::unique_lock lock(mutex_);
    for (;;) {
      news_.wait(lock, [&] { return is_stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const std::shared_ptr<BatchHandle::State> state = queue_.front();
      is_running_ = true;
      running_since_ = Clock::now();
      lock.unlock();
      const std::exception_ptr error = run_one(execution, *state, &next);
      lock.lock();
      queue_.pop_front();
      is_running_ = false;
      lock.unlock();
      state->batch.clear();  // what its kernels hold
      if (error != nullptr) {
        state->promise.set_exception(error);
      } else {
        state->promise.set_value();
      }
      lock.lock();
    }
  }
  /// Runs the first batch of the queue, which may have been started, and starts the next one behind it.
  std::exception_ptr run_one(BatchExecution& execution, BatchHandle::State& state, Started* next) {
    BatchReport& report = state.report;
    report.waited_s = seconds(running_since_ - state.called);
    Started started = std::exchange(*next, {});
    try {
      if (started.error != nullptr) {
        execution.synchronize();
        std::rethrow_exception(started.error);
      }
      report.is_behind = started.run != nullptr;
      if (!report.is_behind)
        started.run = std::make_unique<BatchRun>(execution, state.batch, report.predicted);
      started.run->start();
      *next = start_next(execution, *started.run);
      started.run->finish(&report);
      const Clock::time_point begin = started.run->begin();
      report.prepared_s = seconds(begin - running_since_);
      report.is_late = state.deadline.has_value() && seconds(begin - *state.deadline) + report.makespan_s > 0;
      if (report.is_late)
        report.cause = cause_of(topology, state.batch, report, report.waited_s - state.predicted_wait_s);
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }
  /// The second batch of the queue, if there is one, and it may be.
  Started start_next(BatchExecution& execution, const BatchRun& run) {
    std::shared_ptr<BatchHandle::State> state;
    {
      const std::lock_guard lock(mutex_);
      if (queue_.size() < 2) return {};
      state = queue_[1];
    }
    Started next;
    try {
      auto second = std::make_unique<BatchRun>(execution, state->batch, state->report.predicted);
      if (!second->may_start_behind()) return {};
      second->start_behind(run);
      next.run = std::move(second);
    } catch (...) {
      next.error = std::current_exception();
    }
    return next;
  }

  const BatchOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::shared_ptr<BatchHandle::State>> queue_;  // the first one runs, if one does
  bool is_running_ = false;
  Clock::time_point running_since_;  // written by the thread, under the mutex
  bool is_stopping_ = false;
  std::thread thread_;
};

BatchQueue::BatchQueue(std::vector<Device> devices, Topology topology, const BatchOptions& options)
    : impl_{std::make_unique<Impl>(std::move(devices), std::move(topology), options)} {}
BatchQueue::~BatchQueue() = default;

BatchReport BatchQueue::run(const Batch& batch) { return run_async(batch).synchronize(); }
BatchHandle BatchQueue::run_async(const Batch& batch) {
  const auto state = impl_->prepare(batch);
  impl_->add(state);
  return BatchHandle(state);
}
Admission BatchQueue::submit(const Batch& batch, std::chrono::nanoseconds deadline) {
  return impl_->submit(batch, deadline);
}
Timeline BatchQueue::predict(const Batch& batch) const { return impl_->predict(batch); }
const Topology& BatchQueue::topology() const { return impl_->topology; }
const std::vector<Device>& BatchQueue::devices() const { return impl_->devices; }

}  // namespace esker::transfer
