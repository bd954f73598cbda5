// Requests on the host: the target is read, and changed, and the reply sent.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <type_traits>

#include <esker/aggregator/node_buffers.hpp>
#include <esker/aggregator/operations.hpp>
#include <esker/aggregator/update.hpp>
#include <esker/net/apply.hpp>
#include <esker/net/apply_loops.hpp>

namespace esker {
namespace {

using apply::for_each_address, apply::load, apply::Slice, apply::store;

template <class T>
T load_value(const std::byte* at) {
  if constexpr (std::is_same_v<T, Bytes16>) {
    return {{load<std::uint64_t>(at), load<std::uint64_t>(at + 8)}};
  } else {
    return load<T>(at);
  }
}

/// An unsigned integer as wide as T, or Bytes16.
template <class T>
struct BitsOf {
  using Type = T;
};
template <>
struct BitsOf<float> {
  using Type = std::uint32_t;
};
template <>
struct BitsOf<double> {
  using Type = std::uint64_t;
};
template <class T>
using Bits = typename BitsOf<T>::Type;

/// What the target held. Its operands: the value; of kCompareSwap what is expected, and what is stored then.
template <Operation O, class T>
Bits<T> fetch(std::byte* at, std::uint64_t first, std::uint64_t second) {
  const T old = load_value<T>(at);
  if constexpr (O == Operation::kSwap) {
    store<T>(at, value_of<T>(first));
  } else if constexpr (O == Operation::kCompareSwap) {
    if (old == value_of<T>(first)) store<T>(at, value_of<T>(second));
  } else if constexpr (O == Operation::kFetchInc) {
    store<T>(at, updated<Operation::kInc>(old, T{1}));
  } else if constexpr (O != Operation::kGet) {
    store<T>(at, updated<update_of(O)>(old, value_of<T>(first)));
  }
  return std::bit_cast<Bits<T>>(old);
}

/// The replies to a run's messages on their way to the PE that asked: a block of them, by rows.
class Replies {
 public:
  static constexpr std::uint32_t kColumns = 256;

  /// `first_word`: of the messages, the word that says where the reply goes. `sent` counts the replies.
  Replies(const wire::Run& run, std::uint32_t first_word, std::uint32_t words, HostCall& call,
          std::uint64_t* rows, std::atomic<std::uint64_t>& sent)
      : run_{run},
        first_word_{first_word},
        filled_{operand_bytes(run.command.operand) / 8},
        package_{reply_to(run.command).word(), words, 0, kColumns, rows},
        call_{call},
        rows_{rows},
        sent_{sent},
        results_{run.row(first_word)},
        has_carried_{run.command.handler != 0 && words > 1 + filled_} {
    const std::uint64_t ones = ~std::uint64_t{0};
    std::memcpy(&value_bits_, &ones, std::min<std::size_t>(8, operand_bytes(run.command.operand)));
  }

  template <class T>
  void add(std::uint32_t i, const T& value) {
    std::uint64_t words[2] = {0, 0};
    std::memcpy(words, &value, sizeof value);
    std::uint64_t* const column = rows_ + package_.count++;
    column[0] = address_word(call_.source, results_[i]);
    column[kColumns] = words[0];
    if constexpr (sizeof(T) == 16) column[std::size_t{2} * kColumns] = words[1];
    if (has_carried_) carry(i, column);
    if (package_.count == kColumns) send();
  }
  void send() {
    if (package_.count == 0) return;
    // A reply counts as sent before it can be seen, as what a handler sends does.
    sent_.fetch_add(package_.count, std::memory_order_release);
    (void)call_.outbox->append(package_, 0);
    package_.count = 0;
  }

 private:
  /// What of a handler's reply is the message's: the words after the value, and the rest of its first one.
  [[gnu::noinline]] void carry(std::uint32_t i, std::uint64_t* column) {
    std::uint32_t carried = first_word_ + 1;
    const auto next = [&] { return carried < run_.words ? run_.row(carried++)[i] : 0; };
    if (filled_ == 0) column[kColumns] |= next() & ~value_bits_;
    for (std::uint32_t r = 1 + std::max(1U, filled_); r < package_.words; ++r)
      column[std::size_t{r} * kColumns] = next();
  }

  const wire::Run& run_;
  const std::uint32_t first_word_;
  const std::uint32_t filled_;  // words that the value fills whole
  PackageView package_;
  HostCall& call_;
  std::uint64_t* const rows_;
  std::atomic<std::uint64_t>& sent_;
  const std::uint64_t* const results_;
  const bool has_carried_;
  std::uint64_t value_bits_ = 0;  // of the first word: what the value fills; the rest is the message's
};

/// A reply to this PE itself that calls no handler: a store.
template <class T>
void store_result(std::byte* result, const T& value) {
  if constexpr (std::is_same_v<T, Bytes16>) {
    store<std::uint64_t>(result, value.halves[0]);
    store<std::uint64_t>(result + 8, value.halves[1]);
  } else {
    store<T>(result, value);
  }
}

/// Throws unless the heap, which is the same on every PE, has what the replies will touch. The run's messages
/// have not been applied by then, and who sent them is known: a reply's receiver would blame this PE.
void check_results(const wire::Run& run, HeapView heap, std::uint32_t reply_word,
                   const HandlerEntry* handler) {
  wire::Run results = run;
  results.address = run.row(reply_word);
  if (handler == nullptr) return apply::check_addresses(results, operand_bytes(run.command.operand), heap);
  for (std::uint32_t i = 0; i < run.count; ++i) apply::check_target(*handler, results.address[i], heap);
}

/// The run as it was before its addresses were packed, in `rows`.
wire::Run unpacked(const wire::Run& run, std::vector<std::uint64_t>& rows) {
  const std::uint32_t shift = operand_shift(run.command.operand);
  const std::size_t count = run.count, values = count * (run.words - 1);
  rows.resize(count * (run.words + 1));
  for (std::size_t i = 0; i < count; ++i) {
    rows[i] = packed_target(run.address[i], shift);
    rows[count + values + i] = packed_reply_to(run.address[i], shift);
  }
  std::copy_n(run.address + count, values, rows.begin() + static_cast<std::ptrdiff_t>(count));
  return {run.command, run.words + 1, run.count, rows.data()};
}

}  // namespace

std::uint32_t Applier::answer(const wire::Run& travelled, HostCall& call) {
  const wire::Run run =
      is_packed(travelled.command, travelled.words) ? unpacked(travelled, unpacked_) : travelled;
  const HeapView heap = call.heap;
  const std::uint32_t reply_word = message_words(run.command) - 1;
  const HandlerEntry* const handler =
      run.command.handler == 0 ? nullptr : handlers_.find(run.command.handler);
  check_results(run, heap, reply_word, handler);
  // With other slices beside this one the result's block may be theirs.
  const bool is_stored = call.source == call.pe && handler == nullptr && slices_ == 1;
  const std::uint32_t words = handler == nullptr ? 1 + value_words(run.command.operand) : handler->words;
  replies_.resize(std::size_t{Replies::kColumns} * kMaxMessageWords);
  Replies replies(run, reply_word, words, call, replies_.data(), sent_);
  // Operands that the operation does not have are not looked at.
  const std::uint64_t* const results = run.row(reply_word);
  const std::uint64_t* const firsts = run.row(reply_word > 1 ? 1 : 0);
  const std::uint64_t* const seconds = run.row(reply_word > 2 ? 2 : 0);
  const auto answer_all = [&]<class W>(W (*fetch_one)(std::byte*, std::uint64_t, std::uint64_t)) {
    return for_each_address<sizeof(W)>(run, heap, Slice{slice_, slices_}, [&](std::uint32_t i) {
      const W old = fetch_one(heap.base + run.address[i], firsts[i], seconds[i]);
      if (is_stored) {
        store_result(heap.base + results[i], old);
      } else {
        replies.add(i, old);
      }
    });
  };
  const std::uint32_t applied =
      with_request(run.command, [&]<Operation O, class T>() { return answer_all(&fetch<O, T>); });
  replies.send();
  if (is_stored) answered_.fetch_add(applied, std::memory_order_release);
  return applied;
}

}  // namespace esker
