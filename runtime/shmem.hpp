// The operations: what any lane, or a handler, asks of any PE. All are non-blocking.
//
// Names follow OpenSHMEM, with the context first. `target` is a local address in the symmetric heap that
// stands for the same offset on PE `pe`. An operation is applied some time before quiet() on its PE or
// barrier_all() returns, exactly once; nothing else is promised about order (docs/reference/ordering.md).
//
// A target is aligned to its size: 1, 2, 4, 8 or 16 bytes; that of a handler as its type is (alignof). So it
// is wherever a SymmetricArray has an element of that type and size.
//
// Misuse, a PE that does not exist, a target outside the heap or misaligned, a Handler that nobody made,
// aborts the job with the values where the call is made, whichever PE it names.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <esker/aggregator/command.hpp>
#include <esker/runtime/active_message.hpp>

namespace esker {

/// Who may send: WorkItem, GroupItem, HandlerContext.
template <class C>
concept Sender = requires(C& context, Command command, const std::uint64_t (&words)[2]) {
  { context.pe() } -> std::convertible_to<std::uint32_t>;
  { context.n_pes() } -> std::convertible_to<std::uint32_t>;
  { context.heap().base } -> std::convertible_to<std::byte*>;
  { context.caller() } -> std::same_as<Caller>;
  context.post(command, words);
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

/// Aborts the job. Everything by value: a context whose address goes nowhere stays in registers.
[[noreturn, gnu::cold]] void bad_target(Caller caller, const char* call, std::uint64_t offset,
                                        std::uint64_t bytes, std::uint64_t alignment,
                                        std::uint64_t heap_bytes, std::uint32_t pe, std::uint32_t n_pes);
[[noreturn, gnu::cold]] void no_handler(Caller caller);

#if defined(ESKER_ON_GPU)
ESKER_NOINLINE ESKER_HD inline void report_bad_call(const gpu::PeState& pe_state, gpu::Fault fault,
                                                    Caller caller, const char* call, std::uint64_t offset,
                                                    std::uint64_t bytes, std::uint32_t alignment,
                                                    std::uint32_t pe) {
  gpu::HostWords::Report report{fault, pe, caller.lane, caller.is_handler ? 1u : 0u, caller.group, offset,
                                bytes, {}, alignment};
  for (std::uint32_t i = 0; i + 1 < sizeof report.call && call[i] != 0; ++i) report.call[i] = call[i];
  gpu::tell(pe_state, report);
}
#endif

/// Below the heap the offset has wrapped to something above it.
ESKER_HD constexpr bool is_outside(std::uint64_t heap_bytes, std::uint64_t offset, std::uint64_t bytes) {
  return heap_bytes < bytes || offset > heap_bytes - bytes;
}

/// Word 0 of the message, once PE and target are known to be right.
template <class Context>
ESKER_HD std::uint64_t checked_address(const Context& context, const char* call, const void* target,
                                       std::uint64_t bytes, std::uint32_t alignment, std::uint32_t pe) {
  const auto offset = static_cast<std::uint64_t>(static_cast<const std::byte*>(target) - context.heap().base);
  // A heap ends at a multiple of any alignment, so an aligned target as large as that is in it with its first
  // byte.
  const std::uint64_t end = context.heap().bytes;
  const bool outside = bytes == alignment ? offset >= end : is_outside(end, offset, bytes);
  if (pe >= context.n_pes() || outside || (offset & (alignment - 1)) != 0) [[unlikely]] {
#if defined(ESKER_ON_GPU)
    if constexpr (kHostCallsDeviceCode) {
      if (!is_lane())
        bad_target(context.caller(), call, offset, bytes, alignment, context.heap().bytes, pe,
                   context.n_pes());
    }
    report_bad_call(*context.pe_state(),
                    pe >= context.n_pes()            ? gpu::Fault::kBadPe
                    : is_outside(end, offset, bytes) ? gpu::Fault::kBadTarget
                                                     : gpu::Fault::kMisaligned,
                    context.caller(), call, offset, bytes, alignment, pe);
    return kNoAddress;
#else
    bad_target(context.caller(), call, offset, bytes, alignment, context.heap().bytes, pe, context.n_pes());
#endif
  }
  return address_word(pe, offset);
}

/// False, on a GPU, where the host is told: a default Handler, which stands for none.
template <class Context>
ESKER_HD bool is_registered(const Context& context, std::uint16_t handler) {
  if (handler != 0) [[likely]]
    return true;
#if defined(ESKER_ON_GPU)
  if constexpr (kHostCallsDeviceCode) {
    if (!is_lane()) no_handler(context.caller());
  }
  report_bad_call(*context.pe_state(), gpu::Fault::kNoHandler, context.caller(), "shmem_am", 0, 0, 1, 0);
  return false;
#else
  no_handler(context.caller());
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
  if constexpr (sizeof...(Election) == 0) {
    context.post(command, words);
  } else {
    context.post(command, words, std::forward<Election>(election)...);
  }
}

template <class Context, class T, class... Election>
ESKER_HD void send_value(Context&& context, const char* call, Operation operation, T* target,
                         std::type_identity_t<T> value, std::uint32_t pe, Election&&... election) {
  const std::uint64_t words[2] = {checked_address(context, call, target, sizeof(T), sizeof(T), pe),
                                  value_word(value)};
  post(context, {operation, number_operand<T>(), 0}, words, std::forward<Election>(election)...);
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
    std::atomic_ref<T>(*target).store(value, std::memory_order_relaxed);
  }
}

}  // namespace detail

template <class T>
concept Putable = std::is_trivially_copyable_v<T> &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
template <class T>
concept Integer32Or64 = std::integral<T> &&(sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
concept Number32Or64 = Integer32Or64<T> || std::same_as<T, float> || std::same_as<T, double>;

/// Stores `value` at a target aligned to its size, 16 bytes too, though they are stored as two halves. To
/// this PE it is a store, done on return. `election` is absent (auto-grouping), or one of device/election;
/// with one, a put to this PE travels like any other.
template <detail::CheckedSender Context, Putable T, class... Election>
ESKER_HD void shmem_put(Context&& context, T* target, std::type_identity_t<T> value, std::uint32_t pe,
                        Election&&... election) {
  const std::uint64_t address =
      detail::checked_address(context, "shmem_put", target, sizeof(T), sizeof(T), pe);
  if constexpr (sizeof...(Election) == 0) {
#if !defined( \
    ESKER_ON_GPU)  // there the outbox applies what is for this PE at once, and keeps the wave together
    if (pe == context.pe()) {
      detail::store_here(target, value);
      return;
    }
#endif
  }
  constexpr Command command{Operation::kPut, detail::bytes_operand<T>(), 0};
  if constexpr (sizeof(T) == 16) {
    std::uint64_t words[3] = {address, 0, 0};
    __builtin_memcpy(words + 1, &value, sizeof value);
    detail::post(context, command, words, std::forward<Election>(election)...);
  } else {
    const std::uint64_t words[2] = {address, detail::value_word(value)};
    detail::post(context, command, words, std::forward<Election>(election)...);
  }
}

/// Adds 1. Costs 8 bytes on the wire.
template <detail::CheckedSender Context, Integer32Or64 T, class... Election>
ESKER_HD void shmem_inc(Context&& context, T* target, std::uint32_t pe, Election&&... election) {
  const std::uint64_t words[1] = {
      detail::checked_address(context, "shmem_inc", target, sizeof(T), sizeof(T), pe)};
  detail::post(context, {Operation::kInc, detail::number_operand<T>(), 0}, words,
               std::forward<Election>(election)...);
}

/// Adds, wrapping around for integers.
template <detail::CheckedSender Context, Number32Or64 T, class... Election>
ESKER_HD void shmem_add(Context&& context, T* target, std::type_identity_t<T> value, std::uint32_t pe,
                        Election&&... election) {
  detail::send_value(context, "shmem_add", Operation::kAdd, target, value, pe,
                     std::forward<Election>(election)...);
}
template <detail::CheckedSender Context, Number32Or64 T, class... Election>
ESKER_HD void shmem_min(Context&& context, T* target, std::type_identity_t<T> value, std::uint32_t pe,
                        Election&&... election) {
  detail::send_value(context, "shmem_min", Operation::kMin, target, value, pe,
                     std::forward<Election>(election)...);
}
template <detail::CheckedSender Context, Number32Or64 T, class... Election>
ESKER_HD void shmem_max(Context&& context, T* target, std::type_identity_t<T> value, std::uint32_t pe,
                        Election&&... election) {
  detail::send_value(context, "shmem_max", Operation::kMax, target, value, pe,
                     std::forward<Election>(election)...);
}
template <detail::CheckedSender Context, Integer32Or64 T, class... Election>
ESKER_HD void shmem_and(Context&& context, T* target, std::type_identity_t<T> value, std::uint32_t pe,
                        Election&&... election) {
  detail::send_value(context, "shmem_and", Operation::kAnd, target, value, pe,
                     std::forward<Election>(election)...);
}
template <detail::CheckedSender Context, Integer32Or64 T, class... Election>
ESKER_HD void shmem_or(Context&& context, T* target, std::type_identity_t<T> value, std::uint32_t pe,
                       Election&&... election) {
  detail::send_value(context, "shmem_or", Operation::kOr, target, value, pe,
                     std::forward<Election>(election)...);
}
template <detail::CheckedSender Context, Integer32Or64 T, class... Election>
ESKER_HD void shmem_xor(Context&& context, T* target, std::type_identity_t<T> value, std::uint32_t pe,
                        Election&&... election) {
  detail::send_value(context, "shmem_xor", Operation::kXor, target, value, pe,
                     std::forward<Election>(election)...);
}

/// Runs the handler on PE `pe` with its `*target` and `arguments`, once, alone with respect to the ownership
/// block that `target` lies in, of 4096 bytes unless the handler says less, or that it owns nothing.
template <detail::CheckedSender Context, class Target, class Arguments, class... Election>
ESKER_HD void shmem_am(Context&& context, Handler<Target, Arguments> handler, Target* target,
                       std::type_identity_t<Arguments> arguments, std::uint32_t pe, Election&&... election) {
  if (!detail::is_registered(context, handler.index)) return;
  std::uint64_t words[Handler<Target, Arguments>::kWords] = {
      detail::checked_address(context, "shmem_am", target, sizeof(Target), alignof(Target), pe)};
  __builtin_memcpy(words + 1, &arguments, sizeof arguments);
  detail::post(context, {Operation::kActiveMessage, Operand::kNone, handler.index}, words,
               std::forward<Election>(election)...);
}

}  // namespace esker
