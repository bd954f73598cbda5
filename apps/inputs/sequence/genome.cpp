// Options to thresholds.
#include "genome.hpp"

#include <fmt/format.h>
#include <esker/error.hpp>

#include <cmath>
#include <fstream>

#include "../file/file.hpp"

namespace inputs {
namespace {

void require(bool legal, const char* what) {
  if (!legal) throw esker::Error(esker::Error::Kind::kConfiguration, what);
}

/// What a random word is below with probability `p`.
std::uint64_t checked_chance(double p, const char* what) {
  require(p >= 0 && p <= 1, what);
  return chance(p);
}

std::uint64_t checked_count(std::uint64_t n, const char* what) {
  require(n > 0, what);
  return n;
}

std::uint64_t checked_reads(double coverage, std::uint64_t bases, std::uint64_t length) {
  require(length <= bases, "generated reads: they are longer than the genome");
  const double reads = std::ceil(coverage * static_cast<double>(bases) / static_cast<double>(length));
  require(coverage > 0 && reads < 0x1p63, "generated reads: the coverage is not above 0, or too high");
  return static_cast<std::uint64_t>(reads);
}

}  // namespace

Genome::Genome(const GenomeOptions& options)
    : random_{options.seed},
      bases_{checked_count(options.bases, "generated genome: it has no bases")},
      gc_chance_{
          checked_chance(options.gc, "generated genome: the fraction of G and C is not within 0 and 1")},
      repeat_chance_{checked_chance(options.repeat_fraction,
                                    "generated genome: the fraction of repeats is not within 0 and 1")},
      repeat_length_{checked_count(options.repeat_length, "generated genome: repeats of no bases")},
      families_{checked_count(options.repeat_families, "generated genome: no family of repeats")},
      divergence_chance_{checked_chance(
          options.repeat_divergence, "generated genome: the divergence of repeats is not within 0 and 1")} {}

ReadGenerator::ReadGenerator(const Genome& genome, const ReadOptions& options)
    : genome_{genome},
      random_{options.seed},
      length_{checked_count(options.length, "generated reads: they have no bases")},
      reads_{checked_reads(options.coverage, genome.bases(), length_)},
      error_chance_{
          checked_chance(options.error_rate, "generated reads: the error rate is not within 0 and 1")} {}

void write_fastq(const std::string& file, const ReadGenerator& generator) {
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  for_each_read(generator, {}, [&](const Read& read) {
    out << fmt::format("@{}\n{}\n+\n{}\n", read.name, read.bases, read.qualities);
  });
  out.close();
  if (!out) bad_file(file, "cannot be written");
}

}  // namespace inputs
