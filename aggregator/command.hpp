// What a message asks for: operation, type, and for active messages the handler.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>

namespace esker {

enum class Operation : std::uint8_t {
  kPut = 1,
  kInc,  // add 1; the only operation without a value word
  kAdd,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kActiveMessage,
  // Requests: the PE that applies one sends a kReply to the PE that asked.
  kGet,
  kFetchInc,
  kFetchAdd,
  kFetchAnd,
  kFetchOr,
  kFetchXor,
  kSwap,
  kCompareSwap,
  kReply,  // a put, or an active message if the command has a handler
  // A put, and then an update of the word at another address of the same PE.
  kPutSetSignal,
  kPutAddSignal,
};

/// The operand's type. kBytes1 .. kBytes16 are for operations that do not look at the value.
enum class Operand : std::uint8_t {
  kNone = 0,
  kBytes1,
  kBytes2,
  kBytes4,
  kBytes8,
  kBytes16,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat,
  kDouble,
};

/// Most 8-byte words that a message has: the address word and 64 bytes of arguments.
inline constexpr std::uint32_t kMaxMessageWords = 9;
inline constexpr std::uint32_t kMaxArgumentBytes = 64;

/// One for all messages of a package, and of a run in a node buffer. Travels as one 32-bit word.
struct Command {
  Operation operation;
  Operand operand;
  std::uint16_t handler;  // index of the registered handler; of a request, whom its reply calls; 0: none

  ESKER_HD constexpr std::uint32_t word() const {
    return static_cast<std::uint32_t>(operation) | static_cast<std::uint32_t>(operand) << 8 |
           static_cast<std::uint32_t>(handler) << 16;
  }
  ESKER_HD static constexpr Command from_word(std::uint32_t word) {
    return {static_cast<Operation>(word & 0xff), static_cast<Operand>(word >> 8 & 0xff),
            static_cast<std::uint16_t>(word >> 16)};
  }
};

/// Bytes of the heap that an operation on this operand touches; 0 where there is no such operand.
ESKER_HD constexpr std::uint32_t operand_bytes(Operand operand) {
  switch (operand) {
    case Operand::kBytes1:
      return 1;
    case Operand::kBytes2:
      return 2;
    case Operand::kBytes4:
    case Operand::kInt32:
    case Operand::kUint32:
    case Operand::kFloat:
      return 4;
    case Operand::kBytes8:
    case Operand::kInt64:
    case Operand::kUint64:
    case Operand::kDouble:
      return 8;
    case Operand::kBytes16:
      return 16;
    case Operand::kNone:
      return 0;
  }
  return 0;
}

/// The message asks for a reply.
ESKER_HD constexpr bool is_request(Operation operation) {
  return operation >= Operation::kGet && operation <= Operation::kCompareSwap;
}
/// The message calls a handler where it arrives.
ESKER_HD constexpr bool is_call(Command command) {
  return command.operation == Operation::kActiveMessage ||
         (command.operation == Operation::kReply && command.handler != 0);
}
/// A call with as many bytes as it likes: its words are the address, their number and the bytes.
ESKER_HD constexpr bool is_bytes_call(Command command) {
  return command.operation == Operation::kActiveMessage && command.operand == Operand::kBytes1;
}
/// A put with a signal.
ESKER_HD constexpr bool has_signal(Operation operation) {
  return operation == Operation::kPutSetSignal || operation == Operation::kPutAddSignal;
}
/// Applying it may send messages.
ESKER_HD constexpr bool may_send(Command command) {
  return is_call(command) || is_request(command.operation);
}

/// Words of a message of a built-in operation; 0 where operation and operand do not go together, and
/// where the handler decides. Of a request: its address, its operands and where its reply goes, to which the
/// arguments of a handler are added (request_words()).
constexpr std::uint32_t message_words(Command command) {
  const bool is_put = command.operand >= Operand::kBytes1 && command.operand <= Operand::kBytes16;
  const bool is_swap = command.operand == Operand::kBytes4 || command.operand == Operand::kBytes8;
  const bool is_number = command.operand >= Operand::kInt32 && command.operand <= Operand::kDouble;
  const bool is_integer = is_number && command.operand <= Operand::kUint64;
  switch (command.operation) {
    case Operation::kPut:
      return !is_put ? 0 : command.operand == Operand::kBytes16 ? 3 : 2;
    case Operation::kInc:
      return is_integer ? 1 : 0;
    case Operation::kAdd:
    case Operation::kMin:
    case Operation::kMax:
      return is_number ? 2 : 0;
    case Operation::kAnd:
    case Operation::kOr:
    case Operation::kXor:
      return is_integer ? 2 : 0;
    case Operation::kGet:
      return is_put ? 2 : 0;
    case Operation::kFetchInc:
      return is_integer ? 2 : 0;
    case Operation::kFetchAdd:
      return is_number ? 3 : 0;
    case Operation::kFetchAnd:
    case Operation::kFetchOr:
    case Operation::kFetchXor:
      return is_integer ? 3 : 0;
    case Operation::kSwap:
      return is_swap ? 3 : 0;
    case Operation::kCompareSwap:
      return is_swap ? 4 : 0;
    case Operation::kReply:
      return !is_put ? 0 : command.operand == Operand::kBytes16 ? 3 : 2;
    case Operation::kPutSetSignal:
    case Operation::kPutAddSignal:
      return !is_put ? 0 : command.operand == Operand::kBytes16 ? 5 : 4;
    case Operation::kActiveMessage:
      return 0;
  }
  return 0;
}

/// A request without a handler mostly travels in a word less: its address and its reply's, each in units of
/// the operand's bytes, are the halves of one word, the address the lower one.
constexpr bool is_packed(Command command, std::uint32_t words) {
  return is_request(command.operation) && command.handler == 0 && words + 1 == message_words(command);
}
inline constexpr std::uint32_t kPackedBits = 32;
/// log2(bytes) of an operand.
constexpr std::uint32_t operand_shift(Operand operand) {
  const std::uint32_t bytes = operand_bytes(operand);
  return (bytes > 1 ? 1 : 0) + (bytes > 2 ? 1 : 0) + (bytes > 4 ? 1 : 0) + (bytes > 8 ? 1 : 0);
}
constexpr std::uint64_t packed_addresses(std::uint64_t target, std::uint64_t reply_to, std::uint32_t shift) {
  return target >> shift | reply_to >> shift << kPackedBits;
}
constexpr std::uint64_t packed_target(std::uint64_t word, std::uint32_t shift) {
  return (word & ((std::uint64_t{1} << kPackedBits) - 1)) << shift;
}
constexpr std::uint64_t packed_reply_to(std::uint64_t word, std::uint32_t shift) {
  return word >> kPackedBits << shift;
}

/// The reply to a request: the value's bytes, or the call of the handler that it names.
ESKER_HD constexpr Command reply_to(Command request) {
  if (request.handler != 0) return {Operation::kReply, Operand::kNone, request.handler};
  if (request.operand <= Operand::kBytes16) return {Operation::kReply, request.operand, 0};
  return {Operation::kReply, operand_bytes(request.operand) == 4 ? Operand::kBytes4 : Operand::kBytes8, 0};
}

/// Words of the value in a reply: one, or the two of 16 bytes.
ESKER_HD constexpr std::uint32_t value_words(Operand operand) { return operand == Operand::kBytes16 ? 2 : 1; }

/// Words of the reply to a request of `width` words.
ESKER_HD constexpr std::uint32_t reply_words(Command request, std::uint32_t width) {
  if (request.handler == 0) return 1 + value_words(request.operand);
  return 1 + operand_bytes(request.operand) / 8 + width - message_words(request);
}

/// Words of a handler's arguments that its request carries: all but those that the value fills whole.
ESKER_HD constexpr std::uint32_t carried_words(Operand operand, std::uint32_t handler_words) {
  const std::uint32_t filled = operand_bytes(operand) / 8;
  return handler_words - 1 - filled;
}

/// Word 0 of every message in a package: destination PE in the upper 16 bits, heap offset in the rest.
inline constexpr std::uint32_t kOffsetBits = 48;
inline constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kOffsetBits) - 1;
inline constexpr std::uint32_t kMaxPes = 1u << (64 - kOffsetBits);

/// Who made a call, for error messages.
struct Caller {
  bool is_handler;
  std::uint32_t lane;
  std::uint64_t group;
};

ESKER_HD constexpr std::uint64_t address_word(std::uint32_t pe, std::uint64_t offset) {
  return static_cast<std::uint64_t>(pe) << kOffsetBits | offset;
}

}  // namespace esker
