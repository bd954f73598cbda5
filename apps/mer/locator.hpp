// Which PE, bucket and slot a k-mer belongs to, and which of its bits these three do not say already.
//
// Invariant. scrambled() is a bijection on the words below 4^k. Bucket g of the n of all PEs has the k-mers
// whose scrambled word, as a fraction of 4^k, lies in [g / n, (g + 1) / n): at most 4^k / 2^b, where 2^b <=
// n. So their lowest 2k - b bits differ: this `rest` names a k-mer within its bucket, and a message that says
// where it goes says b bits of the k-mer by that.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include <esker/containers.hpp>
#include <esker/esker.hpp>

#include "../inputs/random.hpp"
#include "../inputs/sequence/kmer.hpp"

namespace mer {

using inputs::Wide;

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

/// Where a k-mer is counted.
template <class Word>
struct Location {
  std::uint32_t pe;
  std::uint64_t bucket;  // of the PE's
  Word rest;
};

/// The placement of the table's keys (esker::containers::Map).
template <class Word>
class Locator {
 public:
  using Stored = mer::Stored<Word>;
  /// A message has two votes beside the rest, in one Word.
  static constexpr unsigned kVoteBits = 6;
  /// Fewest buckets of all PEs: then rest and votes fit into a Word for every odd k.
  static constexpr std::uint64_t kLeastBuckets = 16;

  Locator() = default;
  explicit Locator(unsigned k) : k_{k}, mask_{inputs::kmer_mask<Word>(k)} {}
  Locator(unsigned k, std::uint32_t pes, std::uint64_t buckets) : Locator(k) { spread(pes, buckets); }

  /// `buckets` of each PE. Throws esker::Error{kConfiguration} for more than 2^32 of all PEs.
  void spread(std::uint32_t pes, std::uint64_t buckets) {
    pes_ = pes;
    buckets_ = buckets;
    const std::uint64_t n = pes_ * buckets;
    if (n < kLeastBuckets || n > std::uint64_t{1} << 32) {
      throw esker::Error(esker::Error::Kind::kConfiguration,
                         "a k-mer table of " + std::to_string(n) + " buckets; 16 to 2^32 are possible");
    }
    const auto said = static_cast<unsigned>(std::bit_width(n)) - 1;
    rest_mask_ = said >= 2 * k_ ? 0 : static_cast<Word>(mask_ >> said);
    quotient_ = static_cast<std::uint64_t>((Wide{1} << 64) / n);
    remainder_ = static_cast<std::uint64_t>((Wide{1} << 64) % n);
  }

  ESKER_HD esker::containers::KeyPlace<Stored> place(Word kmer) const {
    const Location<Word> at = of(kmer);
    return {at.pe, at.bucket, static_cast<std::uint32_t>(at.rest) & 0xffff, Stored::of(at.rest)};
  }
  ESKER_HD Word key(std::uint32_t pe, std::uint64_t bucket, const Stored& stored) const {
    return kmer(pe, bucket, stored.word());
  }

  ESKER_HD Location<Word> of(Word kmer) const {
    const Word h = scrambled(kmer);
    const Wide on_pe = static_cast<Wide>(top(h)) * pes_;
    const Wide in_pe = static_cast<Wide>(static_cast<std::uint64_t>(on_pe)) * buckets_;
    return {static_cast<std::uint32_t>(on_pe >> 64), static_cast<std::uint64_t>(in_pe >> 64),
            static_cast<Word>(h & rest_mask_)};
  }

  /// The inverse: the k-mer of a bucket of this PE that has this rest.
  ESKER_HD Word kmer(std::uint32_t pe, std::uint64_t bucket, Word rest) const {
    const std::uint64_t n = pes_ * buckets_;
    const std::uint64_t g = pe * buckets_ + bucket;
    // The least 64-bit fraction of the bucket: g 2^64 / n, rounded up; g * remainder_ < n^2 <= 2^64.
    const std::uint64_t part = g * remainder_;
    const std::uint64_t first_top = g * quotient_ + part / n + (part % n != 0 ? 1 : 0);
    const Word first = first_with(first_top);
    return unscrambled(static_cast<Word>(first + ((rest - first) & rest_mask_)));
  }

 private:
  static constexpr Word kFactor1 =
      static_cast<Word>((static_cast<Wide>(0xd6e8feb86659fd93) << 64) | 0x9e3779b97f4a7c15);
  static constexpr Word kFactor2 =
      static_cast<Word>((static_cast<Wide>(0xa0761d6478bd642f) << 64) | 0xbf58476d1ce4e5b9);
  /// Of an odd factor, modulo 2^128 and so modulo each lesser power: Newton's steps double the right bits.
  static constexpr Word inverse(Word factor) {
    Word x = factor;  // right in 3 bits
    for (int i = 0; i < 6; ++i) x = static_cast<Word>(x * (2 - factor * x));
    return x;
  }

  // A shift by k, half of the bits, is its own inverse with xor.
  ESKER_HD Word scrambled(Word x) const {
    x = (x ^ (x >> k_)) * kFactor1 & mask_;
    x = (x ^ (x >> k_)) * kFactor2 & mask_;
    return x ^ (x >> k_);
  }
  ESKER_HD Word unscrambled(Word x) const {
    constexpr Word kInverse1 = inverse(kFactor1);
    constexpr Word kInverse2 = inverse(kFactor2);
    x = (x ^ (x >> k_)) * kInverse2 & mask_;
    x = (x ^ (x >> k_)) * kInverse1 & mask_;
    return x ^ (x >> k_);
  }

  /// The scrambled word's first 64 bits, as a fraction of 2^64.
  ESKER_HD std::uint64_t top(Word h) const {
    return 2 * k_ <= 64 ? static_cast<std::uint64_t>(h) << (64 - 2 * k_)
                        : static_cast<std::uint64_t>(h >> (2 * k_ - 64));
  }
  /// The least scrambled word whose top is `fraction` or more.
  ESKER_HD Word first_with(std::uint64_t fraction) const {
    if (2 * k_ > 64) return static_cast<Word>(static_cast<Word>(fraction) << (2 * k_ - 64));
    const std::uint64_t below = std::uint64_t{1} << (64 - 2 * k_);
    return static_cast<Word>(fraction / below + (fraction % below != 0 ? 1 : 0));
  }

  unsigned k_ = 1;
  Word mask_ = 0;
  Word rest_mask_ = 0;
  std::uint64_t pes_ = 1;
  std::uint64_t buckets_ = 1;
  std::uint64_t quotient_ = 0;  // of 2^64 by the number of all buckets
  std::uint64_t remainder_ = 0;
};

}  // namespace mer
