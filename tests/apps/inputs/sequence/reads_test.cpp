// Reads of well-formed files: every format, every way to cut it.
#include <fmt/format.h>
#include <esker/apps/inputs/sequence/kmer.hpp>

#include <algorithm>
#include <set>
#include <tuple>

#include "../gzip.hpp"
#include "collected.hpp"

namespace inputs::testing {
namespace {

// Qualities that look like every other line of a record; a read of no bases; a name behind '+'.
const std::string kNastyFastq =
    "@a first\nACGTN\n+\n@++@>\n"
    "@b\nac\n+b\n+@\n"
    "@@c\nG\n+\n@\n"
    "@+d\nT\n++d\n+\n"
    "@empty\n\n+\n\n"
    "@e\nACGT\n+\n@ACG\n"
    "@f\nACGTACGT\n+\n@ACGTACG\n"
    "@\nNNNN\n+\n++++\n"
    "@h\nAC\n+\n@h\n"
    "@i\nAC\n+\n@i\n"
    "@j\nACG\n+\n~!+\n";
const std::vector<Record> kNasty{{"a first", "ACGTN", "@++@>"},
                                 {"b", "ac", "+@"},
                                 {"@c", "G", "@"},
                                 {"+d", "T", "+"},
                                 {"empty", "", ""},
                                 {"e", "ACGT", "@ACG"},
                                 {"f", "ACGTACGT", "@ACGTACG"},
                                 {"", "NNNN", "++++"},
                                 {"h", "AC", "@h"},
                                 {"i", "AC", "@i"},
                                 {"j", "ACG", "~!+"}};

const std::string kFasta =
    ">one line\nACGT\n>two\nAC\nGT\nN\n\n>\na\n>four > three\nACGTACGT\n\n\n>five\nT\nT";
const std::vector<Record> kFastaRecords{{"one line", "ACGT", ""},
                                        {"two", "ACGTN", ""},
                                        {"", "a", ""},
                                        {"four > three", "ACGTACGT", ""},
                                        {"five", "TT", ""}};

std::string with_crlf(const std::string& text) {
  std::string result;
  for (const char c : text) result += c == '\n' ? "\r\n" : std::string(1, c);
  return result;
}

std::vector<Record> sorted(std::vector<Record> records) {
  std::sort(records.begin(), records.end(), [](const Record& a, const Record& b) {
    return std::tie(a.name, a.bases, a.qualities) < std::tie(b.name, b.bases, b.qualities);
  });
  return records;
}

/// Each number of parts up to one a byte, and more parts than bytes: every byte is a cut.
void expect_at_every_cut(const std::string& text, const std::vector<Record>& expected) {
  const WrittenFile file(text);
  for (std::uint64_t parts = 1; parts <= text.size() + 3; ++parts) {
    ASSERT_EQ(collect_all(file.path(), parts), expected) << parts << " parts";
  }
}

TEST(Reads, FastqWithMisleadingQualitiesIsReadAtEveryCut) { expect_at_every_cut(kNastyFastq, kNasty); }
TEST(Reads, FastqWithCrlfIsReadAtEveryCut) { expect_at_every_cut(with_crlf(kNastyFastq), kNasty); }
TEST(Reads, FastqMayEndWithEmptyLinesOrWithoutALineEnd) {
  expect_at_every_cut(kNastyFastq + "\n\n\r\n", kNasty);
  expect_at_every_cut(kNastyFastq.substr(0, kNastyFastq.size() - 1), kNasty);
}
TEST(Reads, FastaOfSeveralLinesIsReadAtEveryCut) {
  expect_at_every_cut(kFasta, kFastaRecords);
  expect_at_every_cut(kFasta + "\n\n", kFastaRecords);
  expect_at_every_cut(with_crlf(kFasta), kFastaRecords);
}

TEST(Reads, EveryRecordBelongsToThePartThatItBeginsIn) {
  const WrittenFile file("@a\nA\n+\n!\n@b\nC\n+\n!\n");  // two records of 9 bytes
  EXPECT_EQ(collect(file.path(), {0, 2}).size(), 1u);
  EXPECT_EQ(collect(file.path(), {1, 2}).size(), 1u);
  EXPECT_EQ(collect(file.path(), {1, 18}).size(), 0u);
  EXPECT_EQ(collect(file.path(), {9, 18}).size(), 1u);
}

TEST(Reads, RecordsLongerThanTheBuffersAreRead) {
  std::string bases;
  for (int i = 0; i < 300'000; ++i) bases += "ACGT"[i % 7 % 4];
  const std::string qualities(bases.size(), '@');
  const WrittenFile fastq("@a\n" + bases + "\n+\n" + qualities + "\n@b\nAC\n+\nII\n");
  for (const std::uint64_t parts : {1u, 2u, 3u, 7u}) {
    EXPECT_EQ(collect_all(fastq.path(), parts),
              (std::vector<Record>{{"a", bases, qualities}, {"b", "AC", "II"}}));
  }
  const WrittenFile fasta(">a\n" + bases + "\n" + bases + "\n>b\nAC\n");
  EXPECT_EQ(collect_all(fasta.path(), 7), (std::vector<Record>{{"a", bases + bases, ""}, {"b", "AC", ""}}));
}

TEST(Reads, GzipGivesEveryRecordToOnePart) {
  std::string text;
  std::vector<Record> expected;
  for (int i = 0; i < 3000; ++i) {
    const std::string name = fmt::format("r{}", i);
    text += fmt::format("@{}\nACGT\n+\n@+II\n", name);
    expected.push_back({name, "ACGT", "@+II"});
  }
  const WrittenFile one(gzip(text));
  // Members end anywhere.
  const WrittenFile several(gzip(text.substr(0, 1001)) + gzip("") + gzip(text.substr(1001)));
  for (const WrittenFile* file : {&one, &several}) {
    EXPECT_EQ(collect(file->path()), expected);
    for (const std::uint64_t parts : {2u, 3u, 7u, 20u}) {
      EXPECT_EQ(sorted(collect_all(file->path(), parts)), sorted(expected)) << parts;
    }
    EXPECT_EQ(collect(file->path(), {1, 3}).front().name, "r256");
  }
}

TEST(Reads, GzipOfFastaAndCrlfIsRead) {
  EXPECT_EQ(collect(WrittenFile(gzip(kFasta)).path()), kFastaRecords);
  EXPECT_EQ(collect(WrittenFile(gzip(with_crlf(kNastyFastq))).path()), kNasty);
}

TEST(Reads, PhredScoresStartAtTheExclamationMark) {
  EXPECT_EQ(phred('!'), 0);
  EXPECT_EQ(phred('I'), 40);
  EXPECT_EQ(phred('~'), kMaxPhred);
}

TEST(Reads, APartThatDoesNotExistIsAMisuse) {
  const WrittenFile file(kFasta);
  EXPECT_DEATH(collect(file.path(), {2, 2}), "part 2 of 2: parts count from 0");
  EXPECT_DEATH(collect(file.path(), {0, 0}), "part 0 of 0");
}

// As reference genomes have them: A. thaliana's has some 400.
TEST(Reads, LettersForOneOfSeveralBasesAreTakenAndNoKmerSpansOne) {
  const std::string ambiguous = "NRYSWKMBDHVnryswkmbdhv";
  for (const char letter : ambiguous) {
    SCOPED_TRACE(letter);
    const std::string bases = std::string("ACGT") + letter + "GGA";
    for (const WrittenFile& file :
         {WrittenFile(">a\n" + bases + "\n"), WrittenFile("@a\n" + bases + "\n+\nIIIIIIII\n")}) {
      const auto records = collect(file.path());
      ASSERT_EQ(records.size(), 1u);
      EXPECT_EQ(records[0].bases, bases);
      std::vector<std::uint64_t> positions;
      for_each_kmer<std::uint64_t>(records[0].bases.data(), bases.size(), 3,
                                   [&](auto, std::uint64_t position) { positions.push_back(position); });
      EXPECT_EQ(positions, (std::vector<std::uint64_t>{0, 1, 5}));
    }
  }
}

TEST(Reads, PhageLambdaHasAsManyKmersAsOtherCountersFind) {
  const auto records = collect(ESKER_TEST_READS "/lambda.fa.gz");
  ASSERT_EQ(records.size(), 1u);
  const auto& [name, bases, qualities] = records[0];
  EXPECT_EQ(name, "gi|9626243|ref|NC_001416.1| Enterobacteria phage lambda, complete genome");
  ASSERT_EQ(bases.size(), 48'502u);
  EXPECT_TRUE(bases.starts_with("GGGCGGCGACCTCGCGGG"));
  // jellyfish 2.3.0 and KMC 3.2.1.
  std::set<std::uint64_t> of_21;
  for_each_kmer<std::uint64_t>(bases.data(), bases.size(), 21, [&](auto kmer, auto) { of_21.insert(kmer); });
  EXPECT_EQ(of_21.size(), 48'482u);
  std::set<Wide> of_51;
  for_each_kmer<Wide>(bases.data(), bases.size(), 51, [&](auto kmer, auto) { of_51.insert(kmer); });
  EXPECT_EQ(of_51.size(), 48'452u);
}

}  // namespace
}  // namespace inputs::testing
