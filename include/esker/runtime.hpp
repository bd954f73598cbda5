// A PE's part of the job. Nothing here includes CUDA, HIP, MPI or UCX.
//
//   Runtime        launches kernels, waits, registers handlers; the program's own operations
//   Statistics, StageStatistics    what a PE has done so far
//
// What a kernel takes to send messages, the first argument of the shmem_ operations:
//
//   WorkItem      a Lane that sends; passed by value. On the CPU its lanes run as a plain loop.
//   GroupItem&    a lane that also works with its group: wave(), group(), group_lane(), elections
//   KernelItem    a GroupItem that a kernel launched by the user makes from a DeviceContext
//
// Each has pe(), n_pes(), global_id(), group_id(), lanes(), lane() and group_lanes().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <esker/aggregator/statistics.hpp>
#include <esker/device/cpu/launch.hpp>
#include <esker/error.hpp>
#include <esker/handler.hpp>
#include <esker/runtime/block_operations.hpp>
#include <esker/runtime/group_item.hpp>
#include <esker/runtime/host_operations.hpp>
#include <esker/runtime/host_worker.hpp>
#include <esker/runtime/kernel_item.hpp>
#include <esker/runtime/work_item.hpp>
#include <esker/shmem.hpp>

namespace esker {

class Communicator;  // <esker/config.hpp>, and for an MPI_Comm <esker/mpi.hpp>
struct Config;       // <esker/config.hpp>
class Device;        // <esker/device.hpp>

namespace gpu {
class KernelFacts;
class Occupancy;
}  // namespace gpu

/// How all_reduce() and its like (<esker/collectives.hpp>) combine two values. The last three are of
/// integers.
enum class Reduction { kSum, kMin, kMax, kProduct, kAnd, kOr, kXor };
enum class Comparison { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };

namespace detail {
struct Medium;
class TaskCourier;
class CollectiveCalls;
/// What Runtime's templates do, in each compiler pass another thing (runtime/kernel_dispatch.hpp).
template <class Pass>
struct Dispatch;
}  // namespace detail

/// One PE's part of the job.
///
/// State    running -> failed, or the end of its scope. Everything is legal while running; once failed,
///          every call throws the failure again.
/// Contract Calls come from one thread, the one that constructed it; "collective" ones from every PE, in
///          the same order. Lanes and handlers send; barrier_all() and quiet() say when it is applied.
/// Progress A network thread moves messages at all times; while the program waits in quiet() or a collective
///          call, its own thread may, and runs handlers of the host then. Exception: if the program
///          initialised MPI below MPI_THREAD_MULTIPLE, only its own thread may call MPI, so messages move
///          only during this PE's calls here.
/// Errors   Error from set-up and collective calls. A failure on a runtime thread or on another PE is
///          kept and thrown by this PE's next call, or by the one that waits. Misuse aborts.
///
/// A process may have several, one after the other or at a time, over all PEs or over some of them
/// (Communicator in <esker/config.hpp>), but for one case: a Runtime that initialises MPI finalises it, so
/// none can follow or join it. Programs that need that initialise MPI themselves.
class ESKER_API Runtime : public HostOperations, public BlockOperations {
 public:
  /// Collective. Takes its own options out of argc and argv (--node-buffer-bytes 64KiB, ...), reads
  /// ESKER_* and the configuration file.
  Runtime(int& argc, char** argv);
  /// Collective. The same settings on every PE, but for device, cpu_threads and what is local.
  explicit Runtime(const Config& config);
  /// Collective over these PEs: the ranks of an MPI communicator of the program's, or threads of this
  /// process.
  Runtime(const Communicator& pes, const Config& config);

  /// For tests: over a transport of their own (runtime/medium.hpp).
  Runtime(const Config& config, detail::Medium medium);

  /// Collective. Does what barrier_all() does, then ends. During an exception it waits for its peers for
  /// two seconds at most; those that do not come are told that this PE has left. Where lanes run on a GPU it
  /// waits for the kernels; one that still runs after hang_seconds, in a job that has failed, ends the
  /// process.
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  std::uint32_t pe() const noexcept;
  std::uint32_t n_pes() const noexcept;
  const Config& config() const noexcept;
  /// Local. Threads that this PE may use on its host: cpu_threads, or else its share of the cores.
  std::uint32_t host_threads() const noexcept;
  SymmetricHeap& heap() noexcept;

  /// Local. Runs `kernel` once a lane: with a WorkItem, or with a GroupItem& if it works together with
  /// the other lanes of its group. One that sends nothing takes a Lane, or a GroupLane&: on a GPU it is then
  /// a kernel like any other, where what sends has scratchpad and registers of its own, and fewer lanes at a
  /// time. May return before the kernel has ended; quiet() and barrier_all() wait for it. Lanes launch
  /// nothing. `name` is for reports.
  ///
  /// Errors. On the CPU, what a lane throws ends the kernel: lanes that have not begun do not begin, and what
  /// others have sent is sent. Then launch() throws an Error{kKernel} that names kernel, lane and what(),
  /// with the lane's exception nested in it (std::rethrow_if_nested). An Error of a lane keeps its kind.
  template <class Kernel, class Pass = detail::Pass>
  void launch(std::uint64_t lanes, Kernel&& kernel, const char* name = "kernel") {
    detail::Dispatch<Pass>::launch(*this, shape_of(lanes), kernel, name);
  }
  template <class Kernel, class Pass = detail::Pass>
  void launch_shape(const LaunchShape& shape, Kernel&& kernel, const char* name = "kernel") {
    detail::Dispatch<Pass>::launch(*this, shape, kernel, name);
  }

  /// Local. Every message that this PE has sent, handlers running here included, is applied.
  void quiet();
  /// Collective. Every message that any PE sent before it is applied, and so is what handlers sent in
  /// turn.
  void barrier_all();

  /// Local. Until a word of this PE's heap, which signals or other messages change, compares so with `value`;
  /// returns what it held then. What was put before the signal is seen. With a heap in device memory it waits
  /// for kernels on stream() as quiet() does. A word that never changes is a hang, whose report names it.
  std::uint64_t wait_until(const std::uint64_t* word, Comparison comparison, std::uint64_t value);
  /// The same of any of several words: the index of one that does.
  std::size_t wait_any(std::span<const std::uint64_t* const> words, Comparison comparison,
                       std::uint64_t value);
  /// Whether it does now. Makes some progress, so that a loop of it ends.
  bool test(const std::uint64_t* word, Comparison comparison, std::uint64_t value);
  /// Local. launch() once the word compares so: a kernel that waits for messages starts when they have come,
  /// and holds no processor that they need meanwhile. Returns when it has been started.
  template <class Kernel, class Pass = detail::Pass>
  void launch_when(const std::uint64_t* word, Comparison comparison, std::uint64_t value, std::uint64_t lanes,
                   Kernel&& kernel, const char* name = "kernel") {
    (void)wait_until(word, comparison, value);
    detail::Dispatch<Pass>::launch(*this, shape_of(lanes), kernel, name);
  }

  /// Collective; at most 1024 times. `handler(HandlerContext&, Target&, const Arguments&)` runs on the PE
  /// that a message is for, where the heap stands: in device memory it is device code, trivially copyable,
  /// and built-in operations on its target may come in between. One that sends messages to its own kind takes
  /// itself, a `Handler<Target, Arguments>`, as a fourth parameter: other PEs' messages may arrive before
  /// this call returns here. Error{kHandler} if the PEs register different names or types.
  ///
  /// While it runs it owns the 4096 bytes, aligned to as many, that its target lies in. A class may say more:
  /// - `static constexpr std::uint64_t kOwnershipBytes`, a power of two from 8 to 4096: it owns no more than
  ///   that, so that on a GPU more of its calls run side by side. 0: it owns nothing, and calls for one
  ///   target may run side by side; it reads and changes what others change by atomics alone.
  /// - `bool is_needless(const Target&, const Arguments&) const`: the call would change nothing and send
  ///   nothing, now or later. Asked whoever owns the target, so that what is too late for a busy target need
  ///   not wait for it: it looks at words that change by relaxed atomics. Such a message counts as applied.
  template <class Target, MessageArguments Arguments, class Function, class Pass = detail::Pass>
  Handler<Target, Arguments> register_handler(const std::string& name, Function function) {
    using Self = Handler<Target, Arguments>;
    constexpr bool kTakesItself =
        std::is_invocable_v<Function&, HandlerContext&, Target&, const Arguments&, Self>;
    static_assert(kTakesItself || std::is_invocable_v<Function&, HandlerContext&, Target&, const Arguments&>,
                  "a handler takes (HandlerContext&, Target&, const Arguments&), and itself if it likes");
    static_assert(
        !requires { &Function::is_needless; } || detail::SaysWhatIsNeedless<Function, Target, Arguments>,
        "a handler's is_needless takes (const Target&, const Arguments&), is const and returns bool");
    constexpr std::uint64_t kOwned = detail::kOwnershipOf<Function>;
    static_assert(sizeof(Target) <= kOwned || kOwned == 0 || kOwned == HandlerContext::kOwnershipBytes,
                  "a handler owns its target: its kOwnershipBytes is no less than the target's size");
    return {detail::Dispatch<Pass>::template add_handler<Self, Target, Arguments>(*this, name,
                                                                                  std::move(function))};
  }

  /// Collective. Element by element over the PEs; every PE gets the result. What esker::all_reduce() does for
  /// any type and operation (<esker/collectives.hpp>, where the other collective calls are too), for the two
  /// types that most programs have. Error{kContract} on every PE, and all values as they were, if the PEs
  /// differ in the number or type of values or in the reduction.
  void all_reduce(std::span<std::uint64_t> values, Reduction reduction);
  void all_reduce(std::span<double> values, Reduction reduction);

  /// Local. For kernels of one's own, which take it by value (KernelItem).
  DeviceContext device_context() const noexcept;
  /// Local. Before the first launch of a kernel of one's own that sends: what a group of it takes. Beside
  /// such kernels progress kernels, which run handlers, have less scratchpad for what handlers send. A kernel
  /// that sends without it ends the job with a message. Compiled by a device compiler alone.
  ///
  /// Errors. Error{kDevice}: no such group fits on the GPU.
  template <class Kernel, class Pass = detail::Pass>
  void reserve_for(Kernel* kernel, std::uint32_t group_lanes, std::uint32_t scratch_bytes = 0) {
    detail::Dispatch<Pass>::reserve_for(*this, kernel, group_lanes, scratch_bytes);
  }
  /// Kernels run on a GPU; `stream()` is what launch() uses there (a cudaStream_t or hipStream_t; null on the
  /// CPU). quiet() and barrier_all() wait for kernels on it.
  bool runs_on_device() const noexcept;
  void* stream() const noexcept;
  /// Where lanes run: for memory, streams and copies beside the heap, and kernels that send nothing.
  const Device& device() const noexcept;
  /// "cpu", or "cuda: NVIDIA H200, GPU 0 of 4".
  std::string device_name() const;
  Statistics statistics() const;
  /// Local. How long this PE's buffers took from stage to stage so far, and how full they were.
  StageStatistics stage_statistics() const;
  /// Local. Bytes beyond the heap that this PE may come to use, by /proc and what its pools may still
  /// grow by.
  std::uint64_t declared_memory_bytes() const;
  /// "mpi (Open MPI v4.1.4)", "loopback".
  const std::string& transport_name() const noexcept;

 private:
  template <class>
  friend struct detail::Dispatch;
  friend class detail::CollectiveCalls;
  friend class detail::TaskCourier;
  friend class BlockOperations;
  friend class HostOperations;
  using HostWorker = detail::HostWorker;
  LaunchShape shape_of(std::uint64_t lanes) const noexcept;
  GroupExecution group_execution() const noexcept;
  void run_groups(const LaunchShape& shape, const char* name, detail::GroupFunction function);
  std::uint16_t add_handler(HandlerEntry entry);
  const detail::KernelContext& context() const noexcept;
  gpu::Occupancy& occupancy() noexcept;
  void reserve(const gpu::KernelFacts& kernel, std::uint32_t group_lanes, std::uint32_t scratch_bytes);
  void* begin_launch(const char* kernel);
  void end_launch(const std::string& error);
  [[noreturn]] void refuse_launch(const char* kernel) const;

  class Impl;
  static Impl* start(const Config& config, detail::Medium medium);
  Impl* const impl_;
};

}  // namespace esker

#include <esker/runtime/kernel_dispatch.hpp>  // the templates, which need the class
#include <esker/runtime/lane_blocks.hpp>
