// Text to values and back: sizes, counts, durations, switches.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace esker {

// Each parse function takes the whole text, spaces around it apart, and throws std::invalid_argument
// saying what is wrong with it in words that follow the value: "is negative". Nothing is rounded.

/// "4096", "64KiB", "2^26", "1e6", "1.5GiB", "12 MB". Units in any case: B, kB to PB and KiB to PiB.
std::uint64_t parse_size(std::string_view text);
/// As parse_size, without units.
std::uint64_t parse_count(std::string_view text);
/// "125us", "10ms", "1.5s". A unit is required, except for 0.
std::chrono::microseconds parse_duration(std::string_view text);
/// true, on, yes, 1; false, off, no, 0.
bool parse_bool(std::string_view text);
/// "0.5", "1e-3"; finite.
double parse_real(std::string_view text);

/// In the largest binary unit that divides it; the inverse of parse_size.
std::string format_size(std::uint64_t bytes);
/// In the largest unit that divides it; the inverse of parse_duration.
std::string format_duration(std::chrono::microseconds duration);

}  // namespace esker
