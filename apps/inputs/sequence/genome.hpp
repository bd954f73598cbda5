// Generated genomes and reads of them: any base and any read is a function of a seed and its number.
#pragma once

#include <cstdint>
#include <string>

#include "../file/part.hpp"
#include "../random.hpp"
#include "bases.hpp"
#include "reads.hpp"

namespace inputs {

struct GenomeOptions {
  std::uint64_t seed = 1;
  std::uint64_t bases = 1'000'000;
  double gc = 0.5;                     // fraction of G and C
  double repeat_fraction = 0;          // of the genome that is copies of repeated sequences
  std::uint64_t repeat_length = 500;   // bases
  std::uint64_t repeat_families = 10;  // different repeated sequences
  double repeat_divergence = 0;        // fraction of a copy's bases that are drawn anew
};

/// A linear genome. It is computed where it is read: nothing is stored, and it may be copied to a device.
///
/// Contract The genome is cut into segments of `repeat_length`; a segment is a copy of one of the families
///          with probability `repeat_fraction`, and of its own otherwise.
class Genome {
 public:
  /// Throws esker::Error{kConfiguration} naming the option that has no legal value.
  explicit Genome(const GenomeOptions& options);

  ESKER_HD std::uint64_t bases() const { return bases_; }

  /// Code of base `i` < bases().
  ESKER_HD std::uint8_t operator[](std::uint64_t i) const {
    if (repeat_chance_ == 0) return draw(kOwn, i);
    const std::uint64_t segment = i / repeat_length_;
    if (random_(kIsRepeat, segment) >= repeat_chance_ || random_(kDiverged, i) < divergence_chance_) {
      return draw(kOwn, i);
    }
    const std::uint64_t family = scaled(random_(kFamily, segment), families_);
    return draw(kRepeated, family * repeat_length_ + i % repeat_length_);
  }

 private:
  enum Stream : std::uint64_t { kOwn, kRepeated, kIsRepeat, kFamily, kDiverged };

  ESKER_HD std::uint8_t draw(Stream stream, std::uint64_t i) const {
    const std::uint64_t word = random_(stream, i);
    const bool is_gc = word < gc_chance_;
    const unsigned second = word & 1;  // of C G, or of A T
    return static_cast<std::uint8_t>(is_gc ? 1 + second : 3 * second);
  }

  Random random_;
  std::uint64_t bases_;
  std::uint64_t gc_chance_;
  std::uint64_t repeat_chance_;
  std::uint64_t repeat_length_;
  std::uint64_t families_;
  std::uint64_t divergence_chance_;
};

struct ReadOptions {
  std::uint64_t seed = 1;
  std::uint64_t length = 100;  // bases a read, at most the genome's
  double coverage = 10;        // how many reads cover a base on average
  double error_rate = 0.01;    // fraction of bases that another one replaces
};

/// Reads from uniform places of both strands of a genome. May be copied to a device.
///
/// Contract A replaced base has a quality of 2 to 20, a true one of 25 to 40. Since the genome is linear, its
///          ends are covered less.
class ReadGenerator {
 public:
  static constexpr std::uint64_t kWorstTrueQuality = 25;

  /// Throws esker::Error{kConfiguration} naming the option that has no legal value.
  ReadGenerator(const Genome& genome, const ReadOptions& options);

  ESKER_HD std::uint64_t reads() const { return reads_; }
  ESKER_HD std::uint64_t length() const { return length_; }

  /// Where read `i` begins in the genome, on the forward strand.
  ESKER_HD std::uint64_t start(std::uint64_t i) const {
    return scaled(random_(kStart, i), genome_.bases() - length_ + 1);
  }
  ESKER_HD bool is_reversed(std::uint64_t i) const { return (random_(kStrand, i) & 1) != 0; }

  /// Writes read `i` < reads(): `length()` letters, and as many qualities, Phred+33.
  ESKER_HD void write(std::uint64_t i, char* bases, char* qualities) const {
    const std::uint64_t first = start(i);
    const bool reversed = is_reversed(i);
    for (std::uint64_t j = 0; j < length_; ++j) {
      const unsigned there = genome_[reversed ? first + length_ - 1 - j : first + j];
      const unsigned true_code = reversed ? 3 - there : there;
      const std::uint64_t word = random_(kDetail, i * length_ + j);
      const bool is_wrong = random_(kError, i * length_ + j) < error_chance_;
      const unsigned code =
          is_wrong ? (true_code + 1 + static_cast<unsigned>((word & 0xffffffff) % 3)) & 3u : true_code;
      const std::uint64_t quality = is_wrong ? 2 + scaled(word, 19) : kWorstTrueQuality + scaled(word, 16);
      bases[j] = base_letter(static_cast<std::uint8_t>(code));
      qualities[j] = static_cast<char>('!' + quality);
    }
  }

 private:
  enum Stream : std::uint64_t { kStart = 16, kStrand, kError, kDetail };  // apart from the genome's

  Genome genome_;
  Random random_;
  std::uint64_t length_;
  std::uint64_t reads_;
  std::uint64_t error_chance_;
};

/// Calls visit(read) for the reads of the part, as for_each_read() of a file does. Read i is named "i".
template <class Visit>
void for_each_read(const ReadGenerator& generator, Part part, Visit visit) {
  std::string bases(generator.length(), 'N');
  std::string qualities(generator.length(), '!');
  const Range mine = range_of(generator.reads(), part);
  for (std::uint64_t i = mine.begin; i < mine.end; ++i) {
    generator.write(i, bases.data(), qualities.data());
    const std::string name = std::to_string(i);
    visit(Read{name, bases, qualities});
  }
}

/// Writes all reads to a FASTQ file, replacing what it held. Throws esker::Error if it cannot be written.
void write_fastq(const std::string& file, const ReadGenerator& generator);

}  // namespace inputs
