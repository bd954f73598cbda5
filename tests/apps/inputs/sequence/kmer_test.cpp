// k-mers against strings.
#include <esker/apps/inputs/sequence/kmer.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace inputs {
namespace {

std::string complement_of(std::string text) {
  std::reverse(text.begin(), text.end());
  for (char& c : text) c = c == 'A' ? 'T' : c == 'C' ? 'G' : c == 'G' ? 'C' : c == 'T' ? 'A' : 'N';
  return text;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(c));
  return text;
}

template <class Word>
Word packed(const std::string& text) {
  Word word = 0;
  for (const char c : text) word = word * 4 + static_cast<Word>(std::string("ACGT").find(c));
  return word;
}

template <class Word>
std::string spelled(Word kmer, unsigned k) {
  std::string text;
  for (unsigned i = 0; i < k; ++i) text += base_letter(base_at(kmer, k, i));
  return text;
}

/// Bases in both cases with an N here and there.
std::string random_read(std::mt19937_64& random, std::size_t length) {
  std::string read;
  while (read.size() < length) read += random() % 20 == 0 ? "Nn"[random() % 2] : "ACGTacgt"[random() % 8];
  return read;
}

TEST(BaseCode, IsForTheFourLettersOnly) {
  for (int c = 0; c < 256; ++c) {
    const auto found = std::string("ACGTacgt").find(static_cast<char>(c));
    EXPECT_EQ(base_code(static_cast<char>(c)), found == std::string::npos ? kNoBase : found % 4) << c;
  }
  EXPECT_EQ(base_letter(kNoBase), 'N');
}

template <class Word>
class Kmers : public ::testing::Test {};
using Words = ::testing::Types<std::uint64_t, Wide>;
TYPED_TEST_SUITE(Kmers, Words);

TYPED_TEST(Kmers, ReverseComplementAndCanonicalAreThoseOfStrings) {
  std::mt19937_64 random(1);
  for (unsigned k = 1; k <= kMaxK<TypeParam>; ++k) {
    for (int n = 0; n < 50; ++n) {
      std::string text;
      while (text.size() < k) text += "ACGT"[random() % 4];
      const auto kmer = packed<TypeParam>(text);
      ASSERT_TRUE((kmer & ~kmer_mask<TypeParam>(k)) == 0);
      ASSERT_EQ(spelled(kmer, k), text);
      ASSERT_EQ(spelled(reverse_complement(kmer, k), k), complement_of(text));
      ASSERT_TRUE(reverse_complement(reverse_complement(kmer, k), k) == kmer);
      ASSERT_EQ(spelled(canonical(kmer, k), k), std::min(text, complement_of(text)));
    }
  }
}

TYPED_TEST(Kmers, WindowsOfAReadAreThoseOfStrings) {
  std::mt19937_64 random(2);
  for (unsigned k = 1; k <= kMaxK<TypeParam>; k += k < 6 ? 1 : 5) {
    for (const std::size_t length : {0u, 1u, k - 1, k, k + 1, 200u}) {
      const std::string read = random_read(random, length);
      struct Window {
        std::string kmer;
        std::uint64_t position;
        bool operator==(const Window&) const = default;
      };
      std::vector<Window> expected;
      for (std::size_t i = 0; i + k <= length; ++i) {
        const std::string window = upper(read.substr(i, k));
        if (window.find('N') == std::string::npos) {
          expected.push_back({std::min(window, complement_of(window)), i});
        }
      }
      std::vector<Window> found;
      for_each_kmer<TypeParam>(read.data(), length, k, [&](TypeParam kmer, std::uint64_t position) {
        found.push_back({spelled(kmer, k), position});
      });
      ASSERT_TRUE(found == expected) << "k = " << k << ", " << read;
    }
  }
}

TYPED_TEST(Kmers, NeighboursAreThoseOnTheCanonicalStrand) {
  std::mt19937_64 random(3);
  std::uint64_t reversed = 0;
  std::uint64_t palindromes = 0;
  for (unsigned k = 1; k <= kMaxK<TypeParam>; k += k < 6 ? 1 : 5) {
    for (int n = 0; n < 20; ++n) {
      const std::string read = random_read(random, 150);
      std::string qualities;
      while (qualities.size() < read.size()) qualities += static_cast<char>('!' + random() % 94);
      std::size_t next = 0;  // window
      const auto to_next = [&] {
        while (next + k <= read.size() && upper(read.substr(next, k)).find('N') != std::string::npos) ++next;
      };
      const auto shown = [](char base, char quality) {
        return base == 'N' ? Neighbour{kNoBase, 0} : Neighbour{base_code(base), phred(quality)};
      };
      to_next();
      for_each_extended_kmer<TypeParam>(
          read.data(), qualities.data(), read.size(), k, [&](const ExtendedKmer<TypeParam>& kmer) {
            ASSERT_EQ(kmer.position, next);
            const std::string window = upper(read.substr(next, k));
            // The neighbours as letters, N where there is none; then the whole on the other strand.
            std::string before = next == 0 ? "N" : upper(read.substr(next - 1, 1));
            std::string after = next + k == read.size() ? "N" : upper(read.substr(next + k, 1));
            char quality_before = next == 0 ? '!' : qualities[next - 1];
            char quality_after = next + k == read.size() ? '!' : qualities[next + k];
            const bool other = complement_of(window) < window;
            if (other) {
              std::swap(before, after);
              std::swap(quality_before, quality_after);
              before = complement_of(before);
              after = complement_of(after);
            }
            ASSERT_EQ(kmer.is_reversed, other);
            ASSERT_EQ(spelled(kmer.kmer, k), other ? complement_of(window) : window);
            const Neighbour left = shown(before[0], quality_before);
            const Neighbour right = shown(after[0], quality_after);
            ASSERT_EQ(kmer.left.base, left.base);
            ASSERT_EQ(kmer.left.quality, left.quality);
            ASSERT_EQ(kmer.right.base, right.base);
            ASSERT_EQ(kmer.right.quality, right.quality);
            reversed += other ? 1 : 0;
            palindromes += complement_of(window) == window ? 1 : 0;
            ++next;
            to_next();
          });
      ASSERT_GT(next + k, read.size());  // none is left
    }
  }
  EXPECT_GT(reversed, 100u);
  EXPECT_GT(palindromes, 10u);
}

TYPED_TEST(Kmers, WithoutQualitiesEveryNeighbourIsBelieved) {
  std::vector<Neighbour> seen;
  for_each_extended_kmer<TypeParam>("AACNT", nullptr, 5, 2, [&](const ExtendedKmer<TypeParam>& kmer) {
    seen.push_back(kmer.left);
    seen.push_back(kmer.right);
  });
  ASSERT_EQ(seen.size(), 4u);  // AA then AC, both canonical
  EXPECT_EQ(seen[0].base, kNoBase);
  EXPECT_EQ(seen[1].base, base_code('C'));
  EXPECT_EQ(seen[1].quality, kMaxPhred);
  EXPECT_EQ(seen[2].base, base_code('A'));
  EXPECT_EQ(seen[3].base, kNoBase);
  EXPECT_EQ(seen[3].quality, 0);
}

// The two sides of a device see the same: nothing in the header needs the host.
static_assert(canonical(std::uint64_t{0b11'11}, 2) == 0);
static_assert([] {
  std::uint64_t sum = 0;
  for_each_kmer<std::uint64_t>("ACGTN", 5, 3, [&](std::uint64_t kmer, std::uint64_t) { sum += kmer; });
  return sum;
}() == 2 * 0b00'01'10);

}  // namespace
}  // namespace inputs
