// A GPU of threads: streams and events.
#include <esker/device/simulated/api.hpp>
#include <esker/device/simulated/engines.hpp>
#include <esker/device/simulated/lanes.hpp>
#include <esker/device/simulated/parts.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

namespace esker::simulated {

class Queue;

/// What streams were given while they were captured: in one order, which has all their waits for each other.
class Recording {
 public:
  struct Task {
    std::uint32_t groups, held;
    std::function<void(std::uint32_t)> group;
  };
  std::vector<Task> tasks;
  std::vector<Queue*> joined;  // beside the first one
  bool has_ended = false;
};

/// A stream: threads that run its kernels' groups, kernel after kernel. As on a GPU, as many groups run side
/// by side as a launch has and the processors hold.
class Queue {
 public:
  explicit Queue(int device) : device_{device} {
    for (int i = 0; i < kProcessors; ++i) start_thread();
    const std::lock_guard lock(all_mutex);
    all.insert(this);
  }
  ~Queue() {
    {
      const std::lock_guard lock(all_mutex);
      all.erase(this);
    }
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    news_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  /// Of the groups so many are `held` at a time.
  void add(std::uint32_t groups, std::uint32_t held, std::function<void(std::uint32_t)> group) {
    {
      const std::lock_guard lock(mutex_);
      if (recording_ != nullptr) {
        ++captured_;
        return recording_->tasks.push_back({groups, held, std::move(group)});
      }
      while (threads_.size() < std::min(groups, held)) start_thread();
      tasks_.push_back({groups, 0, 0, std::move(group)});
      ++added_;
    }
    news_.notify_all();
  }
  /// What it is captured into; null: it is not.
  std::shared_ptr<Recording> recording() {
    const std::lock_guard lock(mutex_);
    return recording_;
  }
  bool is_captured() { return recording() != nullptr; }
  /// Keeps what is added from now on in `recording`.
  void begin_capture(std::shared_ptr<Recording> recording) {
    const std::lock_guard lock(mutex_);
    recording_ = std::move(recording);
    captured_ = awaited_ = 0;
  }
  /// False: of what it was given while it was captured, nobody has waited for the last.
  bool end_capture() {
    const std::lock_guard lock(mutex_);
    recording_ = nullptr;
    return awaited_ == captured_;
  }
  /// Tasks since begin_capture(); a captured stream waits for so many of them.
  std::uint64_t captured() {
    const std::lock_guard lock(mutex_);
    return captured_;
  }
  void await_captured(std::uint64_t tasks) {
    const std::lock_guard lock(mutex_);
    awaited_ = std::max(awaited_, tasks);
  }
  bool is_empty() {
    const std::lock_guard lock(mutex_);
    return tasks_.empty();
  }
  /// For what has been added so far.
  void wait() {
    std::unique_lock lock(mutex_);
    news_.wait(lock, [&, last = added_] { return added_ - tasks_.size() >= last; });
  }
  /// For the task that runs, of its queue: a graph's tasks may run in another one than was captured.
  static Queue& running() { return *running_; }
  /// For the task that runs: when the one before it ended.
  Moment before() const { return last_ended_; }
  /// For the task that runs: it has ended then, not when its thread comes to say so.
  void end_at(Moment moment) { ends_at_ = moment; }
  static void wait_for_all(int device) {
    const std::lock_guard lock(all_mutex);
    for (Queue* const queue : all) {
      if (queue->device_ == device) queue->wait();
    }
  }

 private:
  struct Task {
    std::uint32_t groups, next, ended;
    std::function<void(std::uint32_t)> group;
  };
  void start_thread() {
    threads_.emplace_back([this] { work(); });
  }
  void work() {
    running_ = this;
    std::unique_lock lock(mutex_);
    for (;;) {
      news_.wait(lock, [&] {
        return (!tasks_.empty() && tasks_.front().next < tasks_.front().groups) ||
               (stopping_ && tasks_.empty());
      });
      if (tasks_.empty()) return;
      Task& task = tasks_.front();  // a deque's elements stay where they are
      const std::uint32_t group = task.next++;
      lock.unlock();
      task.group(group);
      lock.lock();
      if (++task.ended == task.groups) {
        last_ended_ = ends_at_ != Moment{} ? ends_at_ : std::chrono::steady_clock::now();
        ends_at_ = {};
        tasks_.pop_front();
        news_.notify_all();
      }
    }
  }

  static std::mutex all_mutex;
  static std::set<Queue*> all;
  static thread_local Queue* running_;  // whose thread this is

  const int device_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<Task> tasks_;
  std::uint64_t added_ = 0;
  std::shared_ptr<Recording> recording_;  // null: it is not captured
  std::uint64_t captured_ = 0, awaited_ = 0;
  bool stopping_ = false;
  Moment last_ended_{};  // the last task; written under mutex_, read by the task that runs
  Moment ends_at_{};     // set by the task that runs, for itself
  std::vector<std::thread> threads_;
};
std::mutex Queue::all_mutex;
std::set<Queue*> Queue::all;
thread_local Queue* Queue::running_ = nullptr;

namespace {
Queue& queue_of(Stream stream) {
  static Queue unnamed(0);
  return stream == nullptr ? unnamed : *stream;
}
}  // namespace

/// A place in a stream, marked by a task of its own; or in what a captured stream was given. Streams may come
/// to mark it, or to wait for it, when its event has been destroyed.
class Mark : public std::enable_shared_from_this<Mark> {
 public:
  struct Captured {
    std::shared_ptr<Recording> recording;  // null: it is no such place
    Queue* queue = nullptr;
    std::uint64_t tasks = 0;
  };
  void expect() {
    const std::lock_guard lock(mutex_);
    captured_ = {};
    ++recorded_;
  }
  void capture(Captured captured) {
    const std::lock_guard lock(mutex_);
    captured_ = std::move(captured);
  }
  Captured captured() {
    const std::lock_guard lock(mutex_);
    return captured_;
  }
  void reach(Moment at) {
    const std::lock_guard lock(mutex_);
    ++reached_;
    at_ = at;
    news_.notify_all();
  }
  bool is_reached() {
    const std::lock_guard lock(mutex_);
    return reached_ == recorded_;
  }
  /// What has been recorded so far.
  std::uint64_t recorded() {
    const std::lock_guard lock(mutex_);
    return recorded_;
  }
  void wait(std::uint64_t until) {
    std::unique_lock lock(mutex_);
    news_.wait(lock, [&] { return reached_ >= until; });
  }
  std::chrono::steady_clock::time_point at() {
    const std::lock_guard lock(mutex_);
    return at_;
  }

  std::shared_ptr<Mark> event;  // until the event is destroyed

 private:
  std::mutex mutex_;
  std::condition_variable news_;
  std::uint64_t recorded_ = 0, reached_ = 0;
  Captured captured_;
  std::chrono::steady_clock::time_point at_;
};

ApiError DeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return Success;
}
ApiError StreamCreateWithFlags(Stream* stream, unsigned) {
  *stream = new Queue(current_device());
  return Success;
}
ApiError StreamCreateWithPriority(Stream* stream, unsigned flags, int) {
  return StreamCreateWithFlags(stream, flags);
}
ApiError StreamDestroy(Stream stream) {
  delete stream;
  return Success;
}
ApiError StreamQuery(Stream stream) { return queue_of(stream).is_empty() ? Success : ErrorNotReady; }
ApiError StreamSynchronize(Stream stream) {
  if (queue_of(stream).is_captured()) return ErrorInvalidValue;
  queue_of(stream).wait();
  return Success;
}
ApiError MemcpyAsync(void* to, const void* from, std::size_t bytes, MemcpyKind, Stream stream) {
  // As a real one does: a copy ends in the memory in which it begins.
  for (const void* const at : {static_cast<const void*>(to), from}) {
    const MemoryRange range = range_of(at);
    if (bytes > 0 && range.holds(at) && !range.holds(static_cast<const std::byte*>(at) + bytes - 1))
      return ErrorInvalidValue;
  }
  queue_of(stream).add(1, 1, [=, added = std::chrono::steady_clock::now()](std::uint32_t) {
    const int source = device_of(from), destination = device_of(to);
    if (!copies_take_time() || source == destination) return copy(to, from, bytes);
    Queue& queue = Queue::running();
    queue.end_at(take_copy(source, destination, bytes, std::max(added, queue.before()),
                           [&] { copy(to, from, bytes); }));
  });
  return Success;
}
ApiError MemsetAsync(void* at, int value, std::size_t bytes, Stream stream) {
  queue_of(stream).add(1, 1, [=](std::uint32_t) { fill(at, value, bytes); });
  return Success;
}

ApiError EventCreate(Event* event) {
  const auto mark = std::make_shared<Mark>();
  mark->event = mark;
  *event = mark.get();
  return Success;
}
ApiError EventDestroy(Event event) {
  event->event.reset();
  return Success;
}
ApiError EventRecord(Event event, Stream stream) {
  if (auto recording = queue_of(stream).recording()) {
    event->capture({std::move(recording), &queue_of(stream), queue_of(stream).captured()});
    return Success;
  }
  event->expect();
  const auto mark = event->shared_from_this();
  queue_of(stream).add(1, 1, [mark, added = std::chrono::steady_clock::now()](std::uint32_t) {
    Queue& queue = Queue::running();
    const Moment at = std::max(added, queue.before());
    mark->reach(at);
    queue.end_at(at);
  });
  return Success;
}
ApiError EventQuery(Event event) {
  if (event->captured().recording != nullptr) return ErrorInvalidValue;
  return event->is_reached() ? Success : ErrorNotReady;
}
ApiError EventSynchronize(Event event) {
  if (event->captured().recording != nullptr) return ErrorInvalidValue;
  event->wait(event->recorded());
  return Success;
}
ApiError EventElapsedTime(float* milliseconds, Event first, Event second) {
  if (!first->is_reached() || !second->is_reached()) return ErrorNotReady;
  *milliseconds = std::chrono::duration<float, std::milli>(second->at() - first->at()).count();
  return Success;
}
ApiError StreamWaitEvent(Stream stream, Event event, unsigned) {
  const auto mine = queue_of(stream).recording();
  if (const Mark::Captured its = event->captured(); its.recording != nullptr) {
    if (its.recording->has_ended) return ErrorInvalidValue;
    if (mine == nullptr) {  // it is captured, too, from here on
      its.recording->joined.push_back(&queue_of(stream));
      queue_of(stream).begin_capture(its.recording);
    } else if (mine != its.recording) {
      return ErrorInvalidValue;
    }
    its.queue->await_captured(its.tasks);
    return Success;
  }
  if (mine != nullptr) return ErrorInvalidValue;
  const auto mark = event->shared_from_this();
  queue_of(stream).add(
      1, 1, [mark, until = event->recorded(), added = std::chrono::steady_clock::now()](std::uint32_t) {
        mark->wait(until);
        Queue& queue = Queue::running();
        if (until > 0) queue.end_at(std::max({added, queue.before(), mark->at()}));
      });
  return Success;
}

ApiError LaunchHostFunc(Stream stream, HostFunction function, void* data) {
  queue_of(stream).add(1, 1, [=](std::uint32_t) { function(data); });
  return Success;
}
ApiError StreamBeginCapture(Stream stream, StreamCaptureMode) {
  if (queue_of(stream).is_captured()) return ErrorInvalidValue;
  queue_of(stream).begin_capture(std::make_shared<Recording>());
  return Success;
}
ApiError StreamIsCapturing(Stream stream, StreamCaptureStatus* status) {
  *status = queue_of(stream).is_captured() ? StreamCaptureStatusActive : StreamCaptureStatusNone;
  return Success;
}
ApiError StreamEndCapture(Stream stream, CapturedGraph* graph) {
  *graph = nullptr;
  const auto recording = queue_of(stream).recording();
  if (recording == nullptr) return ErrorInvalidValue;
  (void)queue_of(stream).end_capture();
  recording->has_ended = true;
  bool are_joined = true;
  for (Queue* const queue : recording->joined) are_joined = queue->end_capture() && are_joined;
  if (!are_joined) return ErrorInvalidValue;  // as a real one does
  *graph = new Recording{recording->tasks, {}, true};
  return Success;
}
ApiError GraphInstantiateWithFlags(LaunchableGraph* launchable, CapturedGraph graph, unsigned long long) {
  *launchable = new Recording(*graph);
  return Success;
}
ApiError GraphLaunch(LaunchableGraph graph, Stream stream) {
  for (const Recording::Task& task : graph->tasks) queue_of(stream).add(task.groups, task.held, task.group);
  return Success;
}
ApiError GraphDestroy(CapturedGraph graph) {
  delete graph;
  return Success;
}
ApiError GraphExecDestroy(LaunchableGraph graph) {
  delete graph;
  return Success;
}

ApiError DeviceSynchronize() {
  Queue::wait_for_all(current_device());
  return Success;
}

void launch(Stream stream, std::uint32_t groups, std::uint32_t group_lanes, std::uint32_t scratch_bytes,
            std::function<void()> lane) {
  int held = 1;  // by a processor
  (void)occupancy(&held, static_cast<int>(group_lanes), scratch_bytes);
  const auto side_by_side = static_cast<std::uint32_t>(held * kProcessors);
  queue_of(stream).add(groups, side_by_side, [=, lane = std::move(lane)](std::uint32_t group) {
    run_group(
        group, groups, group_lanes, scratch_bytes,
        [](const void* self) { (*static_cast<const std::function<void()>*>(self))(); }, &lane);
  });
}

}  // namespace esker::simulated
