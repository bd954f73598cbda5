// A run of a pipeline from the host's side.
#include <esker/pipeline/engine.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>

#include <esker/error.hpp>
#include <esker/pipeline/host_workers.hpp>
#include <esker/pipeline/monitor.hpp>
#include <esker/pipeline/mover.hpp>
#include <esker/pipeline/run_memory.hpp>

namespace esker::pipeline::detail {

namespace {

std::uint32_t next_pipeline() {
  static std::atomic<std::uint32_t> made{0};
  return made.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// Threads or groups of each stage: what the user says, else one thread, or a fair part of its GPU.
std::vector<std::uint32_t> divide(const Topology& topology, const std::vector<std::uint64_t>& held) {
  std::vector<std::uint32_t> teams;
  std::vector<std::uint64_t> asked(held.size()), others(held.size());
  for (const StageFacts& stage : topology.stages) {
    asked[stage.side] += stage.workers;
    others[stage.side] += stage.workers == 0 ? 1 : 0;
  }
  for (std::uint32_t side = kHostSide + 1; side < held.size(); ++side) {
    if (asked[side] + others[side] > held[side])
      throw Error(Error::Kind::kConfiguration,
                  fmt::format("pipeline: the stages of the {} want {} teams, and it holds {}",
                              topology.name_of(side), asked[side] + others[side], held[side]));
  }
  for (std::uint32_t s = 0; s < topology.stages.size(); ++s) {
    const StageFacts& stage = topology.stages[s];
    const std::uint32_t side = stage.side;
    std::uint64_t n = stage.workers;
    if (n == 0) n = side == kHostSide ? 1 : (held[side] - asked[side]) / others[side];
    if (side != kHostSide) n = std::clamp<std::uint64_t>(n, 1, topology.most_teams(s));
    teams.push_back(static_cast<std::uint32_t>(n));
  }
  return teams;
}

constexpr std::chrono::hours kLongest{24 * 365};  // any longer time is as good as this

Options checked(Options options) {
  if (options.group_lanes == 0 || options.group_lanes > 1024)
    throw Error(
        Error::Kind::kConfiguration,
        fmt::format("pipeline: group_lanes is {}: a team of a GPU has 1 to 1024", options.group_lanes));
  options.hang_after = std::min<std::chrono::milliseconds>(options.hang_after, kLongest);
  return options;
}

std::vector<Stream> streams_of(const std::vector<Device>& devices) {
  std::vector<Stream> streams;
  streams.reserve(devices.size());
  for (const Device& device : devices) streams.push_back(device.stream());
  return streams;
}
std::string names_of(const std::vector<Device>& devices) {
  std::string names;
  for (const Device& device : devices) names += (names.empty() ? "" : "; ") + device.name();
  return names;
}

}  // namespace

class Engine::Run {
 public:
  Run(const std::vector<Device>& devices, MemoryPool& pool, const Options& options, Topology topology,
      const std::vector<std::uint64_t>& held)
      : options_{options},
        topology_{std::move(topology)},
        teams_{divide(topology_, held)},
        memory_{devices, pool, topology_, teams_, options.balance},
        streams_{streams_of(devices)},
        has_gpu_{std::any_of(devices.begin(), devices.end(),
                             [](const Device& device) { return device.backend() != Backend::kCpu; })},
        workers_{bell_, has_gpu_, options.host_threads, [this](std::uint32_t stage) { catch_from(stage); },
                 [this] { one_less(); }},
        monitor_{names_of(devices), options_, topology_,
                 memory_,           bell_,    streams_,
                 workers_,          has_gpu_, [this] { catch_from(kNone); }} {
    for (const Crossed& crossed : memory_.crossed()) {
      movers_.push_back(std::make_unique<Mover>(devices[crossed.side - 1], memory_, crossed,
                                                topology_.topics[crossed.topic].item_bytes, bell_));
    }
  }
  ~Run() {
    stop();
    try {
      if (!has_begun_) monitor_.pass_on_ends();  // a kernel could not be launched, and those before it run
      await_end();
    } catch (...) {  // of the device: nothing can be done about it here
    }
    workers_.join();
  }

  const Topology& topology() const { return topology_; }
  std::uint32_t teams(std::uint32_t stage) const { return teams_[stage]; }
  const RunMemory& memory() const { return memory_; }
  const Stream& stream(std::uint32_t side) const { return streams_[side - 1]; }

  void serve(std::uint32_t stage, const MakeSeat& make) {
    for (std::uint32_t i = 0; i < teams_[stage]; ++i)
      workers_.add(stage, topology_.depth[stage], make(bell_, has_gpu_, i));
  }
  void go() {
    has_begun_ = true;
    began_ = std::chrono::steady_clock::now();
    left_.store(1 + movers_.size(), std::memory_order_relaxed);
    workers_.start();
    try {
      start_others();
    } catch (const std::system_error& error) {
      throw Error(
          Error::Kind::kOutOfMemory,
          fmt::format("pipeline: a thread that looks after its run could not be made: {}", error.what()));
    }
  }
  bool has_ended() const {
    return left_.load(std::memory_order_acquire) == 0 &&
           std::all_of(streams_.begin(), streams_.end(),
                       [](const Stream& stream) { return stream.is_idle(); });
  }
  /// It stays awake for some while where the end is near: to wake takes tens of microseconds. Threads that
  /// have nothing more to do are joined with the Run.
  void await_end() {
    workers_.await_end();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    if (has_begun_) {
      for (std::uint32_t left = yields(has_gpu_); left != 0 && !monitor_.try_end_kernels(); --left)
        std::this_thread::yield();
    }
    std::exception_ptr failed;
    for (const Stream& stream : streams_) {
      try {
        stream.synchronize();
      } catch (...) {
        if (failed == nullptr) failed = std::current_exception();
        stop();  // the other devices
      }
    }
    if (time_.count() == 0) time_ = std::chrono::steady_clock::now() - began_;
    if (has_begun_) monitor_.close();
    if (failed != nullptr) std::rethrow_exception(failed);
  }
  void stop() { memory_.host().end(Outcome::kStopped, 0, 0, 0, 0), bell_.ring(); }
  void request_drain() {
    memory_.host().drain->word.store_relaxed(1);
    bell_.ring();
  }
  std::exception_ptr thrown() {
    const std::lock_guard lock(mutex_);
    return thrown_;
  }
  std::chrono::nanoseconds time() const { return time_; }
  const Monitor& monitor() const { return monitor_; }

 private:
  void start_others() {
    for (auto& mover : movers_) {
      threads_.emplace_back([this, &mover] {
        try {
          mover->run();
        } catch (...) {
          catch_from(kNone);
        }
        one_less();
      });
    }
    monitor_.start();
  }
  /// In a catch clause: what a stage throws ends the run.
  void catch_from(std::uint32_t stage) {
    {
      const std::lock_guard lock(mutex_);
      if (thrown_ == nullptr) thrown_ = std::current_exception();
    }
    memory_.host().end(Outcome::kFailed, stage, 0, 0, 0);
    bell_.ring();
  }
  void one_less() {
    if (left_.fetch_sub(1, std::memory_order_acq_rel) == 1) monitor_.request_end();
  }

  const Options& options_;
  const Topology topology_;
  const std::vector<std::uint32_t> teams_;
  RunMemory memory_;
  const std::vector<Stream> streams_;  // of devices: their kernels'
  const bool has_gpu_;
  Doorbell bell_;
  HostWorkers workers_;
  Monitor monitor_;
  std::vector<std::unique_ptr<Mover>> movers_;
  std::vector<std::thread> threads_;
  std::atomic<std::size_t> left_{0};  // the workers together, and each mover
  std::mutex mutex_;
  std::exception_ptr thrown_;  // guarded by mutex_
  bool has_begun_ = false;
  std::chrono::steady_clock::time_point began_;
  std::chrono::nanoseconds time_{};
};

Engine::Engine(std::vector<Device> devices, Options options)
    : devices_{std::move(devices)},
      options_{checked(std::move(options))},
      number_{next_pipeline()},
      pool_{devices_} {
  if (devices_.empty()) throw Error(Error::Kind::kConfiguration, "pipeline: it has no device");
  std::set<std::uint32_t> gpus;
  for (const Device& device : devices_) {
    if (device.backend() != Backend::kCpu && !gpus.insert(device.properties().index).second)
      throw Error(Error::Kind::kConfiguration,
                  fmt::format("pipeline: {} is named twice: its kernels would wait for each other's room",
                              device.name()));
  }
}
Engine::~Engine() = default;

std::uint32_t Engine::add_topic(const TopicOptions& options, std::uint32_t item_bytes) {
  if (topics_.size() == kMostTopics)
    throw Error(Error::Kind::kConfiguration, fmt::format("pipeline: {} topics is the most", kMostTopics));
  TopicFacts facts{options, item_bytes};
  facts.options.flush_after = std::min<std::chrono::microseconds>(options.flush_after, kLongest);
  if (facts.options.name.empty()) facts.options.name = "topic " + std::to_string(topics_.size());
  if (options.frames == 0 || options.frames > (1u << 24))
    throw Error(Error::Kind::kConfiguration, fmt::format("pipeline: '{}' holds {} frames: it is 1 to 2^24",
                                                         facts.options.name, options.frames));
  if (options.frame_bytes < item_bytes || options.frame_bytes > (std::uint64_t{1} << 34))
    throw Error(Error::Kind::kConfiguration,
                fmt::format("pipeline: a frame of '{}' has {} bytes: it is {}, one item, to 2^34",
                            facts.options.name, options.frame_bytes, item_bytes));
  topics_.push_back(std::move(facts));
  return static_cast<std::uint32_t>(topics_.size() - 1);
}

void Engine::prepare(const std::vector<StageFacts>& stages, const std::vector<std::uint64_t>& held) {
  if (run_ != nullptr) throw Error(Error::Kind::kConfiguration, "pipeline: it runs already");
  ended_.reset();
  pool_.give_back();
  Topology topology = Topology::check(number_, topics_, stages, devices_);
  auto run = std::make_unique<Run>(devices_, pool_, options_, std::move(topology), held);
  const std::lock_guard lock(mutex_);
  run_ = std::move(run);
}
std::uint32_t Engine::side(std::uint32_t stage) const { return run_->topology().stages[stage].side; }
std::uint32_t Engine::teams(std::uint32_t stage) const { return run_->teams(stage); }
void Engine::serve(std::uint32_t stage, const MakeSeat& make) { run_->serve(stage, make); }
const RunView& Engine::host() const { return run_->memory().host(); }
const RunView* Engine::device_view(std::uint32_t side) const { return run_->memory().on_device(side); }
const Stream& Engine::stream(std::uint32_t side) const { return run_->stream(side); }
void Engine::go() { run_->go(); }

void Engine::wait() {
  if (run_ == nullptr) throw Error(Error::Kind::kConfiguration, "pipeline: it has not been started");
  const auto end = [this] {  // until here it may be stopped
    const std::lock_guard lock(mutex_);
    ended_ = std::move(run_);  // it goes with the next run, or with the pipeline: that takes a while
  };
  try {
    run_->await_end();
  } catch (...) {
    end();
    throw;
  }
  end();
  report_ = ended_->monitor().report(ended_->time());
  if (const std::exception_ptr thrown = ended_->thrown(); thrown != nullptr) std::rethrow_exception(thrown);
  ended_->monitor().throw_outcome(report_);
}
void Engine::abandon() {
  std::unique_ptr<Run> run;
  const std::lock_guard lock(mutex_);
  run = std::move(run_);
}
bool Engine::wait_for(std::chrono::milliseconds time) {
  if (run_ == nullptr) return true;
  const auto until = std::chrono::steady_clock::now() + std::min<std::chrono::milliseconds>(time, kLongest);
  while (!run_->has_ended()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
  return true;
}
void Engine::stop() {
  const std::lock_guard lock(mutex_);
  if (run_ != nullptr) run_->stop();
}
void Engine::request_drain() {
  const std::lock_guard lock(mutex_);
  if (run_ != nullptr) run_->request_drain();
}
const Report& Engine::report() const { return report_; }

}  // namespace esker::pipeline::detail
