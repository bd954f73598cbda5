// The command line of a program, its own options and the runtime's; and text to values and back.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <esker/config.hpp>
#include <esker/error.hpp>

namespace esker {

/// The user typed something that the program does not take. Says what, why and what is legal.
class ESKER_API UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error{Kind::kConfiguration, message} {}
};

/// Options of a program beside those of the runtime, which every program takes.
///
/// Contract Targets outlive the parse; what they hold before it is the default that --help prints.
///          Options are --name value or --name=value; "_" in a name is typed "-"; the last one wins.
class ESKER_API CommandLine {
 public:
  /// `what` is a sentence for the top of --help.
  CommandLine(std::string program, std::string what);

  /// A size or count: 4096, 64KiB, 2^26, 1e6.
  CommandLine& add(const std::string& name, std::uint64_t* target, const std::string& help);
  CommandLine& add(const std::string& name, double* target, const std::string& help);
  /// A switch: --name sets it, --name off clears it.
  CommandLine& add(const std::string& name, bool* target, const std::string& help);
  /// With `legal`, one of these.
  CommandLine& add(const std::string& name, std::string* target, const std::string& help,
                   std::vector<std::string> legal = {});

  /// For main: --help prints help on one PE and exits with 0; an error is printed and exits with 2.
  Config parse(int argc, char** argv);

  /// For tests and embedders: `arguments` without the program's name. Throws UsageError for one that is
  /// wrong and Error{kConfiguration} for a setting that is, with targets half set.
  Config parse_arguments(const std::vector<std::string>& arguments);
  /// Valid after parse_arguments().
  bool wants_help() const { return wants_help_; }
  std::string help() const;

 private:
  struct Option {
    std::string name;
    std::string shown_default;
    std::string legal;  // values or form, in words
    std::string help;
    bool is_switch;
    std::function<void(const std::string&)> assign;  // throws std::invalid_argument
  };

  CommandLine& add(Option option);

  std::string program_;
  std::string what_;
  std::vector<Option> options_;
  bool wants_help_ = false;
};

// Each parse function takes the whole text, spaces around it apart, and throws std::invalid_argument
// saying what is wrong with it in words that follow the value: "is negative". Nothing is rounded.

/// "4096", "64KiB", "2^26", "1e6", "1.5GiB", "12 MB". Units in any case: B, kB to PB and KiB to PiB.
ESKER_API std::uint64_t parse_size(std::string_view text);
/// As parse_size, without units.
ESKER_API std::uint64_t parse_count(std::string_view text);
/// "125us", "10ms", "1.5s". A unit is required, except for 0.
ESKER_API std::chrono::microseconds parse_duration(std::string_view text);
/// true, on, yes, 1; false, off, no, 0.
ESKER_API bool parse_bool(std::string_view text);
/// "0.5", "1e-3"; finite.
ESKER_API double parse_real(std::string_view text);

/// In the largest binary unit that divides it; the inverse of parse_size.
ESKER_API std::string format_size(std::uint64_t bytes);
/// In the largest unit that divides it; the inverse of parse_duration.
ESKER_API std::string format_duration(std::chrono::microseconds duration);

}  // namespace esker
