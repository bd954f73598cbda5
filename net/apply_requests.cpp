// Requests on the host: the target is read, and changed, and the reply sent.
#include <fmt/format.h>

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

/// What the target held. Its operands: the value; of kCompareSwap what is expected, and what is stored then.
template <Operation O, class T>
T fetch(std::byte* at, std::uint64_t first, std::uint64_t second) {
  const T old = load_value<T>(at);
  if constexpr (O == Operation::kSwap) {
    store<T>(at, value_of<T>(first));
  } else if constexpr (O == Operation::kCompareSwap) {
    if (old == value_of<T>(first)) store<T>(at, value_of<T>(second));
  } else if constexpr (O != Operation::kGet) {
    store<T>(at, updated<update_of(O)>(old, value_of<T>(first)));
  }
  return old;
}

/// The replies to a run's messages on their way to the PE that asked: a block of them, by rows.
class Replies {
 public:
  static constexpr std::uint32_t kColumns = 256;

  /// `first_word`: of the messages, the word that says where the reply goes.
  Replies(const wire::Run& run, std::uint32_t first_word, std::uint32_t words, HostCall& call,
          std::uint64_t* rows)
      : run_{run},
        first_word_{first_word},
        filled_{operand_bytes(run.command.operand) / 8},
        package_{reply_to(run.command).word(), words, 0, kColumns, rows},
        call_{call},
        rows_{rows} {}

  template <class T>
  void add(std::uint32_t i, const T& value) {
    std::uint64_t* const column = rows_ + package_.count++;
    column[0] = address_word(call_.source, run_.row(first_word_)[i]);
    std::uint32_t carried = first_word_ + 1;
    for (std::uint32_t r = 1 + filled_; r < package_.words; ++r, ++carried)
      column[std::size_t{r} * kColumns] = carried < run_.words ? run_.row(carried)[i] : 0;
    std::uint64_t word[2] = {column[kColumns], 0};
    std::memcpy(word, &value, sizeof value);
    column[kColumns] = word[0];
    if constexpr (sizeof(T) == 16) column[std::size_t{2} * kColumns] = word[1];
  }
  bool is_full() const { return package_.count == kColumns; }
  std::uint32_t count() const { return package_.count; }
  void send() {
    (void)call_.outbox->append(package_, 0);
    package_.count = 0;
  }

 private:
  const wire::Run& run_;
  const std::uint32_t first_word_;
  const std::uint32_t filled_;  // words that the value fills whole
  PackageView package_;
  HostCall& call_;
  std::uint64_t* const rows_;
};

/// Throws unless the heap, which is the same on every PE, has what the replies will touch. The run's messages
/// have not been applied by then, and who sent them is known: a reply's receiver would blame this PE.
template <class T>
void check_results(const wire::Run& run, HeapView heap, std::uint32_t reply_word,
                   const HandlerEntry* handler) {
  wire::Run results = run;
  results.address = run.row(reply_word);
  if (handler == nullptr) return apply::check_addresses<sizeof(T)>(results, heap);
  for (std::uint32_t i = 0; i < run.count; ++i) apply::check_target(*handler, results.address[i], heap);
}

/// Replies to this PE itself that call no handler, where one applier has the whole heap: each is a store.
template <Operation O, class T, class Operands>
std::uint32_t answer_here(const wire::Run& run, HeapView heap, std::uint32_t reply_word, Operands operands) {
  const std::uint64_t* const results = run.row(reply_word);
  return for_each_address<sizeof(T)>(run, heap, Slice{0, 1}, [&](std::uint32_t i) {
    const T old = fetch<O, T>(heap.base + run.address[i], operands(1, i), operands(2, i));
    std::byte* const result = heap.base + results[i];
    if constexpr (std::is_same_v<T, Bytes16>) {
      store<std::uint64_t>(result, old.halves[0]);
      store<std::uint64_t>(result + 8, old.halves[1]);
    } else {
      store<T>(result, old);
    }
  });
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
  const Slice slice{slice_, slices_};
  const std::uint32_t reply_word = message_words(run.command) - 1;
  return with_request(run.command, [&]<Operation O, class T>() {
    const auto operand = [&](std::uint32_t r, std::uint32_t i) -> std::uint64_t {
      if constexpr (O == Operation::kFetchInc) return 1;
      if constexpr (O == Operation::kGet) return 0;
      if constexpr (O != Operation::kCompareSwap) {
        if (r == 2) return 0;
      }
      return run.row(r)[i];
    };
    const HandlerEntry* const handler =
        run.command.handler == 0 ? nullptr : handlers_.find(run.command.handler);
    check_results<T>(run, heap, reply_word, handler);
    // With other slices beside this one the result's block may be theirs.
    if (call.source == call.pe && handler == nullptr && slices_ == 1) {
      const std::uint32_t applied = answer_here<O, T>(run, heap, reply_word, operand);
      answered_.fetch_add(applied, std::memory_order_release);
      return applied;
    }
    const std::uint32_t words = handler == nullptr ? 1 + value_words(run.command.operand) : handler->words;
    replies_.resize(std::size_t{Replies::kColumns} * kMaxMessageWords);
    Replies replies(run, reply_word, words, call, replies_.data());
    // A reply counts as sent before it can be seen, as what a handler sends does.
    const auto send = [&] {
      sent_.fetch_add(replies.count(), std::memory_order_release);
      replies.send();
    };
    const std::uint32_t applied = for_each_address<sizeof(T)>(run, heap, slice, [&](std::uint32_t i) {
      replies.add(i, fetch<O, T>(heap.base + run.address[i], operand(1, i), operand(2, i)));
      if (replies.is_full()) send();
    });
    if (replies.count() > 0) send();
    return applied;
  });
}

}  // namespace esker
