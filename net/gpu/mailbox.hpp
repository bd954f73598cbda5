// Packages from one PE's GPU to another's, written and applied by lanes.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>

namespace esker::gpu {

/// Slots that stand with the receiver, used in no order: whoever sends takes any that is empty, whoever
/// applies any that is full, so thousands of waves hardly meet and none waits for a particular one.
///
/// Protocol. Each slot has two turn words, the sender's in the sender's memory and the receiver's in the
/// receiver's, so that no atomic crosses the link, and looking costs no round trip over it. Both only grow.
///     sender's    even: empty; odd: claimed, and on its way, full, or being applied
///     receiver's  odd: full, and of which kind; even: nothing there, or being applied
/// try_claim() makes the sender's word v odd, publish() stores that into the receiver's, try_take() makes
/// this one even again, and release() stores that into the sender's.
///
/// Ordering.
///   [fill]   writes before publish()  happen before  reads after sees() and try_take()
///   [reuse]  reads before release()   happen before  writes after try_claim()
///
/// Progress. No call waits.
class Mailbox {
 public:
  static constexpr std::uint32_t kSlots = 1024;
  static constexpr std::uint32_t kPayloadWords = 1024;
  static constexpr std::size_t kSlotBytes = kLineBytes + kPayloadWords * 8;
  static constexpr std::size_t kStorageBytes = kSlots * kSlotBytes;
  static constexpr std::size_t kTurnBytes = kSlots * sizeof(std::uint64_t);
  using Turn = SystemAtomic<std::uint64_t>;

  struct Header {
    std::uint32_t command;  // one for all messages of the package
    std::uint32_t words;    // 8-byte words a message
    std::uint32_t count;    // messages
  };

  Mailbox() = default;
  /// All zeroed; `storage` aligned to kLineBytes.
  Mailbox(std::byte* storage, Turn* senders, Turn* receivers)
      : storage_{storage}, senders_{senders}, receivers_{receivers} {}

  /// Messages of `words` words that a package holds. Word r of message i is row(slot, 0)[r * columns + i].
  ESKER_HD static constexpr std::uint32_t columns(std::uint32_t words) { return kPayloadWords / words; }
  ESKER_HD std::uint64_t* payload(std::uint32_t slot) const {
    return reinterpret_cast<std::uint64_t*>(storage_ + slot * kSlotBytes + kLineBytes);
  }

  // Sender.

  /// Whether it is worth asking.
  ESKER_HD bool looks_empty(std::uint32_t slot) const { return senders_[slot].load_relaxed() % 2 == 0; }
  /// On success the slot is this lane's to fill, and `turn` is for publish().
  ESKER_HD bool try_claim(std::uint32_t slot, std::uint64_t& turn) const {
    std::uint64_t seen = senders_[slot].load_relaxed();
    turn = seen + 1;
    return seen % 2 == 0 && senders_[slot].compare_exchange_acquire(seen, turn);  // [reuse]
  }
  /// Every lane's writes are ordered before the call.
  /// `kind` says for whom the package is, to who looks at it.
  ESKER_HD void publish(std::uint32_t slot, std::uint64_t turn, std::uint32_t kind,
                        const Header& header) const {
    *header_of(slot) = header;
    receivers_[slot].store_release(std::uint64_t{kind} << kKindShift | turn);  // [fill]
  }

  // Receiver.

  ESKER_HD bool looks_full(std::uint32_t slot) const { return receivers_[slot].load_relaxed() % 2 == 1; }
  /// The same, and of which kind: kNoKind if it does not look full.
  static constexpr std::uint32_t kNoKind = ~0u;
  ESKER_HD std::uint32_t looks_full_of(std::uint32_t slot) const {
    const std::uint64_t seen = receivers_[slot].load_relaxed();
    return seen % 2 == 1 ? static_cast<std::uint32_t>(seen >> kKindShift) : kNoKind;
  }
  /// Whether there is a package of kind 0 or of this one. What header() says then is that package's, if
  /// try_take_seen() takes it.
  ESKER_HD bool sees(std::uint32_t slot, std::uint32_t kind, std::uint64_t& seen) const {
    seen = receivers_[slot].load_acquire();  // [fill]
    const auto its_kind = static_cast<std::uint32_t>(seen >> kKindShift);
    return seen % 2 == 1 && (its_kind == 0 || its_kind == kind);
  }
  /// Takes what sees() has seen, and nothing that has come since. On success this lane may read the slot, and
  /// `turn` is for release().
  ESKER_HD bool try_take_seen(std::uint32_t slot, std::uint64_t seen, std::uint64_t& turn) const {
    turn = (seen & ((std::uint64_t{1} << kKindShift) - 1)) + 1;
    return receivers_[slot].compare_exchange_relaxed(seen, turn);
  }
  /// Both. Takes packages of kind 0 and of one other.
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
  static constexpr std::uint32_t kKindShift = 40;  // a slot is not used 2^39 times

  ESKER_HD Header* header_of(std::uint32_t slot) const {
    return reinterpret_cast<Header*>(storage_ + slot * kSlotBytes);
  }

  std::byte* storage_ = nullptr;
  Turn* senders_ = nullptr;
  Turn* receivers_ = nullptr;
};

}  // namespace esker::gpu
