// A map's memory on one PE: buckets of slots, and what is kept of keys that found their bucket full.
//
// Invariant. A bucket is one ownership block of the heap, so that a handler whose target is one of its slots
// has the whole bucket to itself. A free slot is all zeros. A key stands in the first free slot that was
// found from its home on, around the bucket's end, and never moves: a search ends at a free slot.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <esker/containers/hash.hpp>
#include <esker/device/platform.hpp>
#include <esker/lane.hpp>
#include <esker/net/handler.hpp>

namespace esker::containers {

/// A value that is never all zeros while it is in a map, and says so: its slot needs no mark.
template <class Value>
concept SaysWhetherItExists = requires(const Value& value) {
  { value.exists() } -> std::same_as<bool>;
};

template <class Stored, class Value>
struct Slot {
  Stored stored;
  Value value;
  std::uint32_t mark;

  ESKER_HD bool exists() const { return mark != 0; }
  ESKER_HD void take(const Stored& key) {
    stored = key;
    mark = 1;
  }
};
template <class Stored, SaysWhetherItExists Value>
struct Slot<Stored, Value> {
  Stored stored;
  Value value;

  ESKER_HD bool exists() const { return value.exists(); }
  ESKER_HD void take(const Stored& key) { stored = key; }
};

inline constexpr std::uint64_t kBucketBytes = kOwnershipBytes;
template <class S>
inline constexpr std::uint32_t kBucketSlots = kBucketBytes / sizeof(S);

/// The slot of `home`'s bucket that has `stored`, or the free one where it belongs; null in a full bucket
/// without it.
template <class S, class Stored>
ESKER_HD S* find_slot(S& home, const Stored& stored) {
  S* const begin = reinterpret_cast<S*>(reinterpret_cast<std::uintptr_t>(&home) & ~(kBucketBytes - 1));
  S* const end = begin + kBucketSlots<S>;
  S* slot = &home;
  for (std::uint32_t i = 0; i < kBucketSlots<S>; ++i) {
    if (!slot->exists() || same_bytes(slot->stored, stored)) return slot;
    if (++slot == end) slot = begin;
  }
  return nullptr;
}

/// Keys that found no slot: how often, and about how many different ones (HyperLogLog: Flajolet et al., AofA
/// 2007). All words are zeros at first; those of several PEs are merged by the sum, and by the maxima.
struct LostKeys {
  static constexpr std::uint32_t kRegisters = 256;
  static constexpr std::uint32_t kWords = 1 + kRegisters;

  std::uint64_t* words;

  /// By the handler that has lost it.
  ESKER_HD void add(std::uint64_t hash) const {
    (void)word(0).fetch_add_relaxed(1);
    auto& most = word(1 + static_cast<std::uint32_t>(hash % kRegisters));
    std::uint64_t zeros = 1;
    for (std::uint64_t rest = hash / kRegisters; rest % 2 == 0 && zeros < 56; rest /= 2) ++zeros;
    for (std::uint64_t seen = most.load_relaxed(); seen < zeros;) {
      if (most.compare_exchange_relaxed(seen, zeros)) break;
    }
  }
  /// Of the registers.
  static double distinct(std::span<const std::uint64_t> registers) {
    constexpr double kCount = kRegisters;
    double sum = 0;
    double empty = 0;
    for (const std::uint64_t most : registers) {
      sum += std::ldexp(1.0, -static_cast<int>(most));
      empty += most == 0 ? 1 : 0;
    }
    const double raw = 0.7213 / (1 + 1.079 / kCount) * kCount * kCount / sum;
    return raw < 2.5 * kCount && empty > 0 ? kCount * std::log(kCount / empty) : raw;
  }

 private:
  ESKER_HD DeviceAtomic<std::uint64_t>& word(std::uint32_t i) const {
    return reinterpret_cast<DeviceAtomic<std::uint64_t>&>(words[i]);
  }
};

/// Buckets of each PE, so many that of `entries` random keys hardly ever one finds its bucket full: in one
/// map of 100 000. A bucket's keys are then a Poisson variable, and Chernoff's bound says how rarely it is
/// above the number of slots.
inline std::uint64_t buckets_for(std::uint64_t entries, std::uint32_t pes, std::uint32_t slots) {
  const auto all = static_cast<double>(std::max<std::uint64_t>(1, entries));
  const double too_many = slots + 1.0;
  double fewest = std::ceil(all / slots);
  for (double buckets = fewest;;) {  // ends: more buckets are allowed a few keys less each
    const double rarity = std::log(1e5) + std::log(buckets);
    double low = 0;
    double high = slots;
    for (int step = 0; step < 60; ++step) {
      const double mean = (low + high) / 2;
      const bool is_rare = mean <= 0 || too_many * std::log(too_many / mean) - (too_many - mean) >= rarity;
      (is_rare ? low : high) = mean;
    }
    const double enough = all <= slots ? 1 : std::max(fewest, std::ceil(all / std::max(low, 1e-3)));
    if (enough <= buckets) return static_cast<std::uint64_t>(std::ceil(buckets / pes));
    buckets = enough;
  }
}

}  // namespace esker::containers
