// The operations of the program itself, beside those of its lanes: members of Runtime.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <esker/aggregator/command.hpp>
#include <esker/shmem.hpp>

namespace esker {

namespace detail {
struct HostMessages;
}

/// What lanes ask by shmem_put(item, ...) and the rest, the program asks by rt.put(...): the same operations,
/// contracts and misuse, wherever the heap stands.
///
/// Contract. Local; the user's thread. Messages gather like those of lanes. They leave when a buffer is full,
///           and with the next call that waits (quiet(), barrier_all(), wait_until(), a collective one) or
///           launches a kernel. Those to this PE travel too.
/// Progress. A call may wait for a buffer, and then does what a waiting call does.
class ESKER_API HostOperations {
 public:
  HostOperations(const HostOperations&) = delete;
  HostOperations& operator=(const HostOperations&) = delete;

  template <Putable T>
  void put(T* target, std::type_identity_t<T> value, std::uint32_t pe) {
    send("put", Operation::kPut, detail::bytes_operand<T>(), target, value, pe);
  }
  template <Integer32Or64 T>
  void inc(T* target, std::uint32_t pe) {
    const std::uint64_t words[1] = {address("inc", target, sizeof(T), sizeof(T), pe)};
    post({Operation::kInc, detail::number_operand<T>(), 0}, 1, 1, words);
  }
  template <Number32Or64 T>
  void add(T* target, std::type_identity_t<T> value, std::uint32_t pe) {
    send("add", Operation::kAdd, detail::number_operand<T>(), target, value, pe);
  }
  template <Number32Or64 T>
  void min(T* target, std::type_identity_t<T> value, std::uint32_t pe) {
    send("min", Operation::kMin, detail::number_operand<T>(), target, value, pe);
  }
  template <Number32Or64 T>
  void max(T* target, std::type_identity_t<T> value, std::uint32_t pe) {
    send("max", Operation::kMax, detail::number_operand<T>(), target, value, pe);
  }
  template <Integer32Or64 T>
  void bit_and(T* target, std::type_identity_t<T> value, std::uint32_t pe) {
    send("bit_and", Operation::kAnd, detail::number_operand<T>(), target, value, pe);
  }
  template <Integer32Or64 T>
  void bit_or(T* target, std::type_identity_t<T> value, std::uint32_t pe) {
    send("bit_or", Operation::kOr, detail::number_operand<T>(), target, value, pe);
  }
  template <Integer32Or64 T>
  void bit_xor(T* target, std::type_identity_t<T> value, std::uint32_t pe) {
    send("bit_xor", Operation::kXor, detail::number_operand<T>(), target, value, pe);
  }
  /// shmem_am().
  template <class Target, class Arguments>
  void call(Handler<Target, Arguments> handler, Target* target, std::type_identity_t<Arguments> arguments,
            std::uint32_t pe) {
    require_handler("call", handler.index);
    std::uint64_t words[Handler<Target, Arguments>::kWords] = {
        address("call", target, sizeof(Target), alignof(Target), pe)};
    std::memcpy(words + 1, &arguments, sizeof arguments);
    const Command command{Operation::kActiveMessage, Operand::kNone, handler.index};
    post(command, Handler<Target, Arguments>::kWords, 1, words);
  }

  /// shmem_put_signal().
  template <Putable T>
  void put_signal(T* target, std::type_identity_t<T> value, std::uint64_t* signal, std::uint64_t signal_value,
                  SignalUpdate update, std::uint32_t pe) {
    constexpr std::uint32_t kValue = sizeof(T) == 16 ? 2 : 1;
    std::uint64_t words[3 + kValue] = {address("put_signal", target, sizeof(T), sizeof(T), pe)};
    std::memcpy(words + 1, &value, sizeof value);
    words[1 + kValue] = address("put_signal", signal, 8, 8, pe) & kOffsetMask;
    words[2 + kValue] = signal_value;
    post({update == SignalUpdate::kSet ? Operation::kPutSetSignal : Operation::kPutAddSignal,
          detail::bytes_operand<T>(), 0},
         3 + kValue, 1, words);
  }

  /// shmem_ptr of OpenSHMEM: where this PE's kernels reach `target` of PE `pe` by loads and stores of their
  /// own; `target` itself for this PE, null where only messages do. Valid as long as the Runtime. A load
  /// finds what a get would; a plain store may be lost beside messages to that word. In a GPU's memory the
  /// program itself does not reach it.
  template <class T>
  T* ptr(T* target, std::uint32_t pe) const {
    return reinterpret_cast<T*>(reach(address("ptr", target, sizeof(T), alignof(T), pe)));
  }

  // Requests. `result` is in this PE's part of the heap, or made by then().

  template <Putable T, detail::CheckedReplyFor<T> Result>
  void get(Result result, const T* source, std::uint32_t pe) {
    ask("get", {Operation::kGet, detail::bytes_operand<T>(), 0}, result, source, pe, detail::Operands<0>{});
  }
  template <Integer32Or64 T, detail::CheckedReplyFor<T> Result>
  void fetch_inc(Result result, T* target, std::uint32_t pe) {
    ask("fetch_inc", {Operation::kFetchInc, detail::number_operand<T>(), 0}, result, target, pe,
        detail::Operands<0>{});
  }
  template <Number32Or64 T, detail::CheckedReplyFor<T> Result>
  void fetch_add(Result result, T* target, std::type_identity_t<T> value, std::uint32_t pe) {
    fetch("fetch_add", Operation::kFetchAdd, result, target, value, pe);
  }
  template <Integer32Or64 T, detail::CheckedReplyFor<T> Result>
  void fetch_and(Result result, T* target, std::type_identity_t<T> value, std::uint32_t pe) {
    fetch("fetch_and", Operation::kFetchAnd, result, target, value, pe);
  }
  template <Integer32Or64 T, detail::CheckedReplyFor<T> Result>
  void fetch_or(Result result, T* target, std::type_identity_t<T> value, std::uint32_t pe) {
    fetch("fetch_or", Operation::kFetchOr, result, target, value, pe);
  }
  template <Integer32Or64 T, detail::CheckedReplyFor<T> Result>
  void fetch_xor(Result result, T* target, std::type_identity_t<T> value, std::uint32_t pe) {
    fetch("fetch_xor", Operation::kFetchXor, result, target, value, pe);
  }
  template <Swappable T, detail::CheckedReplyFor<T> Result>
  void swap(Result result, T* target, std::type_identity_t<T> value, std::uint32_t pe) {
    ask("swap", {Operation::kSwap, detail::bytes_operand<T>(), 0}, result, target, pe,
        detail::Operands<1>{{detail::value_word(value)}});
  }
  template <Swappable T, detail::CheckedReplyFor<T> Result>
  void compare_swap(Result result, T* target, std::type_identity_t<T> expected,
                    std::type_identity_t<T> desired, std::uint32_t pe) {
    ask("compare_swap", {Operation::kCompareSwap, detail::bytes_operand<T>(), 0}, result, target, pe,
        detail::Operands<2>{{detail::value_word(expected), detail::value_word(desired)}});
  }

 protected:
  HostOperations() = default;
  ~HostOperations() = default;

 private:
  friend struct detail::HostMessages;
  // In the library; `this` is a Runtime.
  std::uint64_t address(const char* call, const void* target, std::uint64_t bytes, std::uint64_t alignment,
                        std::uint32_t pe, detail::TargetOf of = detail::TargetOf::kCall) const;
  std::byte* reach(std::uint64_t address) const;
  static void require_handler(const char* call, std::uint16_t handler);
  /// `count` messages of `width` words: word r of message i is rows[r * count + i].
  void post(Command command, std::uint32_t width, std::uint32_t count, const std::uint64_t* rows);
  std::uint32_t own_pe() const noexcept;
  /// Of `bytes` bytes in this PE's heap. Misuse: they are not, and `what` says what they are; not aligned.
  std::uint64_t offset_of(const char* call, const char* what, const void* at, std::uint64_t bytes,
                          std::uint64_t alignment) const;
  /// It is memory that kernels reach and the host does not.
  bool is_on_device(const void* at) const;

  template <class T>
  void send(const char* call, Operation operation, Operand operand, T* target, const T& value,
            std::uint32_t pe) {
    std::uint64_t words[3] = {address(call, target, sizeof(T), sizeof(T), pe), 0, 0};
    std::memcpy(words + 1, &value, sizeof value);
    post({operation, operand, 0}, sizeof(T) == 16 ? 3 : 2, 1, words);
  }

  template <class T, class Result>
  void fetch(const char* call, Operation operation, const Result& result, T* target, const T& value,
             std::uint32_t pe) {
    ask(call, {operation, detail::number_operand<T>(), 0}, result, target, pe,
        detail::Operands<1>{{detail::value_word(value)}});
  }

  template <std::uint32_t N, class T, class Result>
  void ask(const char* call, Command command, const Result& result, const T* target, std::uint32_t pe,
           const detail::Operands<N>& operands) {
    std::uint64_t words[kMaxMessageWords] = {address(call, target, sizeof(T), sizeof(T), pe)};
    std::uint32_t width = 1;
    if constexpr (N > 0) {
      for (std::uint32_t r = 0; r < N; ++r) words[width++] = operands.words[r];
    }
    if constexpr (std::is_pointer_v<Result>) {
      words[width++] =
          address(call, result, sizeof(T), sizeof(T), own_pe(), detail::TargetOf::kReply) & kOffsetMask;
    } else {
      using Reply = detail::ReplyTo<T, Result>;
      static_assert(3 + Reply::kWords <= kMaxMessageWords,
                    "the arguments of the reply's handler are too long to travel with the request");
      require_handler(call, result.handler.index);
      command.handler = result.handler.index;
      words[width++] = address(call, result.target, sizeof *result.target, alignof(decltype(*result.target)),
                               own_pe(), detail::TargetOf::kReply) &
                       kOffsetMask;
      std::uint64_t arguments[Reply::kArguments] = {};
      std::memcpy(arguments, &result.arguments, sizeof result.arguments);
      for (std::uint32_t r = Reply::kFilled; r < Reply::kArguments; ++r) words[width++] = arguments[r];
    }
    post(command, width, 1, words);
  }
};

namespace detail {
/// Many messages of the program's at once, for what checks them itself: distributed arrays. Calls
/// HostOperations.
struct HostMessages {
  static void post(HostOperations& program, Command command, std::uint32_t width, std::uint32_t count,
                   const std::uint64_t* rows) {
    program.post(command, width, count, rows);
  }
  static std::uint64_t offset_of(const HostOperations& program, const char* call, const char* what,
                                 const void* at, std::uint64_t bytes, std::uint64_t alignment) {
    return program.offset_of(call, what, at, bytes, alignment);
  }
  static bool is_on_device(const HostOperations& program, const void* at) { return program.is_on_device(at); }
};
}  // namespace detail

}  // namespace esker
