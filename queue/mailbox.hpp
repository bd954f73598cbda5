// The mailbox: packages from the lanes of one GPU to the lanes of another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>

namespace esker {

/// Slots in the receiver's memory, in no order. A sender takes any empty slot and a receiver any full one, so
/// thousands of waves hardly ever compete for one slot, and none waits for a particular one.
///
/// A mailbox is a view: trivially copyable, passed to kernels by value.
///
/// Protocol. Each slot has two turn words: the sender's, in the sender's memory, and the receiver's, in the
/// receiver's. So no atomic crosses the link, and polling costs no round trip over it. Both only grow.
///     sender's    even: empty; odd: claimed, and being filled, full, or being applied
///     receiver's  odd: full, with the package's kind; even: no package, or one that is being applied
/// try_claim() makes the sender's word v odd, publish() stores v into the receiver's word, try_take() makes
/// that one even again, and release() stores the result into the sender's word.
///
/// Ordering.
///   [fill]   writes before publish()  happen before  reads after sees() and try_take()
///   [reuse]  reads before release()   happen before  writes after try_claim()
///
/// Progress. No call waits.
///
/// AtomicWord is a parameter so that a test can weaken one operation and show that it was needed.
template <template <class> class AtomicWord>
class BasicMailbox {
 public:
  static constexpr std::uint32_t kSlots = 1024;
  static constexpr std::uint32_t kPayloadWords = 1024;
  static constexpr std::size_t kSlotBytes = kLineBytes + kPayloadWords * 8;
  static constexpr std::size_t kStorageBytes = kSlots * kSlotBytes;
  static constexpr std::size_t kTurnBytes = kSlots * sizeof(std::uint64_t);
  using Turn = AtomicWord<std::uint64_t>;

  struct Header {
    std::uint32_t command;  // one for all messages of the package
    std::uint32_t words;    // 8-byte words a message
    std::uint32_t count;    // messages
  };

  BasicMailbox() = default;
  /// All memory is zeroed; `storage` is aligned to kLineBytes.
  BasicMailbox(std::byte* storage, Turn* senders, Turn* receivers)
      : storage_{storage}, senders_{senders}, receivers_{receivers} {}

  /// Messages of `words` words that a package holds. Word r of message i is payload(slot)[r * columns + i].
  ESKER_HD static constexpr std::uint32_t columns(std::uint32_t words) { return kPayloadWords / words; }
  ESKER_HD std::uint64_t* payload(std::uint32_t slot) const {
    return reinterpret_cast<std::uint64_t*>(storage_ + slot * kSlotBytes + kLineBytes);
  }

  // Sender.

  /// Racy: whether try_claim() is worth a try.
  ESKER_HD bool was_empty(std::uint32_t slot) const { return senders_[slot].load_relaxed() % 2 == 0; }
  /// On success this lane may fill the slot, and `turn` is for publish().
  ESKER_HD bool try_claim(std::uint32_t slot, std::uint64_t& turn) const {
    std::uint64_t seen = senders_[slot].load_relaxed();
    turn = seen + 1;
    return seen % 2 == 0 && senders_[slot].compare_exchange_acquire(seen, turn);  // [reuse]
  }
  /// Requires every lane's writes ordered before the call. A receiver sees `kind` before it takes the
  /// package.
  ESKER_HD void publish(std::uint32_t slot, std::uint64_t turn, std::uint32_t kind,
                        const Header& header) const {
    *header_of(slot) = header;
    receivers_[slot].store_release(std::uint64_t{kind} << kKindShift | turn);  // [fill]
  }

  // Receiver.

  /// Racy: whether a package is in the slot.
  ESKER_HD bool was_full(std::uint32_t slot) const { return receivers_[slot].load_relaxed() % 2 == 1; }
  /// Racy: the kind of the package in the slot; kNoKind if there is none.
  static constexpr std::uint32_t kNoKind = ~0u;
  ESKER_HD std::uint32_t kind_if_full(std::uint32_t slot) const {
    const std::uint64_t seen = receivers_[slot].load_relaxed();
    return seen % 2 == 1 ? static_cast<std::uint32_t>(seen >> kKindShift) : kNoKind;
  }
  /// Whether the slot holds a package of kind 0 or of this kind. header() then describes it, if
  /// try_take_seen() takes it.
  ESKER_HD bool sees(std::uint32_t slot, std::uint32_t kind, std::uint64_t& seen) const {
    seen = receivers_[slot].load_acquire();  // [fill]
    const auto its_kind = static_cast<std::uint32_t>(seen >> kKindShift);
    return seen % 2 == 1 && (its_kind == 0 || its_kind == kind);
  }
  /// Takes the package that sees() has seen, and none that has come since. On success this lane may read the
  /// slot, and `turn` is for release().
  ESKER_HD bool try_take_seen(std::uint32_t slot, std::uint64_t seen, std::uint64_t& turn) const {
    turn = (seen & ((std::uint64_t{1} << kKindShift) - 1)) + 1;
    return receivers_[slot].compare_exchange_relaxed(seen, turn);
  }
  /// sees() and try_take_seen(): takes a package of kind 0 or of this kind.
  ESKER_HD bool try_take(std::uint32_t slot, std::uint32_t kind, std::uint64_t& turn) const {
    std::uint64_t seen = 0;
    return sees(slot, kind, seen) && try_take_seen(slot, seen, turn);
  }
  ESKER_HD const Header& header(std::uint32_t slot) const { return *header_of(slot); }
  /// Requires fence_system() since the last read of the slot.
  ESKER_HD void release(std::uint32_t slot, std::uint64_t turn) const {
    senders_[slot].store_after_fence(turn);  // [reuse]
  }

 private:
  static constexpr std::uint32_t kKindShift = 40;  // a slot is used fewer than 2^39 times

  ESKER_HD Header* header_of(std::uint32_t slot) const {
    return reinterpret_cast<Header*>(storage_ + slot * kSlotBytes);
  }

  std::byte* storage_ = nullptr;
  Turn* senders_ = nullptr;
  Turn* receivers_ = nullptr;
};

using Mailbox = BasicMailbox<SystemAtomic>;
static_assert(std::is_trivially_copyable_v<Mailbox>, "kernels take it by value");
static_assert(sizeof(Mailbox::Header) == 12 && sizeof(Mailbox::Header) <= kLineBytes,
              "the payload starts on the next line");

}  // namespace esker
