// Runs a pipeline: its threads, its kernels' streams, its movers, and a monitor that looks after them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/pipeline/memory_pool.hpp>
#include <esker/pipeline/options.hpp>
#include <esker/pipeline/report.hpp>
#include <esker/pipeline/run_view.hpp>
#include <esker/pipeline/seat.hpp>
#include <esker/pipeline/topology.hpp>

namespace esker::pipeline::detail {

/// State    Topics are added -> prepare() -> serve() for each stage of the host, the kernels -> go() ->
///          wait().
/// Contract One thread, but for stop() and request_drain(), which any thread may call.
class ESKER_API Engine {
 public:
  Engine(std::vector<Device> devices, Options options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::uint32_t number() const { return number_; }
  std::uint32_t add_topic(const TopicOptions& options, std::uint32_t item_bytes);

  /// Checks the stages, and makes the run's memory. `held`: groups of the kernel that each side's GPU holds.
  void prepare(const std::vector<StageFacts>& stages, const std::vector<std::uint64_t>& held);
  /// The GPU that runs a stage, or the host.
  std::uint32_t side(std::uint32_t stage) const;
  std::uint32_t teams(std::uint32_t stage) const;
  /// A stage of the host has a seat a team: make(bell, has_gpu, index) makes one.
  using MakeSeat = std::function<std::unique_ptr<Seat>(Doorbell& bell, bool has_gpu, std::uint32_t index)>;
  void serve(std::uint32_t stage, const MakeSeat& make);
  const RunView& host() const;
  const RunView* device_view(std::uint32_t side) const;
  const Stream& stream(std::uint32_t side) const;
  /// All threads begin.
  void go();
  /// In place of go(): ends what has begun. A go() that has thrown, too.
  void abandon();

  /// Until the run has ended. Throws what ended it.
  void wait();
  /// True: it has ended within that time.
  bool wait_for(std::chrono::milliseconds time);
  void stop();
  void request_drain();
  const Report& report() const;

 private:
  class Run;

  const std::vector<Device> devices_;
  const Options options_;
  const std::uint32_t number_;
  std::vector<TopicFacts> topics_;
  std::mutex mutex_;  // of run_, which only its own thread changes: for stop() and request_drain()
  MemoryPool pool_;
  std::unique_ptr<Run> run_, ended_;
  Report report_;
};

}  // namespace esker::pipeline::detail
