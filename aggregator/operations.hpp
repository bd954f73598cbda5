// The table of built-in operations: which operand types each has. Both appliers, the host's and lanes', use
// it.
#pragma once

#include <cstdint>

#include <esker/aggregator/command.hpp>
#include <esker/device/platform.hpp>

namespace esker {

/// The operand of a put of 16 bytes, which is stored as two halves.
struct Bytes16 {
  std::uint64_t halves[2];
};

/// What the sign of an integer is to an applier: kMerged calls min and max alone with signed types, since the
/// other operations do the same to both.
enum class Signs { kApart, kMerged };

namespace detail {

template <Operation O, class F>
ESKER_HD constexpr auto with_bytes(Operand operand, const F& f) {
  switch (operand) {
    case Operand::kBytes1:
      return f.template operator()<O, std::uint8_t>();
    case Operand::kBytes2:
      return f.template operator()<O, std::uint16_t>();
    case Operand::kBytes4:
      return f.template operator()<O, std::uint32_t>();
    case Operand::kBytes16:
      return f.template operator()<O, Bytes16>();
    default:
      return f.template operator()<O, std::uint64_t>();
  }
}

template <Operation O, class F>
ESKER_HD constexpr auto with_word(Operand operand, const F& f) {
  if (operand == Operand::kBytes4) return f.template operator()<O, std::uint32_t>();
  return f.template operator()<O, std::uint64_t>();
}

template <Operation O, Signs S, class F>
ESKER_HD constexpr auto with_integer(Operand operand, const F& f) {
  if constexpr (S == Signs::kMerged && O != Operation::kMin && O != Operation::kMax) {
    if (operand == Operand::kInt32 || operand == Operand::kUint32)
      return f.template operator()<O, std::uint32_t>();
    return f.template operator()<O, std::uint64_t>();
  } else {
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
}

template <Operation O, Signs S, class F>
ESKER_HD constexpr auto with_number(Operand operand, const F& f) {
  if (operand == Operand::kFloat) return f.template operator()<O, float>();
  if (operand == Operand::kDouble) return f.template operator()<O, double>();
  return with_integer<O, S>(operand, f);
}

}  // namespace detail

/// f.operator()<O, T>() for an operation that changes a number, kInc to kXor, and the type of its operand.
template <Signs S = Signs::kApart, class F>
ESKER_HD constexpr auto with_update(Command command, const F& f) {
  switch (command.operation) {
    case Operation::kInc:
      return detail::with_integer<Operation::kInc, S>(command.operand, f);
    case Operation::kMin:
      return detail::with_number<Operation::kMin, S>(command.operand, f);
    case Operation::kMax:
      return detail::with_number<Operation::kMax, S>(command.operand, f);
    case Operation::kAnd:
      return detail::with_integer<Operation::kAnd, S>(command.operand, f);
    case Operation::kOr:
      return detail::with_integer<Operation::kOr, S>(command.operand, f);
    case Operation::kXor:
      return detail::with_integer<Operation::kXor, S>(command.operand, f);
    default:
      return detail::with_number<Operation::kAdd, S>(command.operand, f);
  }
}

/// The same for every built-in operation that asks for no reply. A put's T is an unsigned integer, or
/// Bytes16, and so is that of a reply without a handler, which is a put. Requires that message_words(command)
/// is not 0.
template <Signs S = Signs::kApart, class F>
ESKER_HD constexpr auto with_operation(Command command, const F& f) {
  if (command.operation == Operation::kPut || command.operation == Operation::kReply)
    return detail::with_bytes<Operation::kPut>(command.operand, f);
  return with_update<S>(command, f);
}

/// The same for every request. A value that is only moved has an unsigned type, or Bytes16.
template <class F>
ESKER_HD constexpr auto with_request(Command command, const F& f) {
  constexpr auto kSigns = Signs::kMerged;
  switch (command.operation) {
    case Operation::kGet:
      return detail::with_bytes<Operation::kGet>(command.operand, f);
    case Operation::kFetchInc:
      return detail::with_integer<Operation::kFetchInc, kSigns>(command.operand, f);
    case Operation::kFetchAnd:
      return detail::with_integer<Operation::kFetchAnd, kSigns>(command.operand, f);
    case Operation::kFetchOr:
      return detail::with_integer<Operation::kFetchOr, kSigns>(command.operand, f);
    case Operation::kFetchXor:
      return detail::with_integer<Operation::kFetchXor, kSigns>(command.operand, f);
    case Operation::kSwap:
      return detail::with_word<Operation::kSwap>(command.operand, f);
    case Operation::kCompareSwap:
      return detail::with_word<Operation::kCompareSwap>(command.operand, f);
    default:
      return detail::with_number<Operation::kFetchAdd, kSigns>(command.operand, f);
  }
}

}  // namespace esker
