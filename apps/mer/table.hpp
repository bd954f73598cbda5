// The distributed table of k-mers, and the handler that counts one.
//
// Invariant. A bucket is one ownership block of the heap, so that whoever handles a message for one of its
// slots has the whole bucket to itself. A slot is free while its count is 0. A k-mer stands in the first free
// slot that was found from its home on, around the bucket's end, and never moves: a search ends at a free
// slot.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/esker.hpp>

#include "locator.hpp"

namespace mer {

/// A Word in memory of 8-byte words, and in messages.
template <class Word>
struct Stored {
  std::uint64_t part[sizeof(Word) / 8];

  static ESKER_HD Stored of(Word word) {
    Stored stored;
    __builtin_memcpy(&stored, &word, sizeof word);
    return stored;
  }
  ESKER_HD Word word() const {
    Word all = 0;
    __builtin_memcpy(&all, this, sizeof all);
    return all;
  }
};

enum Side : std::uint32_t { kLeft, kRight };
ESKER_HD constexpr Side opposite(Side side) { return side == kLeft ? kRight : kLeft; }

/// What stands beside a k-mer, by its votes: one base's code, 0 to 3, or one of these.
constexpr std::uint8_t kNone = 4;  // no base has enough
constexpr std::uint8_t kFork = 5;  // several have
ESKER_HD constexpr char extension_letter(std::uint8_t code) { return "ACGTXF"[code]; }

constexpr std::uint32_t kNoNode = ~std::uint32_t{0};
constexpr std::uint32_t kMostCount = ~std::uint32_t{0};
constexpr std::uint16_t kMostVotes = 0xffff;

/// A k-mer and what was seen of it. Counters stop at their most.
template <class Word>
struct Slot {
  Stored<Word> rest;
  std::uint32_t count;
  std::uint16_t votes[2][4];  // Side, base
  std::uint32_t node;         // in the graph; kNoNode: not part of it
};
static_assert(sizeof(Slot<std::uint64_t>) == 32 && sizeof(Slot<Wide>) == 40);

/// Which k-mers count, and which of their neighbours.
struct Threshold {
  std::uint32_t count;  // least, of a k-mer
  std::uint32_t votes;  // least, of a base beside it

  ESKER_HD std::uint8_t extension(const std::uint16_t (&votes_of)[4]) const {
    std::uint8_t code = kNone;
    for (std::uint8_t base = 0; base < 4; ++base) {
      if (votes_of[base] >= votes) code = code == kNone ? base : kFork;
    }
    return code;
  }
  /// Seen often enough, with one base on each side: the graph's nodes.
  template <class S>
  ESKER_HD bool is_unique(const S& slot) const {
    return slot.count >= count && extension(slot.votes[kLeft]) < 4 && extension(slot.votes[kRight]) < 4;
  }
};

/// A PE's part, as kernels take it. Trivially copyable.
template <class Word>
struct Table {
  static constexpr std::uint64_t kBucketBytes = esker::HandlerContext::kOwnershipBytes;
  static constexpr std::uint32_t kSlots = kBucketBytes / sizeof(Slot<Word>);

  std::byte* first;  // bucket, at an ownership block's start
  std::uint64_t buckets;
  Locator<Word> locator;

  /// Collective.
  static Table allocate(esker::Runtime& rt, unsigned k, std::uint64_t buckets) {
    const Locator<Word> locator(k, rt.n_pes(), buckets);
    const auto bytes = rt.heap().allocate<std::byte>((buckets + 1) * kBucketBytes);
    std::byte* const heap = rt.heap().base();
    const auto offset = static_cast<std::uint64_t>(bytes.data() - heap);
    return {heap + (offset + kBucketBytes - 1) / kBucketBytes * kBucketBytes, buckets, locator};
  }

  ESKER_HD Slot<Word>* bucket(std::uint64_t i) const {
    return reinterpret_cast<Slot<Word>*>(first + i * kBucketBytes);
  }
  ESKER_HD Slot<Word>& home(const Location<Word>& location) const {
    return bucket(location.bucket)[((static_cast<std::uint32_t>(location.rest) & 0xffff) * kSlots) >> 16];
  }
  esker::SymmetricArray<std::uint64_t> words() const {
    return {reinterpret_cast<std::uint64_t*>(first), buckets * kBucketBytes / 8};
  }

  /// Of a handler whose target is `home`: the slot that has `rest` or the free one where it belongs; null in
  /// a full bucket without it.
  static ESKER_HD Slot<Word>* find(std::byte* heap, Slot<Word>& home, Word rest) {
    const auto offset = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(&home) - heap);
    auto* const begin = reinterpret_cast<Slot<Word>*>(heap + offset / kBucketBytes * kBucketBytes);
    Slot<Word>* slot = &home;
    for (std::uint32_t i = 0; i < kSlots; ++i) {
      if (slot->count == 0 || slot->rest.word() == rest) return slot;
      if (++slot == begin + kSlots) slot = begin;
    }
    return nullptr;
  }
};

/// What a message tells: the rest of a k-mer, and for each side a base's code or kNone.
template <class Word>
struct Seen {
  Stored<Word> packed;

  static ESKER_HD Seen of(Word rest, std::uint8_t left, std::uint8_t right) {
    return {Stored<Word>::of((rest << Locator<Word>::kVoteBits) | static_cast<Word>(left << 3 | right))};
  }
  ESKER_HD Word rest() const { return packed.word() >> Locator<Word>::kVoteBits; }
  ESKER_HD std::uint8_t vote(Side side) const {
    return static_cast<std::uint8_t>(packed.part[0] >> (side == kLeft ? 3 : 0)) & 7u;
  }
};

/// Counts a k-mer. One that finds its bucket full is counted as lost: a handler on a device can say no more.
template <class Word>
struct CountOne {
  esker::SymmetricArray<std::uint64_t> lost;
  std::byte* heap;

  ESKER_HD void operator()(esker::HandlerContext& context, Slot<Word>& home, const Seen<Word>& seen) const {
    Slot<Word>* const slot = Table<Word>::find(heap, home, seen.rest());
    if (slot == nullptr) {
      esker::shmem_inc(context, &lost[0], context.pe());
      return;
    }
    slot->rest = Stored<Word>::of(seen.rest());
    if (slot->count != kMostCount) ++slot->count;
    for (const Side side : {kLeft, kRight}) {
      const std::uint8_t base = seen.vote(side);
      if (base < 4 && slot->votes[side][base] != kMostVotes) ++slot->votes[side][base];
    }
  }
};

/// A kernel over words.
struct Clear {
  esker::SymmetricArray<std::uint64_t> words;
  ESKER_HD void operator()(esker::Lane lane) const { words[lane.global_id()] = 0; }
};

}  // namespace mer
