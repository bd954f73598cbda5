// What the built-in operations make of a word's value.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <esker/aggregator/command.hpp>
#include <esker/aggregator/operations.hpp>

namespace esker {

/// The operand in the value word of a message.
template <class T>
T value_of(std::uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

/// What a fetch changes its target by.
constexpr Operation update_of(Operation fetch) {
  switch (fetch) {
    case Operation::kFetchInc:
      return Operation::kInc;
    case Operation::kFetchAnd:
      return Operation::kAnd;
    case Operation::kFetchOr:
      return Operation::kOr;
    case Operation::kFetchXor:
      return Operation::kXor;
    default:
      return Operation::kAdd;
  }
}

/// O is kInc, whose value is 1, to kXor. Integers wrap, as the network's atomics do.
template <Operation O, class T>
T updated(T old, T value) {
  if constexpr (O == Operation::kInc) {
    return updated<Operation::kAdd>(old, value);
  } else if constexpr (O == Operation::kAdd && std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(old) + static_cast<U>(value));
  } else if constexpr (O == Operation::kAdd) {
    return old + value;
  } else if constexpr (O == Operation::kMin) {
    return value < old ? value : old;
  } else if constexpr (O == Operation::kMax) {
    return old < value ? value : old;
  } else if constexpr (O == Operation::kAnd) {
    return old & value;
  } else if constexpr (O == Operation::kOr) {
    return old | value;
  } else {
    static_assert(O == Operation::kXor);
    return old ^ value;
  }
}

/// Whether two messages to one word may travel as one: an update by a value, which has an order with nothing.
constexpr bool may_combine(Operation operation) {
  return operation >= Operation::kAdd && operation <= Operation::kXor;
}

/// The value word of the one message that does what these two do. Requires may_combine() and the operation's
/// operand.
inline std::uint64_t combined(Command command, std::uint64_t first, std::uint64_t second) {
  return with_update(command, [&]<Operation O, class T>() {
    const T both = updated<O>(value_of<T>(first), value_of<T>(second));
    std::uint64_t word = 0;
    std::memcpy(&word, &both, sizeof both);
    return word;
  });
}

}  // namespace esker
