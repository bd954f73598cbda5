// Splitting and conversions.
#include "text_fields.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <system_error>

namespace inputs {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// The standard's conversions know no '+', which Fortran writes.
std::string_view without_plus(std::string_view field) {
  return field.size() > 1 && field[0] == '+' && field[1] != '-' ? field.substr(1) : field;
}

template <typename T>
T convert(std::string_view field, const char* kind) {
  const std::string_view digits = without_plus(field);
  T value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = end == digits.data() + digits.size();
  if (error == std::errc::result_out_of_range && whole) {
    throw Malformed(fmt::format("{} overflows {}", quoted(field), kind));
  }
  if (error != std::errc{} || !whole) throw Malformed(fmt::format("{} is not {}", quoted(field), kind));
  return value;
}

}  // namespace

Fields split(std::string_view line) {
  Fields fields;
  std::size_t at = 0;
  while (true) {
    while (at < line.size() && is_blank(line[at])) ++at;
    if (at == line.size()) return fields;
    const std::size_t begin = at;
    while (at < line.size() && !is_blank(line[at])) ++at;
    if (fields.count < fields.text.size()) fields.text[fields.count] = line.substr(begin, at - begin);
    ++fields.count;
  }
}

bool is_comment(const Fields& fields) {
  return fields.count == 0 || fields.text[0][0] == '#' || fields.text[0][0] == '%';
}

void expect_count(const Fields& fields, std::size_t count) {
  if (fields.count == count) return;
  throw Malformed(fmt::format("{} field{} instead of {}", fields.count, fields.count == 1 ? "" : "s", count));
}

std::uint64_t to_index(std::string_view field, const char* what) {
  const auto value = convert<std::int64_t>(field, "a 64-bit integer");
  if (value < 0) throw Malformed(fmt::format("{} {} is negative", what, value));
  return static_cast<std::uint64_t>(value);
}

void expect_number(std::string_view field) {
  const std::string_view digits = without_plus(field);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc::invalid_argument || end != digits.data() + digits.size()) {
    throw Malformed(quoted(field) + " is not a number");
  }
}

double to_real(std::string_view field) {
  const auto value = convert<double>(field, "a double");
  if (!std::isfinite(value)) throw Malformed(fmt::format("{} is not finite", quoted(field)));
  return value;
}

double to_integer(std::string_view field) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  const auto value = convert<std::int64_t>(field, "a 64-bit integer");
  if (value < -kExact || value > kExact) {
    throw Malformed(fmt::format("{} is beyond 2^53, the integers that a double holds", quoted(field)));
  }
  return static_cast<double>(value);
}

std::string quoted(std::string_view field) {
  constexpr std::size_t kShown = 40;
  std::string text = "'";
  for (const char c : field.substr(0, kShown)) text += c >= ' ' && c <= '~' ? c : '?';
  return text + (field.size() > kShown ? "...'" : "'");
}

}  // namespace inputs
