// Active messages: a registered handler as kernels see it.
#pragma once

#include <cstdint>
#include <type_traits>

#include <esker/net/handler.hpp>

namespace esker {

/// Arguments of an active message: anything that can be copied as bytes, up to 64 of them.
template <class A>
concept MessageArguments = std::is_trivially_copyable_v<A> && sizeof(A) <= kMaxArgumentBytes;

/// Made by Runtime::register_handler; trivially copyable, captured by kernels by value, the same on
/// every PE.
template <class Target, MessageArguments Arguments>
struct Handler {
  static constexpr std::uint32_t kWords = 1 + (sizeof(Arguments) + 7) / 8;
  std::uint16_t index = 0;
};

/// Where a reply goes, in place of a result's address: made by then().
template <class Target, MessageArguments Arguments>
struct Then {
  Handler<Target, Arguments> handler;
  Target* target;
  Arguments arguments;
};

/// When the value has come, `handler` runs on the PE that asked, on its `*target`, as for an active message
/// to itself. Its arguments are the value alone, or a struct whose first member is `value`, of the value's
/// type: that is filled in, and the rest is what stands here: up to 56 bytes beside a get or fetch_inc, 48
/// beside another fetch or a swap, 40 beside a compare and swap; from the program 40 beside any.
template <class Target, class Arguments>
ESKER_HD Then<Target, Arguments> then(Handler<Target, Arguments> handler, Target* target,
                                      std::type_identity_t<Arguments> arguments) {
  return {handler, target, arguments};
}

}  // namespace esker
