// Text to values and back, in integers throughout: a size is exact or an error.
#include <esker/config.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace esker {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t scale;
};

constexpr std::uint64_t kKilo = 1000;
constexpr std::array<Unit, 12> kSizeUnits{{{"", 1},
                                           {"b", 1},
                                           {"kb", kKilo},
                                           {"mb", kKilo* kKilo},
                                           {"gb", kKilo* kKilo* kKilo},
                                           {"tb", kKilo* kKilo* kKilo* kKilo},
                                           {"pb", kKilo* kKilo* kKilo* kKilo* kKilo},
                                           {"kib", 1ULL << 10},
                                           {"mib", 1ULL << 20},
                                           {"gib", 1ULL << 30},
                                           {"tib", 1ULL << 40},
                                           {"pib", 1ULL << 50}}};
constexpr std::array<Unit, 3> kTimeUnits{{{"us", 1}, {"ms", kKilo}, {"s", kKilo* kKilo}}};

[[noreturn]] void reject(const char* reason) { throw std::invalid_argument(reason); }

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) reject("does not fit in 64 bits");
  return product;
}

/// The digits at the start of `text`, which loses them. Appends them to `value`; returns how many.
int take_digits(std::string_view& text, std::uint64_t& value) {
  int digits = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1), ++digits) {
    value = times(value, 10);
    if (__builtin_add_overflow(value, static_cast<std::uint64_t>(text.front() - '0'), &value)) {
      reject("does not fit in 64 bits");
    }
  }
  return digits;
}

/// A number mantissa * 10^exponent, not yet evaluated: in 1.5GiB the unit makes it whole.
struct Decimal {
  std::uint64_t mantissa = 0;
  int exponent = 0;
};

Decimal take_number(std::string_view& text) {
  if (text.empty()) reject("is empty");
  if (text.front() == '-') reject("is negative");
  Decimal number;
  int digits = take_digits(text, number.mantissa);
  if (digits > 0 && text.starts_with('^')) {
    text.remove_prefix(1);
    std::uint64_t power = 0;
    if (take_digits(text, power) == 0) reject("lacks digits after '^'");
    if (power > 64 && number.mantissa > 1) reject("does not fit in 64 bits");
    const std::uint64_t base = std::exchange(number.mantissa, 1);
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(power, 64); ++i) {
      number.mantissa = times(number.mantissa, base);
    }
    return number;
  }
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    const int fraction = take_digits(text, number.mantissa);
    digits += fraction;
    number.exponent -= fraction;
  }
  if (digits == 0) reject("does not start with a number");
  if (text.size() > 1 && (text[0] == 'e' || text[0] == 'E') && (is_digit(text[1]) || text[1] == '-')) {
    text.remove_prefix(1);
    const bool negative = text.starts_with('-');
    if (negative) text.remove_prefix(1);
    std::uint64_t exponent = 0;
    if (take_digits(text, exponent) == 0) reject("lacks digits after 'e'");
    const int bounded = static_cast<int>(std::min<std::uint64_t>(exponent, 1000));
    number.exponent += negative ? -bounded : bounded;
  }
  return number;
}

std::uint64_t whole(Decimal number, std::uint64_t scale, const char* not_whole) {
  std::uint64_t value = times(number.mantissa, scale);
  if (value == 0) return 0;
  for (; number.exponent > 0; --number.exponent) value = times(value, 10);
  for (; number.exponent < 0; ++number.exponent) {
    if (value % 10 != 0) reject(not_whole);
    value /= 10;
  }
  return value;
}

template <std::size_t N>
const Unit* find_unit(const std::array<Unit, N>& units, std::string_view name) {
  const auto it = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == name; });
  return it == units.end() ? nullptr : &*it;
}

}  // namespace

std::uint64_t parse_size(std::string_view text) {
  text = trim(text);
  const Decimal number = take_number(text);
  const Unit* unit = find_unit(kSizeUnits, lower(trim(text)));
  if (unit == nullptr) reject("has no known unit; write 65536, 64KiB, 64kB, 2^16 or 1e6");
  return whole(number, unit->scale, "is not a whole number of bytes");
}

std::uint64_t parse_count(std::string_view text) {
  text = trim(text);
  const Decimal number = take_number(text);
  if (!text.empty()) reject("is not a plain number; write 64, 2^6 or 1e3");
  return whole(number, 1, "is not a whole number");
}

std::chrono::microseconds parse_duration(std::string_view text) {
  text = trim(text);
  const Decimal number = take_number(text);
  text = trim(text);
  if (text.empty() && number.mantissa == 0) return std::chrono::microseconds{0};
  const Unit* unit = find_unit(kTimeUnits, text);
  if (unit == nullptr) reject("has no unit of time; write 125us, 10ms or 1s");
  const std::uint64_t ticks = whole(number, unit->scale, "is not a whole number of microseconds");
  if (ticks > static_cast<std::uint64_t>(std::numeric_limits<std::chrono::microseconds::rep>::max())) {
    reject("does not fit in 64 bits");
  }
  return std::chrono::microseconds{static_cast<std::chrono::microseconds::rep>(ticks)};
}

bool parse_bool(std::string_view text) {
  const std::string word = lower(trim(text));
  if (word == "true" || word == "on" || word == "yes" || word == "1") return true;
  if (word == "false" || word == "off" || word == "no" || word == "0") return false;
  reject("is neither true, on, yes, 1 nor false, off, no, 0");
}

double parse_real(std::string_view text) {
  text = trim(text);
  if (text.empty()) reject("is empty");
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc::result_out_of_range) reject("does not fit in a double");
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    reject("is not a number");
  }
  return value;
}

std::string format_size(std::uint64_t bytes) {
  constexpr std::array<Unit, 5> kUnits{{{"PiB", 1ULL << 50},
                                        {"TiB", 1ULL << 40},
                                        {"GiB", 1ULL << 30},
                                        {"MiB", 1ULL << 20},
                                        {"KiB", 1ULL << 10}}};
  for (const Unit& unit : kUnits) {
    if (bytes != 0 && bytes % unit.scale == 0)
      return std::to_string(bytes / unit.scale) + std::string(unit.name);
  }
  return std::to_string(bytes);
}

std::string format_duration(std::chrono::microseconds duration) {
  const auto us = duration.count();
  if (us != 0 && us % 1'000'000 == 0) return std::to_string(us / 1'000'000) + "s";
  if (us != 0 && us % 1'000 == 0) return std::to_string(us / 1'000) + "ms";
  return std::to_string(us) + "us";
}

}  // namespace esker
