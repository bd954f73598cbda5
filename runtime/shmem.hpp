// What the operations of <esker/shmem.hpp> are made of: the check of PE and target, and the words of a
// message.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>

#include <esker/aggregator/command.hpp>
#include <esker/handler.hpp>
#include <esker/net/handler.hpp>
#include <esker/net/sender_access.hpp>
#if defined(ESKER_DEVICE_COMPILER)
#include <esker/net/gpu/pe_state.hpp>
#endif

namespace esker {

/// Who may send: WorkItem, GroupItem, HandlerContext.
template <class C>
concept Sender = requires(C& context, const std::uint64_t (&words)[2]) {
  { context.pe() } -> std::convertible_to<std::uint32_t>;
  { context.n_pes() } -> std::convertible_to<std::uint32_t>;
  { detail::SenderAccess::heap(context).base } -> std::convertible_to<std::byte*>;
  { detail::SenderAccess::caller(context) } -> std::same_as<Caller>;
  detail::SenderAccess::post(context, Command{}, words);
};

namespace detail {

/// Says in the compiler's first line what the first argument should be: of a concept it says that much later.
template <class C>
struct SenderOrError {
  static_assert(
      Sender<C>,
      "the first argument of a shmem_ call is the lane or the handler's context that sends: a WorkItem, "
      "a GroupItem&, a KernelItem& or a HandlerContext&, and not the Runtime");
  static constexpr bool value = Sender<C>;
};
template <class C>
concept CheckedSender = SenderOrError<C>::value;

template <class T>
ESKER_HD constexpr Operand number_operand() {
  if constexpr (std::is_same_v<T, float>)
    return Operand::kFloat;
  else if constexpr (std::is_same_v<T, double>)
    return Operand::kDouble;
  else if constexpr (std::is_signed_v<T>)
    return sizeof(T) == 4 ? Operand::kInt32 : Operand::kInt64;
  else
    return sizeof(T) == 4 ? Operand::kUint32 : Operand::kUint64;
}

template <class T>
ESKER_HD constexpr Operand bytes_operand() {
  switch (sizeof(T)) {
    case 1:
      return Operand::kBytes1;
    case 2:
      return Operand::kBytes2;
    case 4:
      return Operand::kBytes4;
    case 8:
      return Operand::kBytes8;
    default:
      return Operand::kBytes16;
  }
}

/// In place of word 0 on a GPU, where a bad call is told to the host, which ends the job, and sends nothing.
inline constexpr std::uint64_t kNoAddress = ~std::uint64_t{0};

/// Whose target a call checks: its own, or that of the reply to its request.
enum class TargetOf : std::uint8_t { kCall, kReply };

/// The caller of `call`, for messages.
ESKER_API std::string name_caller(const char* call, Caller caller);
/// Aborts the job. Everything by value: a context whose address goes nowhere stays in registers.
[[noreturn, gnu::cold]] ESKER_API void bad_target(Caller caller, const char* call, TargetOf of,
                                                  std::uint64_t offset, std::uint64_t bytes,
                                                  std::uint64_t alignment, std::uint64_t heap_bytes,
                                                  std::uint32_t pe, std::uint32_t n_pes);
[[noreturn, gnu::cold]] ESKER_API void no_handler(Caller caller, const char* call);
/// The same of the program's own calls.
[[noreturn, gnu::cold]] void bad_host_target(const char* call, TargetOf of, std::uint64_t offset,
                                             std::uint64_t bytes, std::uint64_t alignment,
                                             std::uint64_t heap_bytes, std::uint32_t pe, std::uint32_t n_pes);
[[noreturn, gnu::cold]] void no_host_handler(const char* call);
/// Of a distributed array.
[[noreturn, gnu::cold]] ESKER_API void bad_index(Caller caller, const char* call, std::uint64_t index,
                                                 std::uint64_t size);
[[noreturn, gnu::cold]] ESKER_API void bad_host_index(const char* call, std::uint64_t index,
                                                      std::uint64_t size);

#if defined(ESKER_ON_GPU)
ESKER_NOINLINE ESKER_HD inline void report_bad_call(const gpu::PeState& pe_state, gpu::Fault fault,
                                                    Caller caller, const char* call, TargetOf of,
                                                    std::uint64_t offset, std::uint64_t bytes,
                                                    std::uint32_t alignment, std::uint32_t pe) {
  gpu::FaultReport report{fault, pe, caller.lane, caller.is_handler ? 1u : 0u,     caller.group, offset,
                          bytes, {}, alignment,   of == TargetOf::kReply ? 1u : 0u};
  for (std::uint32_t i = 0; i + 1 < sizeof report.call && call[i] != 0; ++i) report.call[i] = call[i];
  gpu::report_fault(pe_state, report);
}
#endif

/// Below the heap the offset has wrapped to something above it.
ESKER_HD constexpr bool is_outside(std::uint64_t heap_bytes, std::uint64_t offset, std::uint64_t bytes) {
  return heap_bytes < bytes || offset > heap_bytes - bytes;
}

/// Word 0 of the message, once PE and target are known to be right.
template <class Context>
ESKER_HD std::uint64_t checked_address(const Context& context, const char* call, const void* target,
                                       std::uint64_t bytes, std::uint32_t alignment, std::uint32_t pe,
                                       TargetOf of = TargetOf::kCall) {
  const auto offset =
      static_cast<std::uint64_t>(static_cast<const std::byte*>(target) - SenderAccess::heap(context).base);
  // A heap ends at a multiple of any alignment, so an aligned target as large as that is in it with its first
  // byte.
  const std::uint64_t end = SenderAccess::heap(context).bytes;
  const bool outside = bytes == alignment ? offset >= end : is_outside(end, offset, bytes);
  if (pe >= context.n_pes() || outside || (offset & (alignment - 1)) != 0) [[unlikely]] {
#if defined(ESKER_ON_GPU)
    if constexpr (kHostCallsDeviceCode) {
      if (!is_lane())
        bad_target(SenderAccess::caller(context), call, of, offset, bytes, alignment,
                   SenderAccess::heap(context).bytes, pe, context.n_pes());
    }
    report_bad_call(*SenderAccess::pe_state(context),
                    pe >= context.n_pes()            ? gpu::Fault::kBadPe
                    : is_outside(end, offset, bytes) ? gpu::Fault::kBadTarget
                                                     : gpu::Fault::kMisaligned,
                    SenderAccess::caller(context), call, of, offset, bytes, alignment, pe);
    return kNoAddress;
#else
    bad_target(SenderAccess::caller(context), call, of, offset, bytes, alignment,
               SenderAccess::heap(context).bytes, pe, context.n_pes());
#endif
  }
  return address_word(pe, offset);
}

/// False, on a GPU, where the host is told: a default Handler, which stands for none.
template <class Context>
ESKER_HD bool is_registered(const Context& context, std::uint16_t handler, const char* call) {
#if !defined(ESKER_ON_GPU)
  // Here, or a compiler that moves the rest out of line hands it the context's address.
  const Caller caller = SenderAccess::caller(context);
#endif
  if (handler != 0) [[likely]]
    return true;
#if defined(ESKER_ON_GPU)
  if constexpr (kHostCallsDeviceCode) {
    if (!is_lane()) no_handler(SenderAccess::caller(context), call);
  }
  report_bad_call(*SenderAccess::pe_state(context), gpu::Fault::kNoHandler, SenderAccess::caller(context),
                  call, TargetOf::kCall, 0, 0, 1, 0);
  return false;
#else
  no_handler(caller, call);
#endif
}

template <class T>
ESKER_HD std::uint64_t value_word(const T& value) {
  std::uint64_t word = 0;
  __builtin_memcpy(&word, &value, sizeof value);
  return word;
}

/// `words[0]` is what checked_address() returned.
template <class Context, std::uint32_t Words, class... Election>
ESKER_HD void post(Context&& context, Command command, const std::uint64_t (&words)[Words],
                   Election&&... election) {
#if defined(ESKER_ON_GPU)
  if (words[0] == kNoAddress) return;
#endif
  SenderAccess::post(context, command, words, std::forward<Election>(election)...);
}

template <class Context, class T, class... Election>
ESKER_HD void send_value(Context&& context, const char* call, Operation operation, T* target,
                         std::type_identity_t<T> value, std::uint32_t pe, Election&&... election) {
  const std::uint64_t words[2] = {checked_address(context, call, target, sizeof(T), sizeof(T), pe),
                                  value_word(value)};
  post(context, {operation, number_operand<T>(), 0}, words, std::forward<Election>(election)...);
}

/// Whether the reply to a request for a T may go there.
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

/// The words of a request behind its operands: where its reply goes, and the arguments that it carries for
/// the reply's handler.
template <class T, class Result>
struct ReplyTo;
template <class T>
struct ReplyTo<T, T*> {
  static constexpr std::uint32_t kWords = 1;
  template <class Context>
  ESKER_HD static std::uint16_t handler(const Context& /*context*/, const char* /*call*/, T* /*result*/) {
    return 0;
  }
  template <class Context>
  ESKER_HD static bool write(const Context& context, const char* call, T* result, std::uint64_t* words) {
    words[0] = checked_address(context, call, result, sizeof(T), sizeof(T), context.pe(), TargetOf::kReply);
    return words[0] != kNoAddress;
  }
};
template <class T, class Target, class Arguments>
struct ReplyTo<T, Then<Target, Arguments>> {
  static constexpr std::uint32_t kFilled = sizeof(T) / 8;  // words of the arguments that the value fills
  static constexpr std::uint32_t kArguments = Handler<Target, Arguments>::kWords - 1;
  static constexpr std::uint32_t kWords = 1 + kArguments - kFilled;
  template <class Context>
  ESKER_HD static std::uint16_t handler(const Context& context, const char* call,
                                        const Then<Target, Arguments>& then) {
    return is_registered(context, then.handler.index, call) ? then.handler.index : std::uint16_t{0};
  }
  template <class Context>
  ESKER_HD static bool write(const Context& context, const char* call, const Then<Target, Arguments>& then,
                             std::uint64_t* words) {
    std::uint64_t arguments[kArguments] = {};
    __builtin_memcpy(arguments, &then.arguments, sizeof then.arguments);
    for (std::uint32_t r = kFilled; r < kArguments; ++r) words[1 + r - kFilled] = arguments[r];
    words[0] = checked_address(context, call, then.target, sizeof(Target), alignof(Target), context.pe(),
                               TargetOf::kReply);
    return then.handler.index != 0 && words[0] != kNoAddress;
  }
};

/// The words between the address and the reply's.
template <std::uint32_t N>
struct Operands {
  std::uint64_t words[N == 0 ? 1 : N];
};

/// Whether the lane that names the election has a message for it.
template <class Election>
ESKER_HD bool has_message(const Election& election) {
  if constexpr (requires { election.active; }) return election.active;
  return true;
}

template <std::uint32_t N, class T, class Context, class Result, class... Election>
ESKER_HD void ask(Context&& context, const char* call, Command command, const Result& result, const T* target,
                  const Operands<N>& operands, std::uint32_t pe, Election&&... election) {
  using Reply = ReplyTo<T, Result>;
  static_assert(1 + N + Reply::kWords <= kMaxMessageWords,
                "the arguments of the reply's handler are too long to travel with the request");
  std::uint64_t words[1 + N + Reply::kWords] = {
      checked_address(context, call, target, sizeof(T), sizeof(T), pe)};
  if constexpr (N > 0) {
    for (std::uint32_t r = 0; r < N; ++r) words[1 + r] = operands.words[r];
  }
  command.handler = Reply::handler(context, call, result);
  if (!Reply::write(context, call, result, words + 1 + N)) return;  // on a GPU, which tells the host
  words[1 + N] &= kOffsetMask;
#if defined(ESKER_ON_GPU)
  // What a lane cannot do itself goes through its group's own packages, whatever the election.
  if ((... && has_message(election))) post(context, command, words);
#else
  post(context, command, words, std::forward<Election>(election)...);
#endif
}

template <class Context, class T, class Result, class... Election>
ESKER_HD void fetch(Context&& context, const char* call, Operation operation, const Result& result, T* target,
                    std::type_identity_t<T> value, std::uint32_t pe, Election&&... election) {
  ask<1>(context, call, {operation, number_operand<T>(), 0}, result, target, Operands<1>{{value_word(value)}},
         pe, std::forward<Election>(election)...);
}

/// A store that messages may race with; 16 bytes are two halves.
template <class T>
void store_here(T* target, const T& value) {
  if constexpr (sizeof(T) == 16) {
    std::uint64_t half[2];
    __builtin_memcpy(half, &value, sizeof half);
    auto* const at = reinterpret_cast<std::uint64_t*>(target);
    store_here(at, half[0]);
    store_here(at + 1, half[1]);
  } else {
    T copy = value;
    __atomic_store(target, &copy, __ATOMIC_RELAXED);
  }
}

}  // namespace detail

}  // namespace esker
