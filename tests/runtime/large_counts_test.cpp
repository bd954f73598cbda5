// More elements than an int can count: they travel in rounds. 5 GiB of memory.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <esker/collectives.hpp>

#include "pes.hpp"

namespace esker::testing {
namespace {

constexpr std::uint64_t kElements = (std::uint64_t{1} << 31) + 17;

// The same bytes again and again, by a length that no round has: what is in a wrong place is a wrong value.
constexpr std::uint64_t kPeriod = 65521;

std::array<std::uint8_t, kPeriod> period() {
  std::array<std::uint8_t, kPeriod> bytes;
  std::minstd_rand random;
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random() >> 8);
  return bytes;
}
void fill(std::vector<std::uint8_t>& values) {
  const auto bytes = period();
  for (std::uint64_t i = 0; i < values.size(); i += kPeriod)
    std::memcpy(&values[i], bytes.data(), std::min(kPeriod, values.size() - i));
}
void expect_elements(const std::vector<std::uint8_t>& values) {
  ASSERT_EQ(values.size(), kElements);
  const auto bytes = period();
  for (std::uint64_t i = 0; i < kElements; i += kPeriod)
    ASSERT_EQ(std::memcmp(&values[i], bytes.data(), std::min(kPeriod, kElements - i)), 0) << i;
}

TEST(LargeCounts, TravelInRounds) {
  run_pes(2, [](Runtime& rt) {
    std::vector<std::uint8_t> values(kElements);
    if (rt.pe() == 0) fill(values);
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
