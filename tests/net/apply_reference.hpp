// What each command does to memory, one message at a time and without the library's loops.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <random>
#include <type_traits>
#include <vector>

#include <esker/aggregator/command.hpp>

namespace esker::testing {

/// Every request that calls no handler.
inline std::vector<Command> request_commands() {
  std::vector<Command> commands;
  for (int operation = static_cast<int>(Operation::kGet);
       operation <= static_cast<int>(Operation::kCompareSwap); ++operation) {
    for (int operand = 1; operand <= static_cast<int>(Operand::kDouble); ++operand) {
      const Command command{static_cast<Operation>(operation), static_cast<Operand>(operand), 0};
      if (message_words(command) != 0) commands.push_back(command);
    }
  }
  return commands;
}

/// Every command but active messages, requests and replies.
inline std::vector<Command> built_in_commands() {
  std::vector<Command> commands;
  for (int operation = 1; operation < static_cast<int>(Operation::kActiveMessage); ++operation) {
    for (int operand = 1; operand <= static_cast<int>(Operand::kDouble); ++operand) {
      const Command command{static_cast<Operation>(operation), static_cast<Operand>(operand), 0};
      if (message_words(command) != 0) commands.push_back(command);
    }
  }
  return commands;
}

inline bool is_floating(Operand operand) { return operand == Operand::kFloat || operand == Operand::kDouble; }

/// A word with a value of this operand in its low bytes; the other bytes mean nothing. Integers are extreme
/// at times, floating-point values are small whole numbers.
inline std::uint64_t random_word(std::mt19937_64& random, Operand operand) {
  constexpr std::uint64_t kExtremes[] = {0,
                                         ~std::uint64_t{0},
                                         0x7fffffff7fffffff,
                                         0x8000000080000000,
                                         std::uint64_t{1} << 63,
                                         ~(std::uint64_t{1} << 63)};
  std::uint64_t word = random();
  if (word % 4 == 0) word = kExtremes[random() % std::size(kExtremes)];
  const auto number = static_cast<double>(static_cast<std::int64_t>(random() % 4001) - 2000);
  if (operand == Operand::kDouble) std::memcpy(&word, &number, sizeof number);
  if (operand == Operand::kFloat) {
    const auto narrow = static_cast<float>(number);
    std::memcpy(&word, &narrow, sizeof narrow);
  }
  return word;
}

namespace detail {

template <class T>
T result_of(Operation operation, T old, T value) {
  switch (operation) {
    case Operation::kMin:
      return value < old ? value : old;
    case Operation::kMax:
      return value > old ? value : old;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const U a = static_cast<U>(old);
    const U b = static_cast<U>(value);
    switch (operation) {
      case Operation::kInc:
        return static_cast<T>(static_cast<U>(a + 1));
      case Operation::kAnd:
        return static_cast<T>(static_cast<U>(a & b));
      case Operation::kOr:
        return static_cast<T>(static_cast<U>(a | b));
      case Operation::kXor:
        return static_cast<T>(static_cast<U>(a ^ b));
      default:
        return static_cast<T>(static_cast<U>(a + b));
    }
  } else {
    return old + value;
  }
}

template <class T>
void update(Operation operation, std::byte* at, std::uint64_t word) {
  T old;
  T value;
  std::memcpy(&old, at, sizeof old);
  std::memcpy(&value, &word, sizeof value);
  old = result_of(operation, old, value);
  std::memcpy(at, &old, sizeof old);
}

}  // namespace detail

/// One message; `words` are its values.
inline void apply_one(Command command, std::byte* at, const std::vector<std::uint64_t>& words) {
  const std::uint64_t word = words.empty() ? 0 : words[0];
  switch (command.operand) {
    case Operand::kInt32:
      return detail::update<std::int32_t>(command.operation, at, word);
    case Operand::kUint32:
      return detail::update<std::uint32_t>(command.operation, at, word);
    case Operand::kInt64:
      return detail::update<std::int64_t>(command.operation, at, word);
    case Operand::kUint64:
      return detail::update<std::uint64_t>(command.operation, at, word);
    case Operand::kFloat:
      return detail::update<float>(command.operation, at, word);
    case Operand::kDouble:
      return detail::update<double>(command.operation, at, word);
    default:
      std::memcpy(at, words.data(), operand_bytes(command.operand));  // puts
  }
}

/// One request, whose operands are `words`: what the target held, in as many bytes as the operand has.
inline std::vector<std::byte> answer_one(Command command, std::byte* at,
                                         const std::vector<std::uint64_t>& words) {
  const std::uint32_t bytes = operand_bytes(command.operand);
  std::vector<std::byte> old(at, at + bytes);
  switch (command.operation) {
    case Operation::kFetchInc:
      apply_one({Operation::kInc, command.operand, 0}, at, {1});
      break;
    case Operation::kFetchAdd:
      apply_one({Operation::kAdd, command.operand, 0}, at, words);
      break;
    case Operation::kFetchAnd:
      apply_one({Operation::kAnd, command.operand, 0}, at, words);
      break;
    case Operation::kFetchOr:
      apply_one({Operation::kOr, command.operand, 0}, at, words);
      break;
    case Operation::kFetchXor:
      apply_one({Operation::kXor, command.operand, 0}, at, words);
      break;
    case Operation::kSwap:
      std::memcpy(at, words.data(), bytes);
      break;
    case Operation::kCompareSwap:
      if (std::memcmp(at, words.data(), bytes) == 0) std::memcpy(at, words.data() + 1, bytes);
      break;
    default:  // a get
      break;
  }
  return old;
}

}  // namespace esker::testing
