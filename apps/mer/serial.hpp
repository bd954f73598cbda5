// The serial reference: a hash map of all reads' k-mers, and walks from k-mer to k-mer through it.
//
// Invariant. Keys are canonical k-mers; votes are on their strand. A contig is a longest walk over k-mers
// with one neighbour on each side, each of which names the next one and is named by it; it is spelled on the
// strand where it sorts first. A closed walk begins with its least k-mer.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "../inputs/random.hpp"
#include "../inputs/sequence/kmer.hpp"
#include "read_text.hpp"
#include "table.hpp"

namespace mer {

template <class Word>
std::string spelled(Word kmer, unsigned k) {
  std::string text(k, 'N');
  for (unsigned i = 0; i < k; ++i) text[i] = inputs::base_letter(inputs::base_at(kmer, k, i));
  return text;
}

inline std::string reverse_complement_of(const std::string& text) {
  std::string other(text.rbegin(), text.rend());
  for (char& c : other) c = inputs::base_letter(static_cast<std::uint8_t>(3 - inputs::base_code(c)));
  return other;
}

/// What was seen of a k-mer.
struct Seenings {
  std::uint64_t count = 0;
  std::array<std::array<std::uint64_t, 4>, 2> votes{};  // Side, base

  bool is_in(const Tally& tally) const {
    bool same = tally.count == std::min<std::uint64_t>(count, kMostCount);
    for (unsigned side = 0; side < 2; ++side) {
      for (unsigned base = 0; base < 4; ++base)
        same = same && tally.votes[side][base] == std::min<std::uint64_t>(votes[side][base], kMostVotes);
    }
    return same;
  }
};

template <class Word>
class Serial {
 public:
  Serial(const Reads& reads, unsigned k, std::uint8_t least_quality, Threshold threshold)
      : k_{k}, threshold_{threshold} {
    reads({0, 1}, [&](const inputs::Read& read) {
      inputs::for_each_extended_kmer<Word>(read.bases.data(),
                                           read.qualities.empty() ? nullptr : read.qualities.data(),
                                           read.bases.size(), k, [&](const inputs::ExtendedKmer<Word>& seen) {
                                             Seenings& all = kmers_[seen.kmer];
                                             ++all.count;
                                             const auto vote = [&](Side side, inputs::Neighbour n) {
                                               if (n.base != inputs::kNoBase && n.quality >= least_quality)
                                                 ++all.votes[side][n.base];
                                             };
                                             vote(kLeft, seen.left);
                                             vote(kRight, seen.right);
                                           });
    });
  }

  const auto& kmers() const { return kmers_; }

  /// Each once.
  std::unordered_set<std::string> contigs() const {
    std::unordered_set<std::string> all;
    std::unordered_set<Word, Hash> seen;
    for (const auto& [kmer, seenings] : kmers_) {
      if (seen.count(kmer) > 0 || !bases_of(kmer)) continue;
      bool closed = false;
      std::vector<Word> walk = walk_from(kmer, closed);
      if (closed) {
        walk = from_least(walk);
      } else {  // the other way too
        bool closes = false;
        std::vector<Word> back = walk_from(other_strand(kmer), closes);
        std::reverse(back.begin(), back.end());
        back.pop_back();
        for (Word& word : back) word = other_strand(word);
        walk.insert(walk.begin(), back.begin(), back.end());
      }
      std::string text = spelled(walk.front(), k_);
      for (std::size_t i = 1; i < walk.size(); ++i) text += inputs::base_letter(walk[i] & 3);
      for (const Word word : walk) seen.insert(inputs::canonical(word, k_));
      all.insert(std::min(text, reverse_complement_of(text)));
    }
    return all;
  }

 private:
  struct Hash {
    std::size_t operator()(Word word) const {
      const Wide wide = word;
      return inputs::mix(static_cast<std::uint64_t>(wide) + 3 * static_cast<std::uint64_t>(wide >> 64));
    }
  };
  struct Bases {
    unsigned left, right;
  };

  Word other_strand(Word word) const { return inputs::reverse_complement(word, k_); }

  /// The one base on each side of a k-mer of any strand; nothing if it has not just one, or is too rare.
  std::optional<Bases> bases_of(Word word) const {
    const Word name = inputs::canonical(word, k_);
    const auto found = kmers_.find(name);
    if (found == kmers_.end() || found->second.count < threshold_.count) return std::nullopt;
    std::array<unsigned, 2> base{};
    for (unsigned side = 0; side < 2; ++side) {
      unsigned enough = 0;
      for (unsigned b = 0; b < 4; ++b) {
        if (found->second.votes[side][b] < threshold_.votes) continue;
        base[side] = b;
        ++enough;
      }
      if (enough != 1) return std::nullopt;
    }
    return name == word ? Bases{base[kLeft], base[kRight]} : Bases{3 - base[kRight], 3 - base[kLeft]};
  }

  /// To the right of a word that has bases.
  std::optional<Word> step(Word word) const {
    const unsigned last = bases_of(word)->right;
    const Word next = ((word << 2) | last) & inputs::kmer_mask<Word>(k_);
    const auto bases = bases_of(next);
    if (!bases || bases->left != inputs::base_at(word, k_, 0) || next == other_strand(word))
      return std::nullopt;
    return next;
  }

  std::vector<Word> walk_from(Word word, bool& closed) const {
    std::vector<Word> walk{word};
    while (const auto next = step(walk.back())) {
      closed = *next == word;
      if (closed) break;
      walk.push_back(*next);
    }
    return walk;
  }

  std::vector<Word> from_least(std::vector<Word> walk) const {
    const auto least = std::min_element(walk.begin(), walk.end(), [&](Word a, Word b) {
      return inputs::canonical(a, k_) < inputs::canonical(b, k_);
    });
    if (*least == inputs::canonical(*least, k_)) {
      std::rotate(walk.begin(), least, walk.end());
    } else {
      std::rotate(walk.begin(), least + 1, walk.end());
      std::reverse(walk.begin(), walk.end());
      for (Word& word : walk) word = other_strand(word);
    }
    return walk;
  }

  unsigned k_;
  Threshold threshold_;
  std::unordered_map<Word, Seenings, Hash> kmers_;
};

}  // namespace mer
