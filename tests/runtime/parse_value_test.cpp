// Text to values and back.
#include <esker/config.hpp>

#include <cstdint>
#include <iostream>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

namespace esker {
namespace {

using std::chrono::microseconds;

/// What parse throws, or "accepted".
template <class Parse>
std::string reason(Parse parse, const char* text) {
  try {
    parse(text);
  } catch (const std::invalid_argument& e) {
    return e.what();
  }
  return "accepted";
}

void expect_rejected(auto parse, const char* text, const char* why) {
  EXPECT_NE(reason(parse, text).find(why), std::string::npos)
      << '"' << text << "\": " << reason(parse, text) << ", expected: " << why;
}

TEST(ParseSize, AcceptsEveryForm) {
  const struct {
    const char* text;
    std::uint64_t bytes;
  } cases[] = {{"0", 0},
               {"65536", 65536},
               {"64KiB", 65536},
               {"64 KiB", 65536},
               {"  64kib\t", 65536},
               {"64kB", 64000},
               {"12MB", 12'000'000},
               {"7B", 7},
               {"1GiB", 1ULL << 30},
               {"1.5GiB", 3ULL << 29},
               {".5KiB", 512},
               {"2TiB", 1ULL << 41},
               {"2tb", 2'000'000'000'000},
               {"1PiB", 1ULL << 50},
               {"1PB", 1'000'000'000'000'000},
               {"2^26", 1ULL << 26},
               {"2^63", 1ULL << 63},
               {"10^3", 1000},
               {"7^0", 1},
               {"1^99999", 1},
               {"0^5", 0},
               {"2^4KiB", 16384},
               {"1e6", 1'000'000},
               {"1.25e2", 125},
               {"5000e-3", 5},
               {"0e99999", 0},
               {"18446744073709551615", std::numeric_limits<std::uint64_t>::max()}};
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    EXPECT_NO_THROW(EXPECT_EQ(parse_size(c.text), c.bytes));
  }
}

TEST(ParseSize, RejectsEverythingElseWithTheReason) {
  const struct {
    const char* text;
    const char* why;
  } cases[] = {{"", "is empty"},
               {"  ", "is empty"},
               {"-1", "is negative"},
               {"-0", "is negative"},
               {"+1", "does not start with a number"},
               {"KiB", "does not start with a number"},
               {".", "does not start with a number"},
               {"nan", "does not start with a number"},
               {"64K", "no known unit"},
               {"64KiBs", "no known unit"},
               {"64KiB 1", "no known unit"},
               {"1 2", "no known unit"},
               {"0x10", "no known unit"},
               {"1,000", "no known unit"},
               {"2^", "lacks digits after '^'"},
               {"2^-1", "lacks digits after '^'"},
               {"2^2^2", "no known unit"},
               {"1e-", "lacks digits after 'e'"},
               {"1.5", "not a whole number"},
               {"1e-3", "not a whole number"},
               {"0.1KiB", "not a whole number"},
               {"18446744073709551616", "does not fit in 64 bits"},
               {"99999999999999999999999", "does not fit in 64 bits"},
               {"2^64", "does not fit in 64 bits"},
               {"2^18446744073709551616", "does not fit in 64 bits"},
               {"3^64", "does not fit in 64 bits"},
               {"1e20", "does not fit in 64 bits"},
               {"1e99999999999", "does not fit in 64 bits"},
               {"16384PiB", "does not fit in 64 bits"}};
  for (const auto& c : cases) expect_rejected(parse_size, c.text, c.why);
}

TEST(ParseCount, IsASizeWithoutUnits) {
  EXPECT_EQ(parse_count("128"), 128u);
  EXPECT_EQ(parse_count(" 2^7 "), 128u);
  EXPECT_EQ(parse_count("1e3"), 1000u);
  expect_rejected(parse_count, "1KiB", "is not a plain number");
  expect_rejected(parse_count, "12x", "is not a plain number");
  expect_rejected(parse_count, "1.5", "is not a whole number");
  expect_rejected(parse_count, "-3", "is negative");
}

TEST(ParseDuration, AcceptsUnitsAndABareZero) {
  EXPECT_EQ(parse_duration("125us"), microseconds{125});
  EXPECT_EQ(parse_duration("10ms"), microseconds{10'000});
  EXPECT_EQ(parse_duration("1.5 s"), microseconds{1'500'000});
  EXPECT_EQ(parse_duration("0"), microseconds{0});
}

TEST(ParseDuration, RejectsEverythingElse) {
  expect_rejected(parse_duration, "125", "has no unit of time");
  expect_rejected(parse_duration, "1h", "has no unit of time");
  expect_rejected(parse_duration, "1s2ms", "has no unit of time");
  expect_rejected(parse_duration, "-1us", "is negative");
  expect_rejected(parse_duration, "0.5us", "is not a whole number of microseconds");
  expect_rejected(parse_duration, "10000000000000s", "does not fit in 64 bits");
  expect_rejected(parse_duration, "18446744073709551615us", "does not fit in 64 bits");
  expect_rejected(parse_duration, "", "is empty");
}

TEST(ParseBool, AcceptsFourWordsEachWay) {
  for (const char* text : {"true", "on", "yes", "1", "TRUE", " On "}) EXPECT_TRUE(parse_bool(text)) << text;
  for (const char* text : {"false", "off", "no", "0", "Off"}) EXPECT_FALSE(parse_bool(text)) << text;
  for (const char* text : {"", "2", "truee", "tru", "enabled"})
    expect_rejected(parse_bool, text, "neither true");
}

TEST(ParseReal, AcceptsFiniteNumbersOnly) {
  EXPECT_EQ(parse_real("0.5"), 0.5);
  EXPECT_EQ(parse_real("-1e-3"), -1e-3);
  expect_rejected(parse_real, "", "is empty");
  expect_rejected(parse_real, "0.5x", "is not a number");
  expect_rejected(parse_real, "nan", "is not a number");
  expect_rejected(parse_real, "inf", "is not a number");
  expect_rejected(parse_real, "1e999", "does not fit");
}

TEST(FormatSize, UsesTheLargestUnitThatDivides) {
  EXPECT_EQ(format_size(0), "0");
  EXPECT_EQ(format_size(1000), "1000");
  EXPECT_EQ(format_size(1024), "1KiB");
  EXPECT_EQ(format_size(1536), "1536");
  EXPECT_EQ(format_size(3ULL << 29), "1536MiB");
}

TEST(FormatSizeAndDuration, AreUndoneByParsing) {
  const auto seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  std::mt19937_64 random(seed);
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t value = random() >> (random() % 64) << (random() % 40);
    ASSERT_EQ(parse_size(format_size(value)), value);
    const microseconds time{static_cast<microseconds::rep>(random() >> (1 + random() % 63))};
    ASSERT_EQ(parse_duration(format_duration(time)), time);
    ASSERT_EQ(parse_duration(format_duration(microseconds{1000} * (time.count() % 100'000))),
              microseconds{1000} * (time.count() % 100'000));
  }
}

}  // namespace
}  // namespace esker
