// What the built-in operations make of a word's value.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <esker/aggregator/command.hpp>

namespace esker {

/// The operand in the value word of a message.
template <class T>
T value_of(std::uint64_t word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
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

namespace detail {
template <Operation O, class F>
auto with_integer(Operand operand, F f) {
  switch (operand) {
    case Operand::kInt32:
      return f.template operator()<O, std::int32_t>();
    case Operand::kUint32:
      return f.template operator()<O, std::uint32_t>();
    case Operand::kInt64:
      return f.template operator()<O, std::int64_t>();
    default:
      return f.template operator()<O, std::uint64_t>();
  }
}
template <Operation O, class F>
auto with_number(Operand operand, F f) {
  if (operand == Operand::kFloat) return f.template operator()<O, float>();
  if (operand == Operand::kDouble) return f.template operator()<O, double>();
  return with_integer<O>(operand, f);
}
}  // namespace detail

/// f.operator()<O, T>() for the command's operation, kInc to kXor, and its operand's type.
template <class F>
auto with_update(Command command, F f) {
  switch (command.operation) {
    case Operation::kInc:
      return detail::with_integer<Operation::kInc>(command.operand, f);
    case Operation::kMin:
      return detail::with_number<Operation::kMin>(command.operand, f);
    case Operation::kMax:
      return detail::with_number<Operation::kMax>(command.operand, f);
    case Operation::kAnd:
      return detail::with_integer<Operation::kAnd>(command.operand, f);
    case Operation::kOr:
      return detail::with_integer<Operation::kOr>(command.operand, f);
    case Operation::kXor:
      return detail::with_integer<Operation::kXor>(command.operand, f);
    default:
      return detail::with_number<Operation::kAdd>(command.operand, f);
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
