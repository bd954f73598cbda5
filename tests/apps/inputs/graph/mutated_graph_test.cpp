// Valid files with seeded damage: they are read, or are an esker::Error; nothing else happens.
#include <gtest/gtest.h>
#include <esker/apps/inputs/graph/graph_file.hpp>
#include <esker/device/error.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "collected.hpp"
#include "written_file.hpp"

namespace graph {
namespace {

struct Valid {
  const char* ending;
  std::string bytes;
};

std::vector<Valid> valid_files() {
  const std::string karate = bytes_of(ESKER_TEST_GRAPHS "/karate.mtx");
  const std::string cage = bytes_of(ESKER_TEST_GRAPHS "/cage3.mtx");
  const std::string list = "# comment\n0 13\n0 9\n\n7 12\r\n13 9\n";
  const std::string weighted = "0 13 92\n9 9 -1.5\n1 0 3e2\n";
  return {{".mtx", karate},
          {".mtx", cage},
          {".el", list},
          {".wel", weighted},
          {".mtx.gz", gzip(cage)},
          {".el.gz", gzip(list) + gzip(list)},
          {".wel.gz", gzip(weighted)},
          {".sg", SerializedBytes{0, 4, 4, {0, 1, 1, 3, 4}, {2, 0, 3, 2}}.text()},
          {".sg", SerializedBytes{1, 2, 3, {0, 2, 2, 2}, {2, 1}}.text()},
          {".wsg", SerializedBytes{0, 2, 2, {0, 1, 2}, {1, 50, 0, 50}}.text()}};
}

std::string mutated(std::string bytes, std::mt19937_64& random) {
  const auto below = [&](std::uint64_t end) { return random() % end; };
  const std::uint64_t changes = 1 + below(3);
  for (std::uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
    const std::uint64_t at = below(bytes.size());
    switch (below(5)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(below(256));
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes.erase(at, 1 + below(4));
        break;
      default:
        bytes.insert(at, 1 + below(20), "0123456789 \n-%.e"[below(16)]);
        break;
    }
  }
  return bytes;
}

TEST(MutatedGraph, IsReadOrIsAnError) {
  constexpr std::uint64_t kSeed = 20240229;
  constexpr int kMutants = 400;  // of each file
  RecordProperty("seed", static_cast<int>(kSeed));
  std::mt19937_64 random(kSeed);
  for (const Valid& valid : valid_files()) {
    int read = 0;
    int refused = 0;
    for (int i = 0; i < kMutants; ++i) {
      const WrittenFile written(valid.ending, mutated(valid.bytes, random));
      try {
        const GraphFile file(written.path());
        const EdgeCount total = count(file, 1);
        EXPECT_LE(total.vertices, file.header().vertices.value_or(total.vertices));
        EXPECT_EQ(sorted(file, 3), sorted(file, 1)) << valid.ending << " mutant " << i;
        file.check(total);
        ++read;
      } catch (const esker::Error& error) {
        EXPECT_NE(std::string(error.what()).find(written.path()), std::string::npos) << error.what();
        ++refused;
      }
    }
    EXPECT_EQ(read + refused, kMutants);
    EXPECT_GT(refused, 0) << valid.ending;
  }
}

}  // namespace
}  // namespace graph
