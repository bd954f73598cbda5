// A handler's code on the device: a progress kernel that can call it.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <esker/net/gpu/progress_kernel.hpp>

#if defined(ESKER_DEVICE_COMPILER)

namespace esker::gpu {

template <class Self, class Target, class Arguments, class Function>
struct HandlerCall {
  static constexpr std::uint32_t kWords = Self::kWords;
  static constexpr std::uint32_t kTargetBytes = sizeof(Target);
  static constexpr std::uint32_t kTargetAlignment = alignof(Target);
  static constexpr std::uint64_t kOwnershipBytes = detail::kOwnershipOf<Function>;
  static constexpr bool kSaysWhatIsNeedless = detail::SaysWhatIsNeedless<Function, Target, Arguments>;
  Function function;

  /// Any lane, whether or not it owns the target's ownership block.
  ESKER_HD bool is_needless([[maybe_unused]] const void* target,
                            [[maybe_unused]] const std::uint64_t* words) const {
    if constexpr (kSaysWhatIsNeedless) {
      Arguments arguments;
      __builtin_memcpy(static_cast<void*>(&arguments), words, sizeof arguments);
      return function.is_needless(*static_cast<const Target*>(target), arguments);
    } else {
      return false;
    }
  }

  ESKER_HD void operator()([[maybe_unused]] HandlerContext& context, [[maybe_unused]] void* target,
                           [[maybe_unused]] const std::uint64_t* words) const {
#if defined(ESKER_ON_GPU)
    Function own = function;
    Arguments arguments;
    __builtin_memcpy(static_cast<void*>(&arguments), words, sizeof arguments);
    auto& at = *static_cast<Target*>(target);
    if constexpr (std::is_invocable_v<Function&, HandlerContext&, Target&, const Arguments&, Self>) {
      own(context, at, arguments, Self{context.handler()});
    } else {
      own(context, at, arguments);
    }
#endif
  }
};

template <class Self, class Target, class Arguments, class Function>
HandlerOnDevice handler_code(const Function& function) {
  using Handlers = OneHandler<HandlerCall<Self, Target, Arguments, Function>>;
  return {load_progress_kernel<Handlers>,
          [function](std::uint32_t index, const PeState* pe_state, std::uint64_t number, ProgressShape shape,
                     void* stream) {
            return gpu::start_progress_kernel(Handlers{index, {function}}, pe_state, number, shape, stream);
          }};
}

}  // namespace esker::gpu

#endif
