// A handler's code on the device: a pass that can call it.
#pragma once

#include <cstdint>
#include <new>
#include <string>
#include <type_traits>

#include <esker/net/gpu/pass.hpp>

#if defined(ESKER_DEVICE_COMPILER)

namespace esker::gpu {

template <class Self, class Target, class Arguments, class Function>
struct HandlerCall {
  static constexpr std::uint32_t kWords = Self::kWords;
  static constexpr std::uint32_t kTargetBytes = sizeof(Target);
  static constexpr std::uint32_t kTargetAlignment = alignof(Target);
  Function function;

  ESKER_HD void operator()([[maybe_unused]] HandlerContext& context, [[maybe_unused]] void* target,
                           [[maybe_unused]] const std::uint64_t* words) const {
#if defined(ESKER_ON_GPU)
    Function own = function;
    Arguments arguments;
    __builtin_memcpy(&arguments, words, sizeof arguments);
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
  static_assert(
      sizeof(Function) <= HandlerOnDevice::kMaxFunctionBytes && std::is_trivially_destructible_v<Function>,
      "what it captures is copied as bytes");
  using Call = HandlerCall<Self, Target, Arguments, Function>;
  HandlerOnDevice code;
  new (code.function) Function(function);
  code.start_pass = [](const HandlerOnDevice& handler, std::uint32_t index, const DeviceShare* share,
                       std::uint64_t number, std::uint32_t groups, void* stream) {
    const auto& own = *std::launder(reinterpret_cast<const Function*>(handler.function));
    return gpu::start_pass(OneHandler<Call>{index, {own}}, share, number, groups, stream);
  };
  return code;
}

}  // namespace esker::gpu

#endif
