// A PE's reads as one text, and how many different k-mers all PEs have.
//
// Invariant. A letter of the text is a base's code, inputs::kNoBase between two reads, at both ends and
// where the read has no base; kTrusted is added to it where the base has quality enough for a vote. So every
// window of k bases of the text is one of a read, and has a letter on both sides.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <esker/esker.hpp>

#include "../inputs/sequence/genome.hpp"
#include "../inputs/sequence/kmer.hpp"
#include "../inputs/sequence/reads.hpp"

namespace mer {

constexpr std::uint8_t kTrusted = 8;
ESKER_HD constexpr std::uint8_t base_of(std::uint8_t letter) { return letter & 7u; }
/// What the letter says as somebody's neighbour: a base, or inputs::kNoBase.
ESKER_HD constexpr std::uint8_t vote_of(std::uint8_t letter) {
  return (letter & kTrusted) != 0 ? base_of(letter) : inputs::kNoBase;
}

/// Calls visit(read) for each read of a part of the input.
using Reads = std::function<void(inputs::Part, const std::function<void(const inputs::Read&)>&)>;

inline Reads reads_of(std::vector<std::string> files) {
  return [files = std::move(files)](inputs::Part part, const auto& visit) {
    for (const std::string& file : files) inputs::for_each_read(file, part, visit);
  };
}
inline Reads reads_of(const inputs::ReadGenerator& generator) {
  return [generator](inputs::Part part, const auto& visit) { inputs::for_each_read(generator, part, visit); };
}

/// How many different words were seen, within 2 % or so (HyperLogLog: Flajolet et al., AofA 2007). The
/// registers of several are merged by their maxima.
class Distinct {
 public:
  static constexpr unsigned kBits = 12;

  void see(std::uint64_t mixed) {
    std::uint64_t& most = registers_[mixed >> (64 - kBits)];
    const auto zeros = static_cast<std::uint64_t>(std::countl_zero(mixed << kBits | 1)) + 1;
    most = std::max(most, zeros);
  }
  std::span<std::uint64_t> registers() { return registers_; }
  double estimate() const {
    const auto m = static_cast<double>(registers_.size());
    double sum = 0;
    double empty = 0;
    for (const std::uint64_t r : registers_) {
      sum += std::ldexp(1.0, -static_cast<int>(r));
      empty += r == 0 ? 1 : 0;
    }
    const double raw = 0.7213 / (1 + 1.079 / m) * m * m / sum;
    return raw < 2.5 * m && empty > 0 ? m * std::log(m / empty) : raw;
  }

 private:
  std::vector<std::uint64_t> registers_ = std::vector<std::uint64_t>(std::size_t{1} << kBits);
};

struct ReadText {
  std::vector<std::uint8_t> letters;
  std::uint64_t reads = 0;
  std::uint64_t kmers = 0;  // windows
  Distinct distinct;
};

/// The text of a part of the reads.
template <class Word>
ReadText read_text(const Reads& reads, inputs::Part part, unsigned k, std::uint8_t least_quality) {
  ReadText text;
  text.letters.push_back(inputs::kNoBase);
  inputs::RollingKmer<Word> window(k);
  reads(part, [&](const inputs::Read& read) {
    ++text.reads;
    for (std::size_t i = 0; i < read.bases.size(); ++i) {
      const std::uint8_t base = inputs::base_code(read.bases[i]);
      const bool is_trusted = base != inputs::kNoBase &&
                              (read.qualities.empty() || inputs::phred(read.qualities[i]) >= least_quality);
      text.letters.push_back(static_cast<std::uint8_t>(base | (is_trusted ? kTrusted : 0)));
      window.push(base);
      if (!window.is_full()) continue;
      ++text.kmers;
      const inputs::Wide kmer = window.canonical();
      text.distinct.see(inputs::mix(static_cast<std::uint64_t>(kmer) ^
                                    inputs::mix(static_cast<std::uint64_t>(kmer >> 64))));
    }
    text.letters.push_back(inputs::kNoBase);
    window.push(inputs::kNoBase);
  });
  return text;
}

}  // namespace mer
