// A handler's code on the device, known by its address to the code of its own source file.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <esker/net/gpu/pass.hpp>

#if defined(ESKER_DEVICE_COMPILER)

namespace esker::gpu {

template <class Self, class Target, class Arguments, class Function>
struct HandlerCall {
  static ESKER_HD void call(const void* function, HandlerContext& context, void* target,
                            const std::uint64_t* words) {
    Function own = *static_cast<const Function*>(function);
    Arguments arguments;
    __builtin_memcpy(&arguments, words, sizeof arguments);
    auto& at = *static_cast<Target*>(target);
    if constexpr (std::is_invocable_v<Function&, HandlerContext&, Target&, const Arguments&, Self>) {
      own(context, at, arguments, Self{context.handler()});
    } else {
      own(context, at, arguments);
    }
  }
};

/// Writes the address that only device code knows.
template <class Call>
struct PublishHandler {
  DeviceHandler* entry;
  ESKER_HD void operator()(Lane) const {
#if defined(ESKER_ON_GPU)
    entry->call = &Call::call;
    entry->unit = unit();
#endif
  }
};

/// `function` outlives the result.
template <class Self, class Target, class Arguments, class Function>
HandlerOnDevice handler_code(const Function& function) {
  static_assert(std::is_trivially_copyable_v<Function>, "it is copied to the device");
  using Call = HandlerCall<Self, Target, Arguments, Function>;
  return {sizeof(Function), &function,
          [](DeviceHandler* entry, void* stream) {
            return launch_on_device({1, 1, 32}, stream, PublishHandler<Call>{entry});
          },
          &start_pass};
}

}  // namespace esker::gpu

#endif
