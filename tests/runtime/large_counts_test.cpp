// More elements than an int can count: they travel in rounds. 5 GiB of memory.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <esker/collectives.hpp>

#include "pes.hpp"

namespace esker::testing {
namespace {

constexpr std::uint64_t kElements = (std::uint64_t{1} << 31) + 17;

std::uint8_t element(std::uint64_t i) { return static_cast<std::uint8_t>(i ^ (i >> 8) ^ (i >> 24)); }

void expect_elements(const std::vector<std::uint8_t>& values) {
  ASSERT_EQ(values.size(), kElements);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kElements; ++i) wrong += values[i] != element(i);
  EXPECT_EQ(wrong, 0u);
}

TEST(LargeCounts, TravelInRounds) {
  run_pes(2, [](Runtime& rt) {
    std::vector<std::uint8_t> values(kElements);
    if (rt.pe() == 0) {
      for (std::uint64_t i = 0; i < kElements; ++i) values[i] = element(i);
    }
    broadcast(rt, values);
    if (rt.pe() == 1) expect_elements(values);
    // All of one PE's to the other, in whose memory there is nothing else.
    if (rt.pe() == 1) values.assign(kElements, 0);
    std::vector<std::uint8_t> none;
    const bool gives = rt.pe() == 0;
    const std::vector<std::uint64_t> counts{0, gives ? kElements : 0};
    const auto received = all_to_all(rt, gives ? values : none, counts, gives ? none : values);
    EXPECT_EQ(received[0], gives ? 0 : kElements);
    if (!gives) expect_elements(values);
  });
}

}  // namespace
}  // namespace esker::testing
