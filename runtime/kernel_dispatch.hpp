// How a kernel or a handler of the user's comes to run, as the source's compiler pass has it: on the GPU that
// it is compiled for, or on host threads. Private to Runtime, whose header includes it.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include <esker/device/cpu/launch.hpp>
#include <esker/device/launch.hpp>
#include <esker/error.hpp>
#include <esker/runtime.hpp>
#include <esker/runtime/host_worker.hpp>
#include <esker/runtime/kernel_item.hpp>
#if defined(ESKER_DEVICE_COMPILER)  // a host compiler would read for nothing what runs on GPUs
#include <esker/net/gpu/handler_code.hpp>
#endif

namespace esker {

namespace detail {

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

ESKER_PASS_BEGIN

/// The kernel asks for a Lane or a GroupLane&, which cannot send. By its word: a WorkItem is a Lane, too.
template <class Kernel>
inline constexpr bool kSendsNothing = [] {
  if constexpr (requires { &Kernel::operator(); }) {
    using P = typename ParameterOf<decltype(&Kernel::operator())>::Type;
    return std::is_same_v<std::remove_cvref_t<P>, Lane> || std::is_same_v<P, GroupLane&>;
  }
  return false;
}();

#if defined(ESKER_DEVICE_COMPILER)
/// A user's kernel that may send, as the device runs it. One that takes a WorkItem asks nothing of its group,
/// so the launch is shaped to be resident: each group runs lanes of many of the user's groups, and packages
/// fill across them. One that takes a GroupItem keeps the user's groups.
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

  /// Starts it as the broker of its device plans: "", or what went wrong.
  static std::string start(const KernelContext& context, const LaunchShape& shape, const Kernel& kernel,
                           void* stream, gpu::Occupancy& occupancy) {
    LaunchShape run = shape;
    gpu::LaunchPlan plan;
    if (shape.group_lanes > 0 && shape.group_lanes <= 1024) {  // else the launch says what is wrong
      const gpu::CompiledKernel compiled = gpu::compiled<DeviceKernel>();
      if constexpr (kTakesWorkItem) {
        plan =
            occupancy.plan_resident(compiled, kGroupLanes, shape.lanes, gpu::most_pool_bytes(context.bins));
        run.group_lanes = kGroupLanes;
        run.lanes = plan.groups * kGroupLanes;
      } else {
        plan = occupancy.plan_shaped(compiled, shape);
      }
    }
    if (!plan.refusal.empty()) return plan.refusal;
    return gpu::launch_on_device(run, stream, DeviceKernel{context, shape, plan.lent_bytes / 8, kernel},
                                 plan.lent_bytes);
  }
};
#endif

ESKER_PASS_END

/// What Runtime's templates do in this pass. A specialisation, so that the passes of one program have each
/// their own.
template <>
struct Dispatch<Pass> {
  template <class Kernel>
  static void launch(Runtime& rt, const LaunchShape& shape, Kernel& kernel, const char* name) {
    if (!rt.runs_on_device()) return launch_on_host(rt, shape, kernel, name);
#if defined(ESKER_DEVICE_COMPILER)
    using Plain = std::remove_cvref_t<Kernel>;
    void* const stream = rt.begin_launch(name);
    if constexpr (kSendsNothing<Plain>) {
      rt.end_launch(gpu::launch_on_device(shape, stream, kernel));
    } else {
      rt.end_launch(DeviceKernel<Plain>::start(rt.context(), shape, kernel, stream, rt.occupancy()));
    }
#else
    rt.refuse_launch(name);
#endif
  }

  template <class Kernel>
  static void reserve_for([[maybe_unused]] Runtime& rt, [[maybe_unused]] Kernel* kernel,
                          [[maybe_unused]] std::uint32_t group_lanes,
                          [[maybe_unused]] std::uint32_t scratch_bytes) {
#if defined(ESKER_DEVICE_COMPILER)
    rt.reserve(gpu::CompiledKernel(kernel), group_lanes, scratch_bytes);
#else
    static_assert(sizeof(Kernel) == 0, "reserve_for: a kernel of one's own is compiled by a device compiler");
#endif
  }

  template <class Self, class Target, class Arguments, class Function>
  static std::uint16_t add_handler(Runtime& rt, const std::string& name, Function function) {
    const gpu::HandlerOnDevice* device = nullptr;
#if defined(ESKER_DEVICE_COMPILER)
    const gpu::HandlerOnDevice code = gpu::handler_code<Self, Target, Arguments>(function);
    device = &code;
#endif
    auto call = [function = std::move(function)](HostCall& host_call, void* target,
                                                 const void* arguments) mutable {
      HandlerContext context(host_call);
      std::array<std::byte, sizeof(Arguments)> bytes;
      std::memcpy(bytes.data(), arguments, bytes.size());
      auto& at = *static_cast<Target*>(target);
      if constexpr (SaysWhatIsNeedless<Function, Target, Arguments>) {
        if (function.is_needless(at, std::bit_cast<Arguments>(bytes))) return;
      }
      if constexpr (std::is_invocable_v<Function&, HandlerContext&, Target&, const Arguments&, Self>) {
        function(context, at, std::bit_cast<Arguments>(bytes), Self{context.handler()});
      } else {
        function(context, at, std::bit_cast<Arguments>(bytes));
      }
    };
    return rt.add_handler({name, Self::kWords, sizeof(Target), alignof(Target), std::move(call), device});
  }

 private:
  /// A kernel that sends, as a thread that runs lanes has it: a copy of its own where that is one of bytes.
  /// No store of a lane can change its members then, so the compiler keeps them where they are at hand.
  template <class Kernel, class Plain = std::remove_cvref_t<Kernel>>
  using Own =
      std::conditional_t<std::is_trivially_copyable_v<Plain> && std::is_invocable_v<const Plain&, WorkItem>,
                         const Plain, Kernel&>;

  template <class Kernel>
  static void launch_on_host([[maybe_unused]] Runtime& rt, [[maybe_unused]] const LaunchShape& shape,
                             [[maybe_unused]] Kernel& kernel, const char* name) {
#if defined(ESKER_ON_CPU)  // a device compiler reads host functions in its device pass too
    const GroupExecution execution = rt.group_execution();
    if constexpr (kSendsNothing<std::remove_cvref_t<Kernel>>) {
      rt.run_groups(shape, name, [&](HostWorker&, std::uint64_t first, std::uint64_t last) {
        cpu::run_groups(shape, first, last, execution, kernel);
      });
    } else if constexpr (std::is_invocable_v<Kernel&, WorkItem>) {
      rt.run_groups(shape, name, [&](HostWorker& worker, std::uint64_t first, std::uint64_t last) {
        Outbox::Filling outbox(worker.outbox);
        Own<Kernel> own = kernel;
        cpu::run_groups(shape, first, last, GroupExecution::kFibers,
                        [&](Lane lane) { own(WorkItem(lane, worker.context, outbox)); });
      });
    } else {
      static_assert(std::is_invocable_v<Kernel&, GroupItem&>,
                    "a kernel takes a WorkItem, a GroupItem&, a Lane or a GroupLane&");
      rt.run_groups(shape, name, [&](HostWorker& worker, std::uint64_t first, std::uint64_t last) {
        cpu::run_groups(shape, first, last, execution, [&](GroupLane& lane) {
          GroupItem item(lane, worker.context);
          kernel(item);
          item.finish();
        });
      });
    }
#else
    throw Error(Error::Kind::kDevice, std::string("launch of '") + name +
                                          "': this source was compiled for a GPU alone; do without "
                                          "--device cpu");
#endif
  }
};

}  // namespace detail

}  // namespace esker
