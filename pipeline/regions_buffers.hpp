// Buffers of regions: fewer than the grid has, each used again once its region is not needed any more.
#pragma once

#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/lane_group.hpp>
#include <esker/tasks/index_ring.hpp>

namespace esker::pipeline::detail {

/// Trivially copyable: in memory of the side that uses it.
///
/// State    A region has no buffer -> one lane is taking one -> it has one -> none, and it is the next
///          round's turn. Its word is {round, 0 or kTaking or buffer + 1}.
/// Contract Any lane, any thread. give_back() once for each buffer that a region got, when nobody
///          reads or writes it any more.
/// Ordering [reuse] what happened before give_back() happens before what follows the try_take() of
///                  that buffer, and before what follows the try_take() of that region's next round
///          [taken] what the taker wrote before happens before what follows a find()
template <class T, template <class> class Word = DeviceAtomic>
struct RegionBuffers {
  using Ring = tasks::detail::IndexRing<Scope::kDevice>;

  T* cells;
  std::uint32_t region_cells;
  Ring free;
  Word<std::uint64_t>* buffer_of;  // one a region

  /// The buffer of a region, null if it has none.
  ESKER_HD T* find(std::uint32_t region) const { return at(buffer_of[region].load_acquire()); }  // [taken]
  /// The same of this round: null in any other.
  ESKER_HD T* find(std::uint32_t region, std::uint32_t round) const {
    const std::uint64_t word = buffer_of[region].load_acquire();  // [taken]
    return word >> 32 == round ? at(word) : nullptr;
  }
  /// A buffer for this round of a region. Null: it is another round's turn, the region has one, another lane
  /// is taking one, or none is free. One caller gets it.
  ESKER_HD T* try_take(std::uint32_t region, std::uint32_t round) const {
    const std::uint64_t none = std::uint64_t{round} << 32;
    std::uint64_t word = none;
    if (!buffer_of[region].compare_exchange_acquire(word, none | kTaking)) return nullptr;  // [reuse]
    LoneLane alone;
    std::uint32_t number = 0;
    if (!free.try_pop(alone, number)) {       // [reuse]
      buffer_of[region].store_release(none);  // [reuse] what this lane has seen
      return nullptr;
    }
    buffer_of[region].store_release(none | (number + 1));  // [taken]
    return at(number + 1);
  }
  ESKER_HD void give_back(std::uint32_t region) const {
    const std::uint64_t word = buffer_of[region].load_relaxed();
    buffer_of[region].store_release(((word >> 32) + 1) << 32);  // [reuse]
    LoneLane alone;
    free.push(alone, static_cast<std::uint32_t>(word) - 1);  // [reuse]
  }

 private:
  static constexpr std::uint32_t kTaking = ~0u;

  ESKER_HD T* at(std::uint64_t word) const {
    const auto buffer = static_cast<std::uint32_t>(word);
    if (buffer == 0 || buffer == kTaking) return nullptr;
    return cells + std::uint64_t{buffer - 1} * region_cells;
  }
};

}  // namespace esker::pipeline::detail
