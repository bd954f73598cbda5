// The fields of a line of text, and what is wrong with them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "../file/file.hpp"  // Malformed

namespace inputs {

/// Ids and counts are at most 2^63 - 1, so that one more never overflows.
constexpr std::uint64_t kMaxIndex = 0x7fffffffffffffff;

/// A line split at spaces and tabs. `count` counts all fields, `text` holds the first ones.
struct Fields {
  std::array<std::string_view, 5> text;
  std::size_t count = 0;
};
Fields split(std::string_view line);

/// A line that all formats skip: blank, or with '#' or '%' first.
bool is_comment(const Fields& fields);

// What follows throws Malformed with the field's text and the reason.

void expect_count(const Fields& fields, std::size_t count);

/// A decimal integer in [0, kMaxIndex]; `what` is what the message calls it.
std::uint64_t to_index(std::string_view field, const char* what);

/// A number, whatever a double makes of it: infinities, NaN and what overflows count.
void expect_number(std::string_view field);

/// A finite number.
double to_real(std::string_view field);

/// An integer that a double holds exactly: at most 2^53 in magnitude.
double to_integer(std::string_view field);

/// The field in quotes, cut to a length for messages, with '?' for what is not printable ASCII.
std::string quoted(std::string_view field);

}  // namespace inputs
