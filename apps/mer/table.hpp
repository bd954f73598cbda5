// The distributed table of k-mers, and what counts one.
#pragma once

#include <cstdint>

#include <esker/containers.hpp>
#include <esker/esker.hpp>

#include "locator.hpp"

namespace mer {

enum Side : std::uint32_t { kLeft, kRight };
ESKER_HD constexpr Side opposite(Side side) { return side == kLeft ? kRight : kLeft; }

/// What stands beside a k-mer, by its votes: one base's code, 0 to 3, or one of these.
constexpr std::uint8_t kNone = 4;  // no base has enough
constexpr std::uint8_t kFork = 5;  // several have
ESKER_HD constexpr char extension_letter(std::uint8_t code) { return "ACGTXF"[code]; }

constexpr std::uint32_t kNoNode = ~std::uint32_t{0};
constexpr std::uint32_t kMostCount = ~std::uint32_t{0};
constexpr std::uint16_t kMostVotes = 0xffff;

/// What was seen of a k-mer. Counters stop at their most.
struct Tally {
  std::uint32_t count;
  std::uint16_t votes[2][4];  // Side, base
  std::uint32_t node;         // in the graph; kNoNode: not part of it

  ESKER_HD bool exists() const { return count != 0; }
};

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
  ESKER_HD bool is_unique(const Tally& tally) const {
    return tally.count >= count && extension(tally.votes[kLeft]) < 4 && extension(tally.votes[kRight]) < 4;
  }
};

/// A k-mer is stored as the bits that its bucket does not say.
template <class Word>
using Table = esker::containers::Map<Word, Tally, Locator<Word>>;
template <class Word>
using Slot = typename Table<Word>::Slot;
static_assert(sizeof(Slot<std::uint64_t>) == 32 && sizeof(Slot<Wide>) == 40);

/// What a message tells: the rest of a k-mer, and for each side a base's code or kNone.
template <class Word>
struct Seen {
  Stored<Word> packed;

  static ESKER_HD Seen of(const Stored<Word>& rest, std::uint8_t left, std::uint8_t right) {
    return {
        Stored<Word>::of((rest.word() << Locator<Word>::kVoteBits) | static_cast<Word>(left << 3 | right))};
  }
  ESKER_HD Stored<Word> key() const { return Stored<Word>::of(packed.word() >> Locator<Word>::kVoteBits); }
  ESKER_HD std::uint8_t vote(Side side) const {
    return static_cast<std::uint8_t>(packed.part[0] >> (side == kLeft ? 3 : 0)) & 7u;
  }
};

/// Counts a k-mer where it stands.
template <class Word>
struct CountOne {
  ESKER_HD void operator()(Tally& tally, const Seen<Word>& seen) const {
    if (tally.count != kMostCount) ++tally.count;
    for (const Side side : {kLeft, kRight}) {
      const std::uint8_t base = seen.vote(side);
      if (base < 4 && tally.votes[side][base] != kMostVotes) ++tally.votes[side][base];
    }
  }
};

}  // namespace mer
