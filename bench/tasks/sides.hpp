// Ways to solve a problem, Esker's and others': what the figures compare. Each is made once, and then run any
// number of times; a run returns the result.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include "problems.hpp"

namespace esker::bench {

/// Esker's fork-join.
class Program {
 public:
  virtual ~Program() = default;
  /// Before the clock starts.
  virtual void prepare() {}
  virtual std::uint64_t run() = 0;
  /// After it has stopped: the result, of what run() has returned.
  virtual std::uint64_t check(std::uint64_t returned) { return returned; }
  virtual const tasks::Report& report() const = 0;
};
std::unique_ptr<Program> fork_join(const Device& device, const Problem& problem,
                                   const tasks::Options& options);

/// Of kSort and kStrassen, which fork_join() makes too.
std::unique_ptr<Program> sort_program(const Device& device, const Problem& problem,
                                      const tasks::Options& options);
std::unique_ptr<Program> strassen_program(const Device& device, const Problem& problem,
                                          const tasks::Options& options);

using Run = std::function<std::uint64_t()>;

// --- Of tasks that do not wait for each other: kFibLeaves and kQueens.

/// Some waves of each processor at one queue in device memory. Each lane draws a ticket and runs the task
/// that is put there; the lanes of a wave draw, and add what they spawn, together. It is told how many tasks
/// there will be, which saves it the search for the end, and has a place for each of them. Waves of 32 lanes.
/// Errors. std::invalid_argument: more than 2^26 tasks.
Run one_queue(const Device& device, const Problem& problem, std::uint64_t tasks, std::uint32_t waves);

/// A kernel by hand. fib: lanes take subtrees from a counter and go through each with a stack in one
/// register. queens: the host places the first rows, lanes take those boards from a counter and go through
/// the rest of the rows with a stack in scratchpad.
Run flat(const Device& device, const Problem& problem);

/// One tasks::Channel in device memory that all lanes take from and put into (thesis, chapter 4, on a machine
/// without its aggregator). A lane that finds the channel full runs its children itself, depth first.
enum class ChannelForm { kWave, kLane, kPaddedWave };
struct ChannelRun {
  Run run;
  std::function<std::uint64_t()> inlined;  // tasks of the last run that found the channel full
};
/// `tasks` as for one_queue().
ChannelRun one_channel(const Device& device, const Problem& problem, std::uint64_t tasks, ChannelForm form,
                       std::uint32_t capacity);

// --- Of the host's cores.

#if defined(ESKER_BENCH_TBB)
namespace tbb_side {
/// Uses so many threads from now on.
void use_threads(unsigned threads);
long fib(int n);
std::uint64_t queens(std::uint32_t n);
}  // namespace tbb_side
#endif

/// Keeps all but some of a GPU's processors busy, so that what runs meanwhile has those alone. Nothing on a
/// CPU.
///
/// Contract The device is idle when it is made. Each processor that is held has one group with all of its
///          scratchpad: kernels that want scratchpad find no place there.
/// Errors   std::runtime_error: other work is in the way.
class ProcessorsHeld {
 public:
  ProcessorsHeld(const Device& device, std::uint32_t processors_left);
  ~ProcessorsHeld();
  ProcessorsHeld(const ProcessorsHeld&) = delete;
  ProcessorsHeld& operator=(const ProcessorsHeld&) = delete;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace esker::bench
