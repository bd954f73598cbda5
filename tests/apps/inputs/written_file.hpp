// Files that tests write, and what readers say about them.
#pragma once

#include <unistd.h>
#include <esker/error.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <system_error>

#include <gtest/gtest.h>

namespace inputs::testing {

/// A file with a name of its own, which has the given ending, until destruction.
class WrittenFile {
 public:
  explicit WrittenFile(std::string_view contents, const char* ending = "") {
    static int count = 0;
    path_ = ::testing::TempDir() + "esker_input_" + std::to_string(::getpid()) + "_" +
            std::to_string(count++) + ending;
    write(contents);
  }
  ~WrittenFile() { remove(); }
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  void write(std::string_view contents) {
    remove();  // a new file: ext4 writes one that is overwritten to the disk when it is closed
    std::ofstream(path_, std::ios::binary) << contents;
  }
  const std::string& path() const { return path_; }

 private:
  void remove() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  std::string path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The esker::Error{kConfiguration} that `read` throws, or "accepted".
std::string reason(auto read) {
  try {
    read();
  } catch (const esker::Error& e) {
    EXPECT_EQ(e.kind(), esker::Error::Kind::kConfiguration) << e.what();
    return e.what();
  }
  return "accepted";
}

/// `said` is "FILE" + `why` and perhaps more.
inline void expect_reason(const std::string& said, const WrittenFile& file, const std::string& why) {
  EXPECT_TRUE(said.starts_with(file.path() + why)) << said << "\nexpected: " << file.path() << why;
}

/// `good` with a few bytes changed, removed or doubled, or cut off: the same for the same `seed`.
inline std::string mutated(std::string good, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  static constexpr std::string_view kTelling = "\n\r@+>,' \0\x1f\xff";
  for (std::uint64_t changes = 1 + random() % 4; changes > 0 && !good.empty(); --changes) {
    const std::size_t at = random() % good.size();
    switch (random() % 6) {
      case 0:
        good[at] = static_cast<char>(good[at] ^ (1 << random() % 8));
        break;
      case 1:
        good[at] = static_cast<char>(random());
        break;
      case 2:
        good[at] = kTelling[random() % kTelling.size()];
        break;
      case 3:
        good.erase(at, 1 + random() % 5);
        break;
      case 4:
        good.insert(at, good.substr(random() % good.size(), 1 + random() % 8));
        break;
      default:
        good.resize(at);
        break;
    }
  }
  return good;
}

}  // namespace inputs::testing
