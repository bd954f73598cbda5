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

}  // namespace esker
