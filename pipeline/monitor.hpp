// Looks after a run: passes on its end from one side to the others, ends loops over several devices, flushes
// what is old, gives failed frames to the user, samples what it does, and says what waits for what when
// nothing moves.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/pipeline/host_workers.hpp>
#include <esker/pipeline/options.hpp>
#include <esker/pipeline/report.hpp>
#include <esker/pipeline/run_memory.hpp>
#include <esker/pipeline/sampler.hpp>
#include <esker/pipeline/topology.hpp>
#include <esker/pipeline/trace.hpp>
#include <esker/queue/waiting.hpp>

namespace esker::pipeline::detail {

class Monitor {
 public:
  /// `devices`: their names. `kernels`: streams with the kernels. `on_throw`: in a catch clause, for what a
  /// function of the user's throws.
  Monitor(std::string devices, const Options& options, const Topology& topology, const RunMemory& memory,
          Doorbell& bell, const std::vector<Stream>& kernels, HostWorkers& workers, bool has_gpu,
          std::function<void()> on_throw);
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  void start();
  /// Tells all sides that one of them has ended the run. By who has not called start().
  void pass_on_ends();
  /// The host's threads have ended: so does the monitor's, after the kernels.
  void request_end();
  /// After that: whether the kernels have ended. Tells them, if they have to be told.
  bool try_end_kernels();
  /// The run has ended: takes what is left.
  void close();

  /// Once the run has ended.
  Report report(std::chrono::nanoseconds time) const;
  /// Returns if the run was whole.
  void throw_outcome(const Report& report) const;

 private:
  void watch();
  bool kernels_have_ended();
  void end_loops();
  void flush_old();
  template <class Call>
  void call_user(const Call& call);
  void report_failures();
  void take_sample();
  void mark_outcome();
  void look_for_hang();
  std::string who_waits(const RunMemory::Snapshot& now) const;
  std::uint64_t frames_of(const RunMemory::Snapshot& now, std::uint32_t topic) const;
  std::uint64_t dropped(const RunMemory::Snapshot& now, std::uint32_t topic) const;
  bool have_all_ended() const;
  std::string misuse(const SideState& side) const;

  const std::string devices_;
  const Options& options_;
  const Topology& topology_;
  const RunMemory& memory_;
  Doorbell& bell_;
  const std::vector<Stream>& kernels_;
  HostWorkers& workers_;
  const std::function<void()> on_throw_;
  bool has_thrown_ = false;
  std::chrono::microseconds nap_{200};
  bool naps_short_;        // there is a GPU or a trace, or a frame has been seen that items are missing in
  bool are_told_ = false;  // all sides: the run has ended
  std::vector<bool> loops_ended_;  // of RunMemory::loops_of_several()
  std::chrono::steady_clock::time_point judged_at_;
  struct Partial {
    std::uint64_t position = 0;
    std::chrono::steady_clock::time_point since;
  };
  std::vector<Partial> partials_;        // of topics
  std::vector<std::uint64_t> failures_;  // of sides
  Sampler sampler_;
  bool samples_ = true;
  std::chrono::steady_clock::time_point sampled_at_;
  std::optional<Trace> trace_;
  bool has_marked_drain_ = false, has_marked_outcome_ = false;
  std::uint64_t moved_ = 0;
  std::chrono::steady_clock::time_point moved_at_, looked_at_;

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable ends_;
  // Guarded by mutex_, as all is that the monitor's thread and the end share.
  bool is_ending_ = false, is_closed_ = false;
};

}  // namespace esker::pipeline::detail
