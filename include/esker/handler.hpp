// Active messages: a registered handler as kernels see it.
#pragma once

#include <concepts>
#include <cstddef>
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
/// type: that is filled in, and the rest is what stands here. Of the arguments up to 40 bytes travel beside
/// it.
template <class Target, class Arguments>
ESKER_HD Then<Target, Arguments> then(Handler<Target, Arguments> handler, Target* target,
                                      std::type_identity_t<Arguments> arguments) {
  return {handler, target, arguments};
}

namespace detail {
template <class T, class Result>
inline constexpr bool kTakesReply = false;
template <class T>
inline constexpr bool kTakesReply<T, T*> = true;
template <class T, class Target>
inline constexpr bool kTakesReply<T, Then<Target, T>> = true;
template <class T, class Target, class Arguments>
requires requires(Arguments arguments) {
  { arguments.value } -> std::same_as<T&>;
}
inline constexpr bool kTakesReply<T, Then<Target, Arguments>> = offsetof(Arguments, value) == 0;

/// Says in the compiler's first line what may be wrong.
template <class T, class Result>
struct ReplyOrError {
  static_assert(kTakesReply<T, Result>,
                "the reply to a request for a T goes to a T*, or to then(handler, target, arguments), whose "
                "arguments are a T, or a struct whose first member is `T value`");
  static constexpr bool value = kTakesReply<T, Result>;
};
template <class Result, class T>
concept CheckedReplyFor = ReplyOrError<T, Result>::value;
}  // namespace detail

/// Where the reply to a request for a T may go: a T* in the symmetric heap of the PE that asks, or then().
template <class Result, class T>
concept ReplyFor = detail::kTakesReply<T, Result>;

}  // namespace esker
