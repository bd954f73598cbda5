// Symmetric memory, the same offset on every PE: SymmetricHeap, SymmetricArray. And the operations on it:
// what any lane, a handler, or the program through its Runtime, asks of any PE. All are non-blocking.
//
// Names follow OpenSHMEM, with the context first. `target` is a local address in the symmetric heap that
// stands for the same offset on PE `pe`. An operation is applied some time before quiet() on its PE or
// barrier_all() returns, exactly once; nothing else is promised about order (docs/reference/ordering.md).
//
// Requests (shmem_get, shmem_fetch_..., shmem_swap, shmem_compare_swap) bring back what the target held.
// `result` says where that goes: a pointer into this PE's own heap, which holds it once quiet() or
// barrier_all() has returned; or then(handler, target, arguments), which runs a handler here when the value
// has come. Requests and replies travel packed, like other messages; on a GPU a lane does itself what it
// reaches, and gets from heaps of one host are read there.
//
// A target is aligned to its size: 1, 2, 4, 8 or 16 bytes; that of a handler as its type is (alignof). So it
// is wherever a SymmetricArray has an element of that type and size.
//
// Misuse, a PE that does not exist, a target outside the heap or misaligned, a Handler that nobody made,
// aborts the job with the values where the call is made, whichever PE it names.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/error.hpp>
#include <esker/handler.hpp>
#include <esker/runtime/shmem.hpp>

namespace esker {

/// A view of symmetric memory: trivially copyable, captured by kernels by value. &array[i] is the local
/// address that stands for element i on any PE.
template <class T>
class SymmetricArray {
 public:
  SymmetricArray() = default;
  SymmetricArray(T* data, std::uint64_t size) : data_{data}, size_{size} {}

  ESKER_HD T& operator[](std::uint64_t i) const { return data_[i]; }
  ESKER_HD T* data() const { return data_; }
  /// Elements on each PE.
  ESKER_HD std::uint64_t size() const { return size_; }
  ESKER_HD T* begin() const { return data_; }
  ESKER_HD T* end() const { return data_ + size_; }
  std::span<T> span() const { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  std::uint64_t size_ = 0;
};

/// The allocator of one PE. All calls are collective and in the same order on every PE.
class SymmetricHeap {
 public:
  /// `count` zeroed elements on every PE, which start at a multiple of `alignment` bytes: a power of two, no
  /// more than kMostAlignment; less than kAlignment is as good as that. Messages may arrive there as soon as
  /// any PE has returned.
  ///
  /// Errors. Misuse: another alignment. Error{kOutOfMemory}: the heap's limit or the host's memory does not
  /// allow it; nothing has
  ///         changed on any PE. Error{kContract}: the PEs ask for different sizes or alignments, or are in
  ///         different calls. Every PE throws alike.
  template <class T>
  SymmetricArray<T> allocate(std::uint64_t count, std::size_t alignment = kAlignment) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    T* const data = static_cast<T*>(allocate_bytes(&count, sizeof(T), alignment, false));
    return {data, count};
  }
  /// The same where PEs need different numbers: every PE has as many as the one that asks for the most, which
  /// is the array's size().
  template <class T>
  SymmetricArray<T> allocate_largest(std::uint64_t count, std::size_t alignment = kAlignment) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    T* const data = static_cast<T*>(allocate_bytes(&count, sizeof(T), alignment, true));
    return {data, count};
  }

  /// Gives the memory back. Requires that no message for it is under way (barrier_all).
  template <class T>
  void free(SymmetricArray<T> array) {
    free_bytes(array.data());
  }

  /// Local. A copy of this PE's elements first .. first + to.size() - 1 as they are now, wherever the heap
  /// stands: a host program indexes an array itself only where on_host(). Waits for this PE's kernels.
  template <class T>
  void read(SymmetricArray<T> array, std::uint64_t first, std::span<T> to) {
    copy_out(to.data(), array.data() + first, to.size_bytes());
  }
  /// Error{kOutOfMemory} if the host has no memory for all of them.
  template <class T>
  std::vector<T> read(SymmetricArray<T> array) {
    try {
      if constexpr (std::is_same_v<T, bool>) {  // a std::vector of which has no data()
        const auto copy = std::make_unique<T[]>(array.size());
        read(array, 0, std::span<T>(copy.get(), array.size()));
        return std::vector<T>(copy.get(), copy.get() + array.size());
      } else {
        std::vector<T> all(array.size());
        read(array, 0, std::span<T>(all));
        return all;
      }
    } catch (const std::bad_alloc&) {
      throw Error(Error::Kind::kOutOfMemory, "heap().read: the program has no memory for a copy of " +
                                                 std::to_string(array.size() * sizeof(T)) +
                                                 " bytes; read the array in parts");
    }
  }
  /// Local. The other way round. Requires that no message for these elements is under way.
  template <class T>
  void write(SymmetricArray<T> array, std::uint64_t first, std::span<const T> from) {
    copy_in(array.data() + first, from.data(), from.size_bytes());
  }
  /// Local. Where this PE's part begins, in the memory that kernels and handlers see; aligned to 4096 bytes.
  virtual std::byte* base() const = 0;
  /// The heap is in host memory.
  virtual bool on_host() const = 0;

  /// Most that can be allocated on each PE: Config::heap_bytes.
  virtual std::uint64_t limit_bytes() const = 0;
  virtual std::uint64_t allocated_bytes() const = 0;

  /// Every allocation starts on a multiple of this.
  static constexpr std::size_t kAlignment = 128;
  /// The most that may be asked for.
  static constexpr std::size_t kMostAlignment = 4096;

 protected:
  ~SymmetricHeap() = default;
  /// `largest`: *count becomes the largest of all PEs'.
  virtual void* allocate_bytes(std::uint64_t* count, std::size_t element_bytes, std::size_t alignment,
                               bool largest) = 0;
  virtual void free_bytes(void* at) = 0;
  virtual void copy_out(void* to, const void* from, std::uint64_t bytes) = 0;
  virtual void copy_in(void* to, const void* from, std::uint64_t bytes) = 0;
};

template <class T>
concept Putable = std::is_trivially_copyable_v<T> &&
    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16);
template <class T>
concept Integer32Or64 = std::integral<T> &&(sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
concept Swappable = Putable<T> &&(sizeof(T) == 4 || sizeof(T) == 8);
template <class T>
concept Number32Or64 = Integer32Or64<T> || std::same_as<T, float> || std::same_as<T, double>;

/// Where the reply to a request for a T may go: a T* in the symmetric heap of the PE that asks, or then().
template <class Result, class T>
concept ReplyFor = detail::kTakesReply<T, Result>;

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

/// Adds 1. Costs 8 bytes on the wire. Inlined, since for a call the lane would have to be in memory.
template <detail::CheckedSender Context, Integer32Or64 T, class... Election>
ESKER_ALWAYS_INLINE ESKER_HD void shmem_inc(Context&& context, T* target, std::uint32_t pe,
                                            Election&&... election) {
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
  if (!detail::is_registered(context, handler.index, "shmem_am")) return;
  std::uint64_t words[Handler<Target, Arguments>::kWords] = {
      detail::checked_address(context, "shmem_am", target, sizeof(Target), alignof(Target), pe)};
  __builtin_memcpy(words + 1, &arguments, sizeof arguments);
  detail::post(context, {Operation::kActiveMessage, Operand::kNone, handler.index}, words,
               std::forward<Election>(election)...);
}

/// What a signal does to its word.
enum class SignalUpdate { kSet, kAdd };

/// shmem_put(), and then an update of `*signal` on the same PE: whoever finds that there
/// (Runtime::wait_until(), or an acquiring load) finds the value. To this PE it travels too. A signal's word
/// is changed by signals alone, or by other operations alone.
template <detail::CheckedSender Context, Putable T, class... Election>
ESKER_HD void shmem_put_signal(Context&& context, T* target, std::type_identity_t<T> value,
                               std::uint64_t* signal, std::uint64_t signal_value, SignalUpdate update,
                               std::uint32_t pe, Election&&... election) {
  constexpr std::uint32_t kValue = sizeof(T) == 16 ? 2 : 1;
  std::uint64_t words[1 + kValue + 2] = {
      detail::checked_address(context, "shmem_put_signal", target, sizeof(T), sizeof(T), pe)};
  __builtin_memcpy(words + 1, &value, sizeof value);
  words[1 + kValue] = detail::checked_address(context, "shmem_put_signal", signal, 8, 8, pe);
  words[2 + kValue] = signal_value;
#if defined(ESKER_ON_GPU)
  if (words[1 + kValue] == detail::kNoAddress) return;
#endif
  words[1 + kValue] &= kOffsetMask;
  const Operation operation =
      update == SignalUpdate::kSet ? Operation::kPutSetSignal : Operation::kPutAddSignal;
  detail::post(context, {operation, detail::bytes_operand<T>(), 0}, words,
               std::forward<Election>(election)...);
}

/// Brings `*source` of PE `pe`: 1, 2, 4, 8 or 16 bytes; 16 are read as two halves.
template <detail::CheckedSender Context, Putable T, detail::CheckedReplyFor<T> Result, class... Election>
ESKER_HD void shmem_get(Context&& context, Result result, const T* source, std::uint32_t pe,
                        Election&&... election) {
  detail::ask<0>(context, "shmem_get", {Operation::kGet, detail::bytes_operand<T>(), 0}, result, source,
                 detail::Operands<0>{}, pe, std::forward<Election>(election)...);
}

/// Adds 1, and brings what was there before.
template <detail::CheckedSender Context, Integer32Or64 T, detail::CheckedReplyFor<T> Result,
          class... Election>
ESKER_HD void shmem_fetch_inc(Context&& context, Result result, T* target, std::uint32_t pe,
                              Election&&... election) {
  detail::ask<0>(context, "shmem_fetch_inc", {Operation::kFetchInc, detail::number_operand<T>(), 0}, result,
                 target, detail::Operands<0>{}, pe, std::forward<Election>(election)...);
}

/// Adds, wrapping around for integers, and brings what was there before.
template <detail::CheckedSender Context, Number32Or64 T, detail::CheckedReplyFor<T> Result, class... Election>
ESKER_HD void shmem_fetch_add(Context&& context, Result result, T* target, std::type_identity_t<T> value,
                              std::uint32_t pe, Election&&... election) {
  detail::fetch(context, "shmem_fetch_add", Operation::kFetchAdd, result, target, value, pe,
                std::forward<Election>(election)...);
}
template <detail::CheckedSender Context, Integer32Or64 T, detail::CheckedReplyFor<T> Result,
          class... Election>
ESKER_HD void shmem_fetch_and(Context&& context, Result result, T* target, std::type_identity_t<T> value,
                              std::uint32_t pe, Election&&... election) {
  detail::fetch(context, "shmem_fetch_and", Operation::kFetchAnd, result, target, value, pe,
                std::forward<Election>(election)...);
}
template <detail::CheckedSender Context, Integer32Or64 T, detail::CheckedReplyFor<T> Result,
          class... Election>
ESKER_HD void shmem_fetch_or(Context&& context, Result result, T* target, std::type_identity_t<T> value,
                             std::uint32_t pe, Election&&... election) {
  detail::fetch(context, "shmem_fetch_or", Operation::kFetchOr, result, target, value, pe,
                std::forward<Election>(election)...);
}
template <detail::CheckedSender Context, Integer32Or64 T, detail::CheckedReplyFor<T> Result,
          class... Election>
ESKER_HD void shmem_fetch_xor(Context&& context, Result result, T* target, std::type_identity_t<T> value,
                              std::uint32_t pe, Election&&... election) {
  detail::fetch(context, "shmem_fetch_xor", Operation::kFetchXor, result, target, value, pe,
                std::forward<Election>(election)...);
}

/// Stores `value`, of 4 or 8 bytes, and brings what was there before.
template <detail::CheckedSender Context, Swappable T, detail::CheckedReplyFor<T> Result, class... Election>
ESKER_HD void shmem_swap(Context&& context, Result result, T* target, std::type_identity_t<T> value,
                         std::uint32_t pe, Election&&... election) {
  detail::ask<1>(context, "shmem_swap", {Operation::kSwap, detail::bytes_operand<T>(), 0}, result, target,
                 detail::Operands<1>{{detail::value_word(value)}}, pe, std::forward<Election>(election)...);
}

/// Stores `desired` where the target's bytes are those of `expected`, and brings what was there before: it
/// has stored if that is `expected`.
template <detail::CheckedSender Context, Swappable T, detail::CheckedReplyFor<T> Result, class... Election>
ESKER_HD void shmem_compare_swap(Context&& context, Result result, T* target,
                                 std::type_identity_t<T> expected, std::type_identity_t<T> desired,
                                 std::uint32_t pe, Election&&... election) {
  detail::ask<2>(context, "shmem_compare_swap", {Operation::kCompareSwap, detail::bytes_operand<T>(), 0},
                 result, target,
                 detail::Operands<2>{{detail::value_word(expected), detail::value_word(desired)}}, pe,
                 std::forward<Election>(election)...);
}

}  // namespace esker
