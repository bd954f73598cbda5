// What collectives move and by what they reduce, without its type: sizes, names and functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace esker::detail {

/// The name of a type as this compiler has it.
template <class T>
constexpr std::string_view type_name() {
  const std::string_view all = __PRETTY_FUNCTION__;  // "... [with T = int; ...]", or "... [T = int]"
  const std::size_t first = all.find("T = ") + 4;
  const std::size_t semicolon = all.find("; std::string_view", first);
  return all.substr(first, (semicolon == std::string_view::npos ? all.rfind(']') : semicolon) - first);
}

struct ElementType {
  std::size_t bytes;
  std::string_view name;  // in the plural, the same for types of one meaning
};

template <class T>
constexpr ElementType element_type() {
  constexpr std::size_t kBits = sizeof(T) * 8;
  if constexpr (std::is_same_v<T, bool>) return {sizeof(T), "bools"};
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    return {sizeof(T), kBits == 8    ? "8-bit signed integers"
                       : kBits == 16 ? "16-bit signed integers"
                       : kBits == 32 ? "32-bit signed integers"
                                     : "64-bit signed integers"};
  } else if constexpr (std::is_integral_v<T>) {
    return {sizeof(T), kBits == 8    ? "8-bit unsigned integers"
                       : kBits == 16 ? "16-bit unsigned integers"
                       : kBits == 32 ? "32-bit unsigned integers"
                                     : "64-bit unsigned integers"};
  } else if constexpr (std::is_floating_point_v<T>) {
    return {sizeof(T), std::is_same_v<T, float>    ? "floats"
                       : std::is_same_v<T, double> ? "doubles"
                                                   : "long doubles"};
  } else {
    return {sizeof(T), type_name<T>()};
  }
}

/// into[i] = function(into[i], from[i])
struct Combiner {
  std::string_view name;  // "sum"; of the program's own, its type
  bool is_own = false;    // the program's
  const void* function = nullptr;
  void (*combine)(const void* function, void* into, const void* from, std::uint64_t n) = nullptr;
};

/// Of an object that outlives the call.
template <class T, class Function>
Combiner combiner_of(const Function& function, std::string_view name = {}) {
  return {name.empty() ? type_name<Function>() : name, name.empty(), &function,
          [](const void* of, void* into, const void* from, std::uint64_t n) {
            const auto& call = *static_cast<const Function*>(of);
            T* const a = static_cast<T*>(into);
            const T* const b = static_cast<const T*>(from);
            for (std::uint64_t i = 0; i < n; ++i) a[i] = static_cast<T>(call(a[i], b[i]));
          }};
}

/// How keys become unsigned numbers of the same order.
enum class KeyKind : std::uint8_t {
  kUnsigned,
  kSigned,
  kFloat,
  kExtended,  // of 80 bits in 16 bytes, which x86 has
};
template <class T>
inline constexpr KeyKind kKeyKind = std::is_floating_point_v<T>
                                        ? (std::numeric_limits<T>::digits == 64 ? KeyKind::kExtended
                                                                                : KeyKind::kFloat)
                                    : std::is_signed_v<T> ? KeyKind::kSigned
                                                          : KeyKind::kUnsigned;

/// Where a call puts a number of elements that only it knows.
struct Destination {
  void* object;
  /// Room for n elements; null: there is none. May throw.
  void* (*resize)(void* object, std::uint64_t n);
};

}  // namespace esker::detail
