// Valid files with seeded damage: they are read, or are an esker::Error; nothing else happens.
#include <gtest/gtest.h>
#include <esker/apps/inputs/graph/graph_file.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "../gzip.hpp"
#include "collected.hpp"
#include "serialized_bytes.hpp"

namespace inputs::testing {
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

TEST(MutatedGraph, IsReadOrIsAnError) {
  constexpr std::uint64_t kMutants = 400;  // of each file
  for (const Valid& valid : valid_files()) {
    std::uint64_t refused = 0;
    for (std::uint64_t seed = 0; seed < kMutants; ++seed) {
      const WrittenFile written(mutated(valid.bytes, seed), valid.ending);
      const std::string said = reason([&] {
        const GraphFile file(written.path());
        const EdgeCount total = count(file, 1);
        EXPECT_LE(total.vertices, file.header().vertices.value_or(total.vertices));
        EXPECT_EQ(sorted(file, 3), sorted(file, 1)) << valid.ending << ", seed " << seed;
        file.check(total);
      });
      if (said == "accepted") continue;
      ++refused;
      expect_reason(said, written, ":");
    }
    EXPECT_GT(refused, 0u) << valid.ending;
    EXPECT_LT(refused, kMutants) << valid.ending;
  }
}

}  // namespace
}  // namespace inputs::testing
