// A run of a pipeline from the host's side.
#include <esker/pipeline/engine.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
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

/// Threads or groups of each stage: what the user says, else one thread, or a fair part of the GPU.
std::vector<std::uint32_t> divide(const Topology& topology, std::uint64_t gpu_teams) {
  std::vector<std::uint32_t> teams;
  std::uint64_t asked = 0, others = 0;
  for (const StageFacts& stage : topology.stages) {
    if (stage.side == Side::kHost) continue;
    asked += stage.workers;
    others += stage.workers == 0 ? 1 : 0;
  }
  if (asked + others > gpu_teams)
    throw Error(Error::Kind::kConfiguration,
                fmt::format("pipeline: its device stages want {} teams, and the device holds {}",
                            asked + others, gpu_teams));
  for (std::uint32_t s = 0; s < topology.stages.size(); ++s) {
    const StageFacts& stage = topology.stages[s];
    std::uint64_t n = stage.workers;
    if (n == 0) n = stage.side == Side::kHost ? 1 : (gpu_teams - asked) / others;
    if (stage.side == Side::kDevice) n = std::clamp<std::uint64_t>(n, 1, topology.most_teams(s));
    teams.push_back(static_cast<std::uint32_t>(n));
  }
  return teams;
}

}  // namespace

class Engine::Run {
 public:
  Run(const Device& device, MemoryPool& pool, const Options& options, Topology topology,
      std::uint64_t gpu_teams)
      : device_{device},
        options_{options},
        topology_{std::move(topology)},
        teams_{divide(topology_, gpu_teams)},
        memory_{device, pool, topology_, teams_, options.balance},
        stream_{device.stream()},
        has_gpu_{device.backend() != Backend::kCpu},
        workers_{bell_, has_gpu_, options.host_threads, [this](std::uint32_t stage) { catch_from(stage); },
                 [this] { one_less(); }},
        monitor_{device, options_, topology_, memory_, bell_, stream_, workers_} {
    for (const Crossed& crossed : memory_.crossed()) {
      movers_.push_back(std::make_unique<Mover>(device, memory_, crossed,
                                                topology_.topics[crossed.topic].item_bytes, bell_));
    }
  }
  ~Run() {
    stop();
    try {
      join();
    } catch (...) {  // of the device: nothing can be done about it here
    }
  }

  const Topology& topology() const { return topology_; }
  std::uint32_t teams(std::uint32_t stage) const { return teams_[stage]; }
  const RunMemory& memory() const { return memory_; }
  const Stream& stream() const { return stream_; }

  void serve(std::uint32_t stage, const MakeSeat& make) {
    for (std::uint32_t i = 0; i < teams_[stage]; ++i)
      workers_.add(stage, topology_.depth[stage], make(bell_, has_gpu_, i));
  }
  void go() {
    began_ = std::chrono::steady_clock::now();
    left_.store(1 + movers_.size(), std::memory_order_relaxed);
    workers_.start();
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
  bool has_ended() const { return left_.load(std::memory_order_acquire) == 0 && stream_.is_idle(); }
  void join() {
    workers_.join();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    const auto end = [&] { time_ = std::chrono::steady_clock::now() - began_; };
    try {
      stream_.synchronize();
    } catch (...) {
      end();
      monitor_.stop();
      throw;
    }
    if (time_.count() == 0) end();
    monitor_.stop();
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

  const Device device_;
  const Options& options_;
  const Topology topology_;
  const std::vector<std::uint32_t> teams_;
  RunMemory memory_;
  const Stream stream_;
  const bool has_gpu_;
  Doorbell bell_;
  HostWorkers workers_;
  Monitor monitor_;
  std::vector<std::unique_ptr<Mover>> movers_;
  std::vector<std::thread> threads_;
  std::atomic<std::size_t> left_{0};  // the workers together, and each mover
  std::mutex mutex_;
  std::exception_ptr thrown_;  // guarded by mutex_
  std::chrono::steady_clock::time_point began_;
  std::chrono::nanoseconds time_{};
};

Engine::Engine(const Device& device, Options options)
    : device_{device}, options_{std::move(options)}, number_{next_pipeline()}, pool_{device} {}
Engine::~Engine() = default;

std::uint32_t Engine::add_topic(const TopicOptions& options, std::uint32_t item_bytes) {
  if (topics_.size() == kMostTopics)
    throw Error(Error::Kind::kConfiguration, fmt::format("pipeline: {} topics is the most", kMostTopics));
  TopicFacts facts{options, item_bytes};
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

void Engine::prepare(const std::vector<StageFacts>& stages, std::uint64_t gpu_teams) {
  if (run_ != nullptr) throw Error(Error::Kind::kConfiguration, "pipeline: it runs already");
  ended_.reset();
  pool_.give_back();
  Topology topology = Topology::check(number_, topics_, stages, device_.backend() != Backend::kCpu);
  auto run = std::make_unique<Run>(device_, pool_, options_, std::move(topology), gpu_teams);
  const std::lock_guard lock(mutex_);
  run_ = std::move(run);
}
bool Engine::runs_on_gpu(std::uint32_t stage) const {
  return run_->topology().stages[stage].side == Side::kDevice;
}
std::uint32_t Engine::teams(std::uint32_t stage) const { return run_->teams(stage); }
void Engine::serve(std::uint32_t stage, const MakeSeat& make) { run_->serve(stage, make); }
const RunView& Engine::host() const { return run_->memory().host(); }
const RunView* Engine::device_view() const { return run_->memory().device(); }
const Stream& Engine::stream() const { return run_->stream(); }
void Engine::go() { run_->go(); }

void Engine::wait() {
  if (run_ == nullptr) throw Error(Error::Kind::kConfiguration, "pipeline: it has not been started");
  const auto end = [this] {  // until here it may be stopped
    const std::lock_guard lock(mutex_);
    ended_ = std::move(run_);  // it goes with the next run, or with the pipeline: that takes a while
  };
  try {
    run_->join();
  } catch (...) {
    end();
    throw;
  }
  end();
  report_ = ended_->monitor().report(ended_->time());
  if (const std::exception_ptr thrown = ended_->thrown(); thrown != nullptr) std::rethrow_exception(thrown);
  ended_->monitor().throw_outcome(report_);
}
bool Engine::wait_for(std::chrono::milliseconds time) {
  if (run_ == nullptr) return true;
  const auto until = std::chrono::steady_clock::now() + time;
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
