// Malformed sequence files: the message says where and why, whatever the number of parts; nothing crashes.
#include <fmt/format.h>

#include <set>

#include "../gzip.hpp"
#include "collected.hpp"

namespace inputs::testing {
namespace {

struct Case {
  const char* text;
  const char* why;  // behind the file's name
};

const Case kCases[] = {
    {"ACGT\n", ":1: neither FASTA nor FASTQ: it begins with 'A'"},
    {"\n>a\nA\n", ":1: neither FASTA nor FASTQ: it begins with byte 0x0a"},
    {">a\nAC\nAXG\n>b\nA\n", ":3: 'X' is not a base"},
    {">a\nAC\nA G\n", ":3: ' ' is not a base"},
    {">a\nAC\n;\n", ":3: ';' is not a base"},
    {">a\nAC\xc3\n", ":2: byte 0xc3 is not a base"},
    {">a\nA\rC\n", ":2: byte 0x0d is not a base"},
    {">a\n>b\nA\n", ":1: the record has no bases"},
    {">a\nA\n>b\n", ":3: the record has no bases"},
    {">a\nA\n>b", ":3: the record has no bases"},
    {"@a\nAC\n+\nII\n@b\nA-\n+\nII\n", ":6: '-' is not a base"},
    {"@a\nAC\n+\nII\n@b\nRZ\n+\nII\n", ":6: 'Z' is not a base"},
    {">a\nAC\nRYU\n", ":3: 'U' is not a base"},
    {"@a\nAC\nII\n@b\nAC\n+\nII\n", ":3: the third line of a record begins with '+'"},
    {"@a\nAC\n+\nIII\n@b\nAC\n+\nII\n", ":4: 3 qualities for 2 bases"},
    {"@a\nAC\n+\nII\n@b\nACG\n+\nII\n", ":8: 2 qualities for 3 bases: the file may be cut off here"},
    {"@a\nAC\n+\nI\x1f\n@b\nAC\n+\nII\n", ":4: byte 0x1f is not a quality"},
    {"@a\nAC\n+\nI \n", ":4: ' ' is not a quality"},
    {"@a\nAC\n+\nI\x7f\n", ":4: byte 0x7f is not a quality"},
    {"@a\nAC\n+b\nII\n", ":3: the name behind '+' is not the record's"},
    {"@a\nAC\n+\nII\nb\nAC\n+\nII\n", ":5: a record begins with '@', not with 'b'"},
    {"@a\nAC\n+\nII\n>b\nAC\n", ":5: a record begins with '@', not with '>'"},
    {"@a\nAC\n+\nII\n\n@b\nAC\n+\nII\n", ":6: empty lines stand before this one"},
    {"@a\nAC\n+\nII\n@b", ":5: the file is cut off behind this line: the record's bases are missing"},
    {"@a\nAC\n+\nII\n@b\nAC\n", ":6: the file is cut off behind this line: the record's '+' are missing"},
    {"@a\nAC\n+\nII\n@b\nAC\n+\n", ":7: the file is cut off behind this line: the record's qualities are"},
    // What begins in a quality line looks like a record, and its sequence begins with '+'.
    {"@a\nA\n+\n@\n@b\n+C\n+\nII\n", ":6: '+' is not a base"},
    {"@a\nAC\n+\n@I\nAC\n+I\nII\n", ":5: a record begins with '@', not with 'A'"},
};

auto reader(const std::string& file) {
  return [&](Part part) { collect(file, part); };
}

TEST(MalformedReads, TheFileTheLineAndTheReasonAreSaid) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.text);
    const WrittenFile file(c.text);
    for (std::uint64_t parts = 1; parts < std::string_view(c.text).size() + 2; ++parts) {
      SCOPED_TRACE(parts);
      expect_reason(first_reason(reader(file.path()), parts), file, c.why);
    }
    const WrittenFile compressed(gzip(c.text));
    expect_reason(first_reason(reader(compressed.path()), 1), compressed, c.why);
    expect_reason(reason([&] {
                    collect(compressed.path(), {1, 2});
                  }),
                  compressed,
                  c.why);  // every part sees it
  }
}

TEST(MalformedReads, FilesThatCannotBeReadAreSaid) {
  const WrittenFile empty("");
  expect_reason(reason([&] { collect(empty.path()); }), empty, ": is empty");
  const WrittenFile empty_gzip(gzip(""));
  expect_reason(reason([&] { collect(empty_gzip.path()); }), empty_gzip, ": holds nothing but an empty gzip");
  EXPECT_NE(reason([] { collect("/no/such/file"); }).find("/no/such/file: cannot be opened: No such file"),
            std::string::npos);
  EXPECT_NE(reason([] { collect("/"); }).find("/: is not a regular file"), std::string::npos);
}

TEST(MalformedReads, TruncatedOrDamagedGzipIsSaidAtEveryLength) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += fmt::format("@r{}\nACGT\n+\nI@+!\n", i * i);
  const std::string whole = gzip(text);
  WrittenFile file(whole);
  EXPECT_EQ(collect(file.path()).size(), 50u);
  for (std::size_t size = 2; size < whole.size(); ++size) {
    file.write(whole.substr(0, size));
    const std::string said = reason([&] { collect(file.path(), {1, 2}); });
    EXPECT_NE(said.find(": byte " + std::to_string(size) + ": the gzip stream is truncated"),
              std::string::npos)
        << size << ": " << said;
  }
  file.write(whole + "x");
  expect_reason(reason([&] { collect(file.path()); }), file,
                ": byte " + std::to_string(whole.size()) + ": neither the end of the file nor another gzip");
  std::string damaged = whole;
  damaged[whole.size() - 6] ^= 1;  // the checksum
  file.write(damaged);
  EXPECT_NE(reason([&] { collect(file.path()); }).find("incorrect data check"), std::string::npos);
}

TEST(MalformedReads, AnErrorEndsOneOfThePartsAtEveryTruncation) {
  const std::string whole = "@a\nACG\n+\n@+@\n@b\nAC\n+\n+@\n@c\nACGT\n+\n@ACG\n";
  const std::set<std::size_t> complete{12, 13, 23, 24, 38};  // records end, with or without a line end
  for (std::size_t size = 1; size < whole.size(); ++size) {
    if (complete.contains(size)) continue;
    const WrittenFile file(whole.substr(0, size));
    for (const std::uint64_t parts : {1u, 2u, 3u, 7u, 50u}) {
      EXPECT_NE(first_reason(reader(file.path()), parts), "accepted")
          << size << " bytes, " << parts << " parts";
    }
  }
}

// In any number of parts the same records are read, or an error is thrown.
TEST(MalformedReads, MutatedFilesAreReadOrRefusedAlikeInAllParts) {
  const std::string fastq = "@a x\nACGTN\n+\n@++@I\n@b\nac\n+b\n+@\n@c\nGATTACA\n+\n@CCCCC@\n@d\nA\n+\n@\n";
  const std::string fasta = ">a x\nACGTN\nACG\n>b\nac\n\n>c\nGATTACA\nGG\n>d\nA\n";
  int accepted = 0;
  WrittenFile file("-");
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const std::string text = mutated(seed % 2 == 0 ? fastq : fasta, seed);
    file.write(text);
    const std::string whole = first_reason(reader(file.path()), 1);
    accepted += whole == "accepted" ? 1 : 0;
    for (const std::uint64_t parts : {2u, 5u}) {
      const std::string said = first_reason(reader(file.path()), parts);
      ASSERT_EQ(said == "accepted", whole == "accepted") << "seed " << seed << ": " << said << "\n" << whole;
      if (said == "accepted") {
        ASSERT_EQ(collect_all(file.path(), parts), collect(file.path())) << seed;
      }
    }
  }
  EXPECT_GT(accepted, 100);  // both ways were tested
  EXPECT_LT(accepted, 1900);
}

TEST(MalformedReads, MutatedGzipIsReadOrRefused) {
  std::string text;
  for (int i = 0; i < 20; ++i) text += fmt::format("@r{}\nACGT\n+\nI@+!\n", i);
  const std::string good = gzip(text);
  WrittenFile file("-");
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    file.write(mutated(good, seed));
    refused += reason([&] { collect(file.path()); }) == "accepted" ? 0 : 1;
  }
  EXPECT_GT(refused, 700);
}

}  // namespace
}  // namespace inputs::testing
