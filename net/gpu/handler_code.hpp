// A handler's code on the device, known by its address to the code of its own source file.
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

/// Writes what only device code knows: the call's address. The function itself comes as a kernel argument,
/// the one way in which a lambda reaches the device.
template <class Call, class Function>
struct PublishHandler {
  DeviceHandler* entry;
  void* storage;
  Function function;
  ESKER_HD void operator()(Lane) const {
#if defined(ESKER_ON_GPU)
    new (storage) Function(function);
    entry->call = &Call::call;
    entry->function = storage;
    entry->unit = unit();
#endif
  }
};

/// `function` outlives the result.
template <class Self, class Target, class Arguments, class Function>
HandlerOnDevice handler_code(const Function& function) {
  static_assert(sizeof(Function) <= HandlerOnDevice::kMaxFunctionBytes,
                "what it captures is copied to the device");
  using Call = HandlerCall<Self, Target, Arguments, Function>;
  return {&function,
          [](const void* code, DeviceHandler* entry, void* storage, void* stream) {
            return launch_on_device(
                {1, 1, 32}, stream,
                PublishHandler<Call, Function>{entry, storage, *static_cast<const Function*>(code)});
          },
          &start_pass};
}

}  // namespace esker::gpu

#endif
