// Word count: lanes read lines of a text and count the words in a distributed counting set, which then goes
// to a file and comes back.
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <esker/containers.hpp>
#include <esker/esker.hpp>

namespace {

constexpr std::uint64_t kLines = 2000;  // on each PE
constexpr std::uint64_t kWords = 9;     // of a line
constexpr std::uint64_t kLineBytes = 64;

/// A key is compared by its bytes, so those behind a short word are zeros.
struct Word {
  char letters[16];
};

/// Word `i` of the text's language, of 3 to 6 letters: frequent ones have small numbers.
std::string spelled(std::uint64_t i) {
  std::string word;
  for (std::uint64_t n = i + 26 * 26; n > 0; n /= 26) word += static_cast<char>('a' + n % 26);
  return word;
}

/// The text is a function of PE and line, so that the check can make it again.
std::string line_of(std::uint64_t pe, std::uint64_t line) {
  std::uint64_t random = pe * kLines + line + 1;
  std::string text;
  for (std::uint64_t w = 0; w < kWords; ++w) {
    random = random * 6364136223846793005 + 1442695040888963407;
    const std::uint64_t a = random >> 54;  // below 1024, and so is b
    const std::uint64_t b = random >> 44 & 1023;
    text += spelled(a * b / 1024) + ' ';
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  esker::Runtime rt(argc, argv);

  const auto text = rt.heap().allocate<char>(kLines * kLineBytes);
  std::vector<char> letters(text.size(), ' ');
  for (std::uint64_t line = 0; line < kLines; ++line) {
    const std::string words = line_of(rt.pe(), line);
    std::memcpy(&letters[line * kLineBytes], words.data(), words.size());
  }
  rt.heap().write(text, 0, std::span<const char>(letters));

  const auto counts = esker::containers::CountingSet<Word>::allocate(rt, "words", 1024);
  rt.launch(kLines, [=] ESKER_LAMBDA(esker::WorkItem item) {
    const char* const line = &text[item.global_id() * kLineBytes];
    Word word{};
    std::uint64_t length = 0;
    for (std::uint64_t i = 0; i < kLineBytes; ++i) {
      if (line[i] != ' ') {
        word.letters[length++] = line[i];
      } else if (length > 0) {
        counts.insert(item, word);
        word = {};
        length = 0;
      }
    }
  });
  rt.barrier_all();  // every word is counted

  // To a file, and back: another job may load it on another number of PEs.
  const std::string file = "words.esker";
  counts.save(rt, file);
  const auto loaded = esker::containers::CountingSet<Word>::load(rt, "words again", file);

  // The same counts by serial code.
  std::map<std::string, std::uint64_t> expected;
  for (std::uint64_t pe = 0; pe < rt.n_pes(); ++pe) {
    for (std::uint64_t line = 0; line < kLines; ++line) {
      const std::string words = line_of(pe, line);
      for (std::size_t begin = 0; begin < words.size(); begin = words.find(' ', begin) + 1)
        ++expected[words.substr(begin, words.find(' ', begin) - begin)];
    }
  }
  std::uint64_t wrong = 0;
  loaded.for_each_local(rt, [&](const Word& word, std::uint64_t count) {
    wrong += expected[std::string(word.letters)] != count ? 1 : 0;
  });
  rt.all_reduce({&wrong, 1}, esker::Reduction::kSum);
  const std::uint64_t different = loaded.size(rt);
  if (different != expected.size()) ++wrong;
  if (rt.pe() == 0) {
    std::filesystem::remove(file);
    std::cout << "word_count: " << kLines * kWords * rt.n_pes() << " words, " << different
              << " different ones, on " << rt.n_pes()
              << " PEs: " << (wrong == 0 ? "every count verified\n" : "WRONG\n");
  }
  return wrong == 0 ? 0 : 1;
}
