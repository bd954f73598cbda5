// The public interface of Esker. Nothing here includes CUDA, HIP, MPI or UCX.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include <esker/device/cpu/launch.hpp>
#include <esker/device/launch.hpp>
#include <esker/error.hpp>
#include <esker/handler.hpp>
#include <esker/heap.hpp>
#include <esker/runtime/host_worker.hpp>
#include <esker/shmem.hpp>
#include <esker/statistics.hpp>
#include <esker/work_item.hpp>
#if defined(ESKER_DEVICE_COMPILER)
#include <esker/net/gpu/handler_code.hpp>
#endif

namespace esker {

struct Config;  // <esker/config.hpp>

enum class Reduction { kSum, kMin, kMax };

namespace detail {
struct Medium;
template <class>
struct ParameterOf {
  using Type = void;
};
template <class R, class C, class P, bool N>
struct ParameterOf<R (C::*)(P) noexcept(N)> {
  using Type = P;
};
template <class R, class C, class P, bool N>
struct ParameterOf<R (C::*)(P) const noexcept(N)> {
  using Type = P;
};
/// The kernel asks for a Lane or a GroupLane&, which cannot send. By its word: a WorkItem is a Lane, too.
template <class Kernel>
inline constexpr bool kSendsNothing = [] {
  if constexpr (requires { &Kernel::operator(); }) {
    using P = typename ParameterOf<decltype(&Kernel::operator())>::Type;
    return std::is_same_v<std::remove_cvref_t<P>, Lane> || std::is_same_v<P, GroupLane&>;
  }
  return false;
}();
}  // namespace detail

#if defined(ESKER_DEVICE_COMPILER)
namespace detail {
/// A user's kernel that may send, as the device runs it. One that takes a WorkItem asks nothing of its group:
/// then the launch has as many groups as the device holds and an eighth less, which leaves progress kernels a
/// place, over the PEs that share it, each runs lanes of many of the user's groups, and packages fill across
/// them. Of one that takes a GroupItem a processor holds fewer groups where there are handlers, or other PEs,
/// for the same reason.
template <class Kernel>
struct DeviceKernel {
  static constexpr bool kTakesWorkItem = std::is_invocable_v<const Kernel&, WorkItem>;
  static constexpr std::uint32_t kGroupLanes = 256;
  static constexpr std::uint32_t kMostGroupLanes = kTakesWorkItem ? kGroupLanes : 1024;
  KernelContext context;
  LaunchShape shape;         // the user's
  std::uint32_t pool_words;  // that a group is lent
  Kernel kernel;

  ESKER_HD void operator()([[maybe_unused]] GroupLane& lane) const {
#if defined(ESKER_ON_GPU)
    if constexpr (kTakesWorkItem) {
      WorkItem::Item item(lane, context, pool_words);
      for (std::uint64_t id = lane.global_id(); id < shape.lanes; id += lane.lanes())
        kernel(WorkItem(Lane(shape, id), item));
      item.finish();
    } else {
      GroupItem item(lane, context);
      kernel(item);
      item.finish();
    }
#endif
  }

  /// Starts it: "", or what went wrong. Where there are handlers it first calls leave_place(bytes): the
  /// scratchpad that a group of a progress kernel finds beside it, or 0 (DeviceEngine::leave_place).
  template <class LeavePlace>
  static std::string start(const KernelContext& context, const LaunchShape& shape, const Kernel& kernel,
                           void* stream, const LeavePlace& leave_place) {
    LaunchShape run = shape;
    std::uint32_t scratch_bytes = 0, place_bytes = 0;
    if constexpr (kTakesWorkItem) {
      if (shape.group_lanes > 0 && shape.group_lanes <= 1024) {  // else the launch says what is wrong
        scratch_bytes = gpu::lend_scratch<DeviceKernel>(kGroupLanes, gpu::most_pool_bytes(context.bins));
        const std::uint64_t held = gpu::resident_groups<DeviceKernel>(kGroupLanes, scratch_bytes);
        const std::uint64_t needed = (shape.lanes + kGroupLanes - 1) / kGroupLanes;
        run.group_lanes = kGroupLanes;
        const std::uint64_t share = (held - held / gpu::kReservedPart) / context.sharers;
        run.lanes = std::min(std::max(share, std::uint64_t{1}), needed) * kGroupLanes;
        place_bytes = gpu::declared_scratch<DeviceKernel>() + gpu::kScratchAside + scratch_bytes;
      }
    } else if ((context.has_handlers || context.sharers > 1) && shape.group_lanes <= 1024) {
      constexpr std::uint32_t kOfProgress = sizeof(gpu::ProgressLists) + gpu::kLeastProgressPool;
      if (!gpu::try_leave_room<DeviceKernel, gpu::ProgressKernel<gpu::NoHandler>>(
              shape, kOfProgress, context.sharers, scratch_bytes)) {
        return "groups of " + std::to_string(shape.group_lanes) +
               " lanes fill the GPU's processors, and progress kernels, which call handlers and serve other "
               "PEs, "
               "find no place beside them: launch smaller groups, or fewer lanes at a time";
      }
    }
    if (context.has_handlers) leave_place(place_bytes);
    return gpu::launch_on_device(run, stream, DeviceKernel{context, shape, scratch_bytes / 8, kernel},
                                 scratch_bytes);
  }
};
}  // namespace detail
#endif

/// One PE's part of the job.
///
/// State    running -> failed, or the end of its scope. Everything is legal while running; once failed,
///          every call throws the failure again.
/// Contract Calls come from one thread, the one that constructed it; "collective" ones from every PE, in
///          the same order. Lanes and handlers send; barrier_all() and quiet() say when it is applied.
/// Progress A network thread moves messages at all times. Exception: if the program initialised MPI
///          below MPI_THREAD_MULTIPLE, only its own thread may call MPI, so messages move only during
///          this PE's calls here.
/// Errors   Error from set-up and collective calls. A failure on a runtime thread or on another PE is
///          kept and thrown by this PE's next call, or by the one that waits. Misuse aborts.
///
/// A process may have several, one after the other or at a time, but for one case: a Runtime that initialises
/// MPI finalises it, so none can follow or join it. Programs that need that initialise MPI themselves.
class ESKER_API Runtime {
 public:
  /// Collective. Takes its own options out of argc and argv (--node-buffer-bytes 64KiB, ...), reads
  /// ESKER_* and the configuration file.
  Runtime(int& argc, char** argv);
  /// Collective. The same settings on every PE, but for device, cpu_threads and what is local.
  explicit Runtime(const Config& config);

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
  /// time. May return before the kernel has ended; quiet() and barrier_all() wait for it. `name` is for
  /// reports.
  ///
  /// Errors. On the CPU, what a lane throws ends the kernel: lanes that have not begun do not begin, and what
  /// others have sent is sent. Then launch() throws an Error{kKernel} that names kernel, lane and what(),
  /// with the lane's exception nested in it (std::rethrow_if_nested). An Error of a lane keeps its kind.
  template <class Kernel>
  void launch(std::uint64_t lanes, Kernel&& kernel, const char* name = "kernel") {
    launch_shape(shape_of(lanes), kernel, name);
  }
  template <class Kernel>
  void launch_shape(const LaunchShape& shape, Kernel&& kernel, const char* name = "kernel") {
    if (runs_on_device()) {
#if defined(ESKER_DEVICE_COMPILER)
      using Plain = std::remove_cvref_t<Kernel>;
      void* const stream = begin_launch(name);
      if constexpr (detail::kSendsNothing<Plain>) {
        end_launch(gpu::launch_on_device(shape, stream, kernel));
      } else {
        end_launch(detail::DeviceKernel<Plain>::start(context(), shape, kernel, stream,
                                                      [this](std::uint32_t bytes) { leave_place(bytes); }));
      }
      return;
#else
      refuse_launch(name);
#endif
    }
#if defined(ESKER_ON_CPU)  // a device compiler reads host functions in its device pass too
    if constexpr (detail::kSendsNothing<std::remove_cvref_t<Kernel>>) {
      const GroupExecution execution = group_execution();
      run_groups(shape, name, [&](HostWorker&, std::uint64_t first, std::uint64_t last) {
        cpu::run_groups(shape, first, last, execution, kernel);
      });
    } else if constexpr (std::is_invocable_v<Kernel&, WorkItem>) {
      run_groups(shape, name, [&](HostWorker& worker, std::uint64_t first, std::uint64_t last) {
        Outbox::Filling outbox(worker.outbox);
        cpu::run_groups(shape, first, last, GroupExecution::kFibers,
                        [&](Lane lane) { kernel(WorkItem(lane, worker.context, outbox)); });
      });
    } else {
      static_assert(std::is_invocable_v<Kernel&, GroupItem&>,
                    "a kernel takes a WorkItem, a GroupItem&, a Lane or a GroupLane&");
      const GroupExecution execution = group_execution();
      run_groups(shape, name, [&](HostWorker& worker, std::uint64_t first, std::uint64_t last) {
        cpu::run_groups(shape, first, last, execution, [&](GroupLane& lane) {
          GroupItem item(lane, worker.context);
          kernel(item);
          item.finish();
        });
      });
    }
#elif defined(ESKER_ON_SIMULATED)
    throw Error(Error::Kind::kDevice,
                std::string("launch of '") + name +
                    "': this source was compiled for a simulated GPU alone; do without --device cpu");
#endif
  }

  /// Local. Every message that this PE has sent, handlers running here included, is applied.
  void quiet();
  /// Collective. Every message that any PE sent before it is applied, and so is what handlers sent in
  /// turn.
  void barrier_all();

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
  template <class Target, MessageArguments Arguments, class Function>
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
    const gpu::HandlerOnDevice* device = nullptr;
#if defined(ESKER_DEVICE_COMPILER)
    const gpu::HandlerOnDevice code = gpu::handler_code<Self, Target, Arguments>(function);
    device = &code;
#endif
    return {add_handler({name, Self::kWords, sizeof(Target), alignof(Target),
                         [function = std::move(function)](HandlerContext& context, void* target,
                                                          const void* arguments) mutable {
                           std::array<std::byte, sizeof(Arguments)> bytes;
                           std::memcpy(bytes.data(), arguments, bytes.size());
                           auto& at = *static_cast<Target*>(target);
                           if constexpr (detail::SaysWhatIsNeedless<Function, Target, Arguments>) {
                             if (function.is_needless(at, std::bit_cast<Arguments>(bytes))) return;
                           }
                           if constexpr (kTakesItself) {
                             function(context, at, std::bit_cast<Arguments>(bytes), Self{context.handler()});
                           } else {
                             function(context, at, std::bit_cast<Arguments>(bytes));
                           }
                         },
                         device})};
  }

  /// Collective. Element by element over the PEs; every PE gets the result. Error{kContract} on every PE, and
  /// all values as they were, if the PEs differ in the number or type of values or in the reduction.
  void all_reduce(std::span<std::uint64_t> values, Reduction reduction);
  void all_reduce(std::span<double> values, Reduction reduction);

  /// Local. For kernels of one's own: they take it by value (KernelItem). Beside these, handlers
  /// on a GPU have less scratchpad: where they send much, call neither this nor stream() without need.
  DeviceContext device_context() const noexcept;
  /// Kernels run on a GPU; `stream()` is what launch() uses there (a cudaStream_t or hipStream_t; null on the
  /// CPU). quiet() and barrier_all() wait for kernels on it.
  bool runs_on_device() const noexcept;
  void* stream() const noexcept;
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
  using HostWorker = detail::HostWorker;
  LaunchShape shape_of(std::uint64_t lanes) const noexcept;
  GroupExecution group_execution() const noexcept;
  void run_groups(const LaunchShape& shape, const char* name, detail::GroupFunction function);
  std::uint16_t add_handler(HandlerEntry entry);
  const detail::KernelContext& context() const noexcept;
  void leave_place(std::uint32_t scratch_bytes);
  void* begin_launch(const char* kernel);
  void end_launch(const std::string& error);
  [[noreturn]] void refuse_launch(const char* kernel) const;

  class Impl;
  static Impl* start(const Config& config, detail::Medium medium);
  Impl* const impl_;
};

}  // namespace esker
