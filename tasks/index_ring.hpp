// A queue of small numbers between any lanes and threads, which neither side can hold up.
#pragma once

#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/group.hpp>
#include <esker/device/platform.hpp>

namespace esker::tasks::detail {

/// Numbers in the order in which they were pushed.
///
/// State    An entry is empty -> written -> empty; its word is {round + 1, number}. The ring has no fewer
///          entries than there are numbers, so a push always finds its entry empty.
/// Contract Any lane, any thread. A number is in the ring once at most. push() does not wait, and try_pop()
///          fails rather than wait: for an entry that was promised and is not written yet, too.
/// Protocol push: take a ticket, write the entry. pop: read the entry at `head`, and move `head` past it if
///          it is written. The entry is not written again before `head` has passed it, so who moves `head`
///          has read the right number.
/// Ordering [number] what was written before push() happens before what follows the try_pop() of that number.
/// `Word` is for tests: an atomic with weaker orders.
template <Scope S, class Word = Atomic<std::uint64_t, S>>
class IndexRing {
 public:
  /// Bytes that it works in; aligned to kLineBytes, zeroed.
  ESKER_HD static constexpr std::uint64_t storage_bytes(std::uint32_t size) {
    return 2 * kLineBytes + std::uint64_t{size} * 8;
  }
  IndexRing() = default;
  /// `size` is a power of two.
  ESKER_HD IndexRing(void* storage, std::uint32_t size)
      : words_{static_cast<std::uint64_t*>(storage)}, mask_{size - 1}, shift_{shift_of(size)} {}

  /// One entry for each active lane of the view.
  template <class View>
  ESKER_HD void push(View& view, std::uint32_t number, bool active = true) const {
    const Position mine = view.position_among(active);
    if (mine.total == 0) return;
    std::uint64_t first = 0;
    if (active && mine.index == 0) first = tail().fetch_add_relaxed(mine.total);
    first = view.of_first(active, first);
    if (active) {
      const std::uint64_t ticket = first + mine.index;
      entry(ticket).store_release(round(ticket) << 32 | number);  // [number]
    }
  }

  /// One number for each active lane of the view, or for the first of them: true for those that got one.
  template <class View>
  ESKER_HD bool try_pop(View& view, std::uint32_t& number, bool active = true) const {
    while (true) {
      const Position mine = view.position_among(active);
      if (mine.total == 0) return false;
      std::uint64_t first = 0;
      if (active && mine.index == 0) first = head().load_relaxed();
      first = view.of_first(active, first);
      const std::uint64_t ticket = first + mine.index;
      const std::uint64_t found = active ? entry(ticket).load_acquire() : 0;  // [number]
      // The first that is not written ends what can be taken.
      const bool is_there = active && found >> 32 == round(ticket);
      const Position missing = view.position_among(active && !is_there);
      const std::uint32_t count =
          missing.total == 0 ? mine.total : view.of_first(active && !is_there, mine.index);
      if (count == 0) return false;
      std::uint32_t moved = 0;
      if (active && mine.index == 0) {
        std::uint64_t expected = first;
        moved = head().compare_exchange_relaxed(expected, first + count) ? 1 : 0;
      }
      if (view.of_first(active, moved) == 0) continue;  // others have taken some
      if (!active || mine.index >= count) return false;
      number = static_cast<std::uint32_t>(found);
      return true;
    }
  }

  /// For a host that copies it from a device's memory: the part of the storage that was_size() reads.
  static constexpr std::uint64_t kHeaderWords = 2 * kLineBytes / 8;
  ESKER_HD const Word* header() const { return reinterpret_cast<const Word*>(words_); }
  /// Racy: numbers that were pushed, or will be at once, and not popped.
  ESKER_HD std::uint64_t was_size() const { return was_size(header()); }
  ESKER_HD static std::uint64_t was_size(const Word* header) {
    const std::uint64_t head_now = header[kHead].load_relaxed(), tail_now = header[kTail].load_relaxed();
    return tail_now < head_now ? 0 : tail_now - head_now;
  }

 private:
  ESKER_HD static constexpr std::uint32_t shift_of(std::uint32_t size) {
    std::uint32_t shift = 0;
    while (size >> shift > 1) ++shift;
    return shift;
  }
  ESKER_HD std::uint64_t round(std::uint64_t ticket) const { return ((ticket >> shift_) + 1) & 0xffffffffu; }
  ESKER_HD Word& at(std::uint64_t word) const { return reinterpret_cast<Word*>(words_)[word]; }
  ESKER_HD Word& tail() const { return at(kTail); }
  ESKER_HD Word& head() const { return at(kHead); }
  ESKER_HD Word& entry(std::uint64_t ticket) const { return at(kHeaderWords + (ticket & mask_)); }

  static constexpr std::uint64_t kTail = 0, kHead = kLineBytes / 8;

  std::uint64_t* words_ = nullptr;
  std::uint64_t mask_ = 0;
  std::uint32_t shift_ = 0;
};

}  // namespace esker::tasks::detail
