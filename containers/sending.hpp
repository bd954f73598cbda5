// Who calls an operation of a container: a lane or handler, by the shmem_ calls, or the program, by its
// Runtime's.
#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include <esker/device/platform.hpp>
#include <esker/runtime.hpp>

namespace esker::containers {

template <class Context>
inline constexpr bool kIsProgram = std::is_base_of_v<HostOperations, std::remove_cvref_t<Context>>;

/// Misuse by the program. `call` is "Map::find".
[[noreturn, gnu::cold]] ESKER_API void bad_handler(const char* call);

/// shmem_am(), or Runtime::call().
template <class Context, class Target, class Arguments, class... Election>
ESKER_HD void call(Context&& context, Handler<Target, Arguments> handler, Target* target,
                   const std::type_identity_t<Arguments>& arguments, std::uint32_t pe,
                   Election&&... election) {
  if constexpr (kIsProgram<Context>) {
    context.call(handler, target, arguments, pe);
  } else {
    shmem_am(context, handler, target, arguments, pe, std::forward<Election>(election)...);
  }
}

}  // namespace esker::containers
