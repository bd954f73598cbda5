// k-mers: k bases in one word, two bits each, and the windows of a read. For host and device.
#pragma once

#include <cstdint>

#include "../random.hpp"  // Wide
#include "bases.hpp"

namespace inputs {

/// A k-mer is a Word: std::uint64_t up to k = 32, Wide up to k = 64. Its last base is in the lowest bits, the
/// bits above 2k are 0, so that k-mers of one k sort like their letters.
template <class Word>
constexpr unsigned kMaxK = 4 * sizeof(Word);

/// The lowest 2k bits, 1 <= k <= kMaxK<Word>.
template <class Word>
ESKER_HD constexpr Word kmer_mask(unsigned k) {
  return static_cast<Word>(~Word{0}) >> (2 * (kMaxK<Word> - k));
}

/// Base `i` of a k-mer, from its first one.
template <class Word>
ESKER_HD constexpr std::uint8_t base_at(Word kmer, unsigned k, unsigned i) {
  return static_cast<std::uint8_t>(static_cast<unsigned>(kmer >> (2 * (k - 1 - i))) & 3u);
}

/// The k-mer on the other strand.
ESKER_HD constexpr std::uint64_t reverse_complement(std::uint64_t kmer, unsigned k) {
  std::uint64_t x = ~kmer;  // complements, in reverse once the pairs of bits have changed places
  x = ((x >> 2) & 0x3333333333333333) | ((x & 0x3333333333333333) << 2);
  x = ((x >> 4) & 0x0f0f0f0f0f0f0f0f) | ((x & 0x0f0f0f0f0f0f0f0f) << 4);
  x = ((x >> 8) & 0x00ff00ff00ff00ff) | ((x & 0x00ff00ff00ff00ff) << 8);
  x = ((x >> 16) & 0x0000ffff0000ffff) | ((x & 0x0000ffff0000ffff) << 16);
  x = (x >> 32) | (x << 32);
  return x >> (64 - 2 * k);
}
ESKER_HD constexpr Wide reverse_complement(Wide kmer, unsigned k) {
  const Wide low = reverse_complement(static_cast<std::uint64_t>(kmer), 32);
  const Wide high = reverse_complement(static_cast<std::uint64_t>(kmer >> 64), 32);
  return ((low << 64) | high) >> (128 - 2 * k);
}

/// The lesser of the k-mer and its reverse complement: one name for both strands.
template <class Word>
ESKER_HD constexpr Word canonical(Word kmer, unsigned k) {
  const Word other = reverse_complement(kmer, k);
  return kmer < other ? kmer : other;
}

/// The k-mer of the last k bases that were pushed, on both strands; a base costs two shifts.
template <class Word>
class RollingKmer {
 public:
  /// 1 <= k <= kMaxK<Word>.
  ESKER_HD constexpr explicit RollingKmer(unsigned k)
      : k_{k}, mask_{kmer_mask<Word>(k)}, top_shift_{2 * (k - 1)} {}

  /// kNoBase empties the window.
  ESKER_HD constexpr void push(std::uint8_t code) {
    if (code == kNoBase) {
      filled_ = 0;
      return;
    }
    forward_ = ((forward_ << 2) | code) & mask_;
    reverse_ = (reverse_ >> 2) | (static_cast<Word>(3 - code) << top_shift_);
    if (filled_ < k_) ++filled_;
  }

  /// Whether the last k pushes were bases; what follows is valid only then.
  ESKER_HD constexpr bool is_full() const { return filled_ == k_; }
  ESKER_HD constexpr Word forward() const { return forward_; }
  ESKER_HD constexpr Word reverse() const { return reverse_; }
  /// A k-mer that is its own reverse complement (k is even then) counts as forward.
  ESKER_HD constexpr bool is_reversed() const { return reverse_ < forward_; }
  ESKER_HD constexpr Word canonical() const { return is_reversed() ? reverse_ : forward_; }

 private:
  unsigned k_;
  Word mask_;
  unsigned top_shift_;
  unsigned filled_ = 0;
  Word forward_ = 0;
  Word reverse_ = 0;
};

/// Calls visit(canonical, position) for each window of k bases without an N, in order; `position` is the
/// window's first base. `bases` holds `length` letters.
template <class Word, class Visit>
ESKER_HD constexpr void for_each_kmer(const char* bases, std::uint64_t length, unsigned k, Visit&& visit) {
  RollingKmer<Word> window(k);
  for (std::uint64_t i = 0; i < length; ++i) {
    window.push(base_code(bases[i]));
    if (window.is_full()) visit(window.canonical(), i + 1 - k);
  }
}

/// The base beside a window; kNoBase and quality 0 at the read's end or where it is no base.
struct Neighbour {
  std::uint8_t base;
  std::uint8_t quality;  // Phred score
};

/// A window of a read as its canonical k-mer, with what stands left and right of it on that strand: where the
/// reverse complement is canonical, the two change sides and become complements.
template <class Word>
struct ExtendedKmer {
  Word kmer;
  Neighbour left;
  Neighbour right;
  std::uint64_t position;  // of the window's first base in the read
  bool is_reversed;        // whether `kmer` is the reverse complement of what the read says
};

/// Neighbour `i` of a read on the read's own strand. Without qualities every base has the highest.
ESKER_HD constexpr Neighbour neighbour(const char* bases, const char* qualities, std::uint64_t i) {
  const std::uint8_t base = base_code(bases[i]);
  if (base == kNoBase) return {kNoBase, 0};
  return {base, qualities == nullptr ? kMaxPhred : phred(qualities[i])};
}

/// Calls visit(ExtendedKmer<Word>) for each window of k bases without an N, in order: what de Bruijn graph
/// assemblers (Meraculous: Chapman et al., PLoS ONE 6(8), 2011) count. `bases` and, where it is not null,
/// `qualities` hold `length` characters, Phred+33.
template <class Word, class Visit>
ESKER_HD constexpr void for_each_extended_kmer(const char* bases, const char* qualities, std::uint64_t length,
                                               unsigned k, Visit&& visit) {
  const auto flip = [](Neighbour n) -> Neighbour {
    return {n.base == kNoBase ? kNoBase : static_cast<std::uint8_t>(3 - n.base), n.quality};
  };
  constexpr Neighbour kNone{kNoBase, 0};
  RollingKmer<Word> window(k);
  for (std::uint64_t i = 0; i < length; ++i) {
    window.push(base_code(bases[i]));
    if (!window.is_full()) continue;
    const std::uint64_t first = i + 1 - k;
    const Neighbour before = first == 0 ? kNone : neighbour(bases, qualities, first - 1);
    const Neighbour after = i + 1 == length ? kNone : neighbour(bases, qualities, i + 1);
    const bool reversed = window.is_reversed();
    visit(ExtendedKmer<Word>{window.canonical(), reversed ? flip(after) : before,
                             reversed ? flip(before) : after, first, reversed});
  }
}

}  // namespace inputs
