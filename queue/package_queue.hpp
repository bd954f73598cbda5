// The package queue: work-groups on one side, aggregators on the other (thesis, section 5.2.2 and A.2.3).
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>

namespace esker {

/// What stands at the start of each slot. Everything but `turn` belongs to whoever `turn` says.
template <template <class> class AtomicWord>
struct PackageHeader {
  AtomicWord<std::uint64_t> turn;  // see PackageQueue
  std::uint32_t command;           // one for all messages of the package
  std::uint32_t words;             // 8-byte words a message
  std::uint32_t count;             // messages present, <= columns(words)
};

/// A bounded queue of packages. One package holds up to columns(w) messages of w words each,
/// column-major: word r of message c is row(ticket, w, r)[c], so adjacent lanes write adjacent words.
///
/// A queue is a view: trivially copyable, passed to kernels by value. The memory belongs to whoever
/// made it.
///
/// Protocol. Ticket t belongs to slot t % slots in round r = t / slots. The slot's turn word is
///     2r      empty: the producer that holds ticket t may fill it
///     2r + 1  full:  the consumer that holds ticket t may read it
/// It only grows, and only the holder of ticket t moves it on, so at most one agent is in a slot at any
/// time: the invariant that the thesis keeps with a write ticket, a read ticket and a full bit.
///
/// Ordering.
///   [fill]   writes before publish(t)  happen before  reads after try_peek() returned t
///   [reuse]  reads before release(t)   happen before  writes after was_empty(t + slots)
///
/// Progress. No call waits; callers choose how. try_peek() repeats only when another consumer has taken
/// the ticket that it wanted. A ticket holder that stalls between reserve() and publish() holds up every
/// later ticket, so producers reserve only when a whole package is ready to be written
/// (docs/design/package-queue.md).
///
/// AtomicWord is a parameter so that a test can weaken one operation and show that it was needed.
template <template <class> class AtomicWord>
class BasicPackageQueue {
 public:
  using Header = PackageHeader<AtomicWord>;
  static_assert(std::is_standard_layout_v<Header>, "host and device compile it separately");
  static_assert(offsetof(Header, turn) == 0 && offsetof(Header, command) == 8 &&
                    offsetof(Header, words) == 12 && offsetof(Header, count) == 16 && sizeof(Header) == 24,
                "host and device agree");
  static_assert(sizeof(Header) <= kLineBytes, "the payload starts on the next line");

  /// One side's counter, on its own line. Zero-initialised before use.
  struct Counter {
    alignas(kLineBytes) AtomicWord<std::uint64_t> word;
  };
  static_assert(sizeof(Counter) == kLineBytes, "producers and consumers share no line");

  /// Bytes that `slots` slots of `payload_bytes` take.
  static constexpr std::size_t storage_bytes(std::size_t slots, std::size_t payload_bytes) {
    return slots * (kLineBytes + payload_bytes);
  }

  BasicPackageQueue() = default;
  /// `tail` stands where producers reach it and `head` where consumers do: with a GPU on one side and the
  /// host on the other, no atomic crosses the bus. `storage` is zeroed, aligned to kLineBytes and
  /// storage_bytes(slots, payload_bytes) long; both sides reach it. `slots` is a power of two,
  /// `payload_bytes` a multiple of kLineBytes.
  ESKER_HD constexpr BasicPackageQueue(Counter* tail, Counter* head, std::byte* storage, std::uint32_t slots,
                                       std::uint32_t payload_bytes)
      : tail_{&tail->word},
        head_{&head->word},
        storage_{storage},
        slots_{slots},
        payload_bytes_{payload_bytes} {
    assert(std::has_single_bit(slots));
    assert(payload_bytes > 0 && payload_bytes % kLineBytes == 0);
    // By hand: in device code std::countr_zero came out wrong (CUDA 13.0, libstdc++ 12).
    while ((1u << slot_shift_) < slots) ++slot_shift_;
  }

  ESKER_HD std::uint32_t slots() const { return slots_; }
  /// Messages of `words` 8-byte words that fit in one package.
  ESKER_HD std::uint32_t columns(std::uint32_t words) const { return payload_bytes_ / (8 * words); }

  // Producer: one lane, the leader, reserves and publishes; its lanes write in between.

  /// First of `packages` consecutive tickets. Never fails; the slots may still be in use. They are filled
  /// and published in order: with more tickets than slots, a later one waits for an earlier one's slot.
  ESKER_HD std::uint64_t reserve(std::uint32_t packages = 1) { return tail_->fetch_add_relaxed(packages); }
  ESKER_HD bool was_empty(std::uint64_t ticket) const {
    // Acquired only once it is so: in vain it would cost a GPU its cache.
    return header(ticket).turn.load_relaxed() == 2 * round(ticket) &&
           header(ticket).turn.load_acquire() == 2 * round(ticket);  // [reuse]
  }
  /// The next ticket, if its slot is empty: for a producer that must not wait with a ticket that it holds.
  ESKER_HD bool try_reserve(std::uint64_t& ticket) {
    ticket = tail_->load_relaxed();
    while (was_empty(ticket)) {  // and stays so, unless another takes the ticket
      if (tail_->compare_exchange_relaxed(ticket, ticket + 1)) return true;
    }
    return false;
  }
  /// Row `r` of the payload of a package with `words` rows.
  ESKER_HD std::uint64_t* row(std::uint64_t ticket, std::uint32_t words, std::uint32_t r) const {
    return reinterpret_cast<std::uint64_t*>(slot(ticket) + kLineBytes) +
           static_cast<std::size_t>(r) * columns(words);
  }
  /// Requires was_empty(ticket) seen by the caller, and every lane's writes ordered before the call.
  ESKER_HD void publish(std::uint64_t ticket, std::uint32_t command, std::uint32_t words,
                        std::uint32_t count) {
    Header& h = header(ticket);
    h.command = command;
    h.words = words;
    h.count = count;
    h.turn.store_release(2 * round(ticket) + 1);  // [fill]
  }

  // Consumer: any host thread.

  /// Takes the oldest ticket if its slot is full. The caller reads it and calls release(). False: the
  /// oldest package that no consumer has taken is not published, and `ticket` means nothing.
  ESKER_HD bool try_peek(std::uint64_t& ticket) {
    ticket = head_->load_relaxed();
    while (true) {
      const std::uint64_t full = 2 * round(ticket) + 1;
      const std::uint64_t turn = header(ticket).turn.load_acquire();  // [fill]
      if (turn < full) return false;
      if (turn > full) {
        // Another consumer took it and released it meanwhile; the package behind it may be waiting.
        ticket = head_->load_relaxed();
      } else if (head_->compare_exchange_relaxed(ticket, ticket + 1)) {
        return true;
      }
    }
  }
  /// Consumer that takes several at once: the oldest ticket that nobody has taken, and whether a ticket's
  /// slot is full.
  ESKER_HD std::uint64_t was_head() const { return head_->load_relaxed(); }
  ESKER_HD bool was_full(std::uint64_t ticket) const {
    return header(ticket).turn.load_relaxed() == 2 * round(ticket) + 1 &&
           header(ticket).turn.load_acquire() == 2 * round(ticket) + 1;  // [fill]
  }
  /// Takes tickets first .. first + count - 1, all of which were full. False: another consumer was faster.
  ESKER_HD bool try_take(std::uint64_t first, std::uint32_t count) {
    return head_->compare_exchange_relaxed(first, first + count);
  }
  ESKER_HD void release(std::uint64_t ticket) {
    header(ticket).turn.store_release(2 * round(ticket) + 2);  // [reuse]
  }

  ESKER_HD Header& header(std::uint64_t ticket) const { return *reinterpret_cast<Header*>(slot(ticket)); }

  /// Racy: tickets reserved and not yet taken by a consumer. For callers that reach both counters.
  ESKER_HD std::uint64_t was_occupied() const {
    const auto head = head_->load_relaxed();
    const auto tail = tail_->load_relaxed();
    return tail > head ? tail - head : 0;
  }

 private:
  ESKER_HD std::byte* slot(std::uint64_t ticket) const {
    return storage_ + (ticket & (slots_ - 1)) * (kLineBytes + static_cast<std::size_t>(payload_bytes_));
  }
  ESKER_HD std::uint64_t round(std::uint64_t ticket) const { return ticket >> slot_shift_; }

  AtomicWord<std::uint64_t>* tail_ = nullptr;  // written by producers
  AtomicWord<std::uint64_t>* head_ = nullptr;  // written by consumers
  std::byte* storage_ = nullptr;
  std::uint32_t slots_ = 0;
  std::uint32_t payload_bytes_ = 0;
  std::uint32_t slot_shift_ = 0;
};

using PackageQueue = BasicPackageQueue<SystemAtomic>;
static_assert(std::is_trivially_copyable_v<PackageQueue>, "a kernel takes it by value");

}  // namespace esker
