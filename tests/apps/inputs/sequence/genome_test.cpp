// Generated genomes and reads: independent of the parts, and as the options ask.
#include <esker/apps/inputs/sequence/genome.hpp>
#include <esker/apps/inputs/sequence/kmer.hpp>

#include <map>
#include <string>
#include <vector>

#include "../../../slow.hpp"
#include "collected.hpp"

namespace inputs::testing {
namespace {

std::string spelled(const Genome& genome) {
  std::string text;
  for (std::uint64_t i = 0; i < genome.bases(); ++i) text += base_letter(genome[i]);
  return text;
}

std::vector<Record> generated(const ReadGenerator& generator, std::uint64_t parts) {
  const auto of_part = [&](Part part) {
    std::vector<Record> records;
    for_each_read(generator, part, [&](const Read& read) {
      records.push_back({std::string(read.name), std::string(read.bases), std::string(read.qualities)});
    });
    return records;
  };
  return in_parts(of_part, parts);
}

double fraction(std::uint64_t some, std::uint64_t all) {
  return static_cast<double>(some) / static_cast<double>(all);
}

TEST(Genome, HasTheFractionOfGAndC) {
  for (const double gc : {0.0, 0.3, 0.5, 0.8, 1.0}) {
    const std::string text = spelled(Genome({.bases = 100'000, .gc = gc}));
    std::map<char, std::uint64_t> count;
    for (const char c : text) ++count[c];
    EXPECT_NEAR(fraction(count['G'] + count['C'], text.size()), gc, 0.01);
    EXPECT_NEAR(fraction(count['G'], text.size()), gc / 2, 0.01);
    EXPECT_NEAR(fraction(count['A'], text.size()), (1 - gc) / 2, 0.01);
  }
}

TEST(Genome, IsAFunctionOfTheSeed) {
  EXPECT_EQ(spelled(Genome({.seed = 7, .bases = 1000})), spelled(Genome({.seed = 7, .bases = 1000})));
  EXPECT_NE(spelled(Genome({.seed = 7, .bases = 1000})), spelled(Genome({.seed = 8, .bases = 1000})));
}

/// Fraction of 31-mers that stand in the genome more than once.
double repeated(const GenomeOptions& options) {
  const std::string text = spelled(Genome(options));
  std::map<std::uint64_t, std::uint64_t> count;
  for_each_kmer<std::uint64_t>(text.data(), text.size(), 31, [&](auto kmer, auto) { ++count[kmer]; });
  std::uint64_t several = 0;
  for (const auto& [kmer, n] : count) several += n > 1 ? n : 0;
  return fraction(several, text.size() - 30);
}

TEST(Genome, HasTheFractionOfRepeats) {
  EXPECT_EQ(repeated({.bases = 100'000}), 0);
  EXPECT_NEAR(repeated({.bases = 200'000, .repeat_fraction = 0.4}), 0.4, 0.1);  // less at the segments' ends
  EXPECT_GT(repeated({.bases = 200'000, .repeat_fraction = 1, .repeat_families = 3}), 0.9);
  // Of 31 bases one at least is new in 27 % of the windows.
  EXPECT_LT(repeated({.bases = 200'000, .repeat_fraction = 1, .repeat_divergence = 0.2}), 0.2);
}

TEST(GeneratedReads, AreTheSameInAnyNumberOfParts) {
  const Genome genome({.seed = 5, .bases = 5000, .repeat_fraction = 0.2});
  const ReadGenerator generator(genome, {.seed = 6, .length = 70, .coverage = 4.5});
  EXPECT_EQ(generator.reads(), 322u);  // 4.5 * 5000 / 70, rounded up
  const auto whole = generated(generator, 1);
  EXPECT_EQ(whole.size(), 322u);
  for (const std::uint64_t parts : {2u, 3u, 7u, 400u}) EXPECT_EQ(generated(generator, parts), whole);
  EXPECT_NE(generated(ReadGenerator(genome, {.seed = 7, .length = 70, .coverage = 4.5}), 1), whole);
}

TEST(GeneratedReads, CoverTheGenomeWithTheRateOfErrors) {
  const Genome genome({.bases = 20'000});
  const ReadGenerator generator(genome, {.length = 100, .coverage = 20, .error_rate = 0.02});
  const std::string text = spelled(genome);
  std::vector<std::uint64_t> depth(text.size());
  std::uint64_t errors = 0;
  std::uint64_t reversed = 0;
  std::map<unsigned, std::uint64_t> substitutions;  // by how far the code moved
  std::uint64_t i = 0;
  for_each_read(generator, {}, [&](const Read& read) {
    const std::uint64_t start = generator.start(i);
    const bool other_strand = generator.is_reversed(i);
    reversed += other_strand ? 1 : 0;
    for (std::uint64_t j = 0; j < 100; ++j) {
      const std::uint64_t at = other_strand ? start + 99 - j : start + j;
      ++depth.at(at);
      const unsigned there = base_code(text[at]);
      const unsigned expected = other_strand ? 3 - there : there;
      const unsigned code = base_code(read.bases[j]);
      const bool is_wrong = code != expected;
      errors += is_wrong ? 1 : 0;
      if (is_wrong) ++substitutions[(code + 4 - expected) % 4];
      EXPECT_EQ(phred(read.qualities[j]) < ReadGenerator::kWorstTrueQuality, is_wrong);
      EXPECT_GE(phred(read.qualities[j]), 2);
      EXPECT_LE(phred(read.qualities[j]), 40);
    }
    ++i;
  });
  EXPECT_EQ(i, 4000u);
  EXPECT_NEAR(fraction(errors, 400'000), 0.02, 0.002);
  EXPECT_NEAR(fraction(reversed, 4000), 0.5, 0.05);
  for (const unsigned moved : {1u, 2u, 3u})
    EXPECT_NEAR(fraction(substitutions[moved], errors), 1 / 3.0, 0.05);
  std::uint64_t bare = 0;  // e^-20 of the bases are, but for the ends
  for (std::size_t at = 100; at + 100 < depth.size(); ++at) bare += depth[at] == 0 ? 1 : 0;
  EXPECT_EQ(bare, 0u);
}

TEST(GeneratedReads, AreReadBackFromFastq) {
  constexpr std::uint64_t kReads = esker::testing::kIsSlow ? 2000 : 10'000;
  const ReadGenerator generator(Genome({.bases = 5 * kReads}), {.length = 50, .coverage = 10});
  const auto expected = generated(generator, 1);
  ASSERT_EQ(expected.size(), kReads);
  const WrittenFile file("");
  write_fastq(file.path(), generator);
  for (const std::uint64_t parts : {1u, 2u, 3u, 7u, 1000u, 30'000u}) {
    EXPECT_EQ(collect_all(file.path(), parts), expected) << parts;
  }
  EXPECT_NE(reason([&] { write_fastq("/no/such/folder/file", generator); }).find("cannot be written"),
            std::string::npos);
}

TEST(GeneratedReads, OptionsWithoutALegalValueAreRefused) {
  const auto genome = [](const GenomeOptions& options) { return reason([&] { Genome{options}; }); };
  EXPECT_EQ(genome({.bases = 0}), "generated genome: it has no bases");
  EXPECT_EQ(genome({.gc = 1.1}), "generated genome: the fraction of G and C is not within 0 and 1");
  EXPECT_EQ(genome({.repeat_fraction = -1}),
            "generated genome: the fraction of repeats is not within 0 and 1");
  EXPECT_EQ(genome({.repeat_length = 0}), "generated genome: repeats of no bases");
  EXPECT_EQ(genome({.repeat_families = 0}), "generated genome: no family of repeats");
  EXPECT_EQ(genome({.repeat_divergence = 2}),
            "generated genome: the divergence of repeats is not within 0 and 1");
  const auto reads = [](const ReadOptions& options) {
    return reason([&] { ReadGenerator(Genome({.bases = 1000}), options); });
  };
  EXPECT_EQ(reads({.length = 0}), "generated reads: they have no bases");
  EXPECT_EQ(reads({.length = 1001}), "generated reads: they are longer than the genome");
  EXPECT_EQ(reads({.coverage = 0}), "generated reads: the coverage is not above 0, or too high");
  EXPECT_EQ(reads({.coverage = 1e300}), "generated reads: the coverage is not above 0, or too high");
  EXPECT_EQ(reads({.error_rate = 1.5}), "generated reads: the error rate is not within 0 and 1");
  EXPECT_EQ(reads({.length = 1000, .coverage = 1}), "accepted");
}

}  // namespace
}  // namespace inputs::testing
