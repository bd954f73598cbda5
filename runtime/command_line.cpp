// The command line of a program, on Boost.Program_options.
#include <esker/config.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>
#include <boost/program_options/value_semantic.hpp>

#include <esker/device/check.hpp>
#include <esker/runtime/config_sources.hpp>
#include <esker/runtime/config_table.hpp>
#include <esker/runtime/near_match.hpp>

namespace esker {
namespace {

namespace po = boost::program_options;

constexpr std::size_t kHelpColumn = 34;

std::string help_line(const std::string& name, const std::string& help, const std::string& legal,
                      const std::string& shown_default) {
  return fmt::format("  --{:<{}} {}\n  {:{}}   [{}] default: {}\n", detail::dashed(name), kHelpColumn - 4,
                     help, "", kHelpColumn - 4, legal, shown_default.empty() ? "none" : shown_default);
}

/// Before MPI is up only the launcher's variables tell which PE this is.
bool is_first_process() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    if (const char* rank = std::getenv(name)) return std::string_view(rank) == "0";
  }
  return true;
}

/// "--a_b=c_d" as "--a-b=c_d": both spellings are taken, and Boost sees one.
std::string dashed_name(const std::string& argument) {
  if (!argument.starts_with("--")) return argument;
  const auto end = std::min(argument.find('='), argument.size());
  return detail::dashed(argument.substr(0, end)) + argument.substr(end);
}

}  // namespace

CommandLine::CommandLine(std::string program, std::string what)
    : program_{std::move(program)}, what_{std::move(what)} {}

CommandLine& CommandLine::add(Option option) {
  const auto same = [&](const Option& o) { return detail::dashed(o.name) == detail::dashed(option.name); };
  ESKER_CHECK(option.name != "help" && option.name != "config" &&
                  detail::find_setting(option.name) == nullptr &&
                  std::none_of(options_.begin(), options_.end(), same),
              "CommandLine::add: {} already has an option --{}", program_, detail::dashed(option.name));
  options_.push_back(std::move(option));
  return *this;
}

CommandLine& CommandLine::add(const std::string& name, std::uint64_t* target, const std::string& help) {
  return add({name, std::to_string(*target), "a number or size", help, false,
              [=](const std::string& text) { *target = parse_size(text); }});
}

CommandLine& CommandLine::add(const std::string& name, double* target, const std::string& help) {
  return add({name, fmt::format("{}", *target), "a number", help, false,
              [=](const std::string& text) { *target = parse_real(text); }});
}

CommandLine& CommandLine::add(const std::string& name, bool* target, const std::string& help) {
  return add({name, *target ? "true" : "false", "alone, true or false", help, true,
              [=](const std::string& text) { *target = parse_bool(text); }});
}

CommandLine& CommandLine::add(const std::string& name, std::string* target, const std::string& help,
                              std::vector<std::string> legal) {
  const std::string words = legal.empty() ? "text" : fmt::format("{}", fmt::join(legal, ", "));
  return add({name, *target, words, help, false, [=](const std::string& text) {
                if (!legal.empty() && std::find(legal.begin(), legal.end(), text) == legal.end()) {
                  throw std::invalid_argument("is none of these" + did_you_mean(text, legal));
                }
                *target = text;
              }});
}

Config CommandLine::parse_arguments(const std::vector<std::string>& arguments) {
  po::options_description description;
  std::vector<std::string> names = {"help", "config"};
  for (const Option& option : options_) names.push_back(detail::dashed(option.name));
  for (const std::string& name : detail::setting_names()) names.push_back(detail::dashed(name));
  description.add_options()("help", "")("config", po::value<std::string>());
  for (const Option& option : options_) {
    auto* value = po::value<std::string>();
    if (option.is_switch) value->implicit_value("true");
    description.add_options()(detail::dashed(option.name).c_str(), value);
  }
  for (const std::string& name : detail::setting_names()) {
    description.add_options()(detail::dashed(name).c_str(), po::value<std::string>());
  }

  std::vector<std::string> normalised;
  std::transform(arguments.begin(), arguments.end(), std::back_inserter(normalised), dashed_name);
  // No guessing of abbreviations: a new option must not change what an old script means.
  using namespace po::command_line_style;
  po::parsed_options parsed(&description);
  try {
    parsed = po::command_line_parser(normalised)
                 .options(description)
                 .style(allow_long | long_allow_adjacent | long_allow_next)
                 .run();
  } catch (const po::unknown_option& e) {
    std::string name = e.get_option_name();
    name = name.substr(0, name.find('='));
    const std::string bare = name.substr(std::min(name.find_first_not_of('-'), name.size()));
    throw UsageError(
        fmt::format("command line: there is no option {}{}", name, did_you_mean(bare, names, "--")));
  } catch (const po::invalid_command_line_syntax& e) {
    if (e.kind() == po::invalid_syntax::empty_adjacent_parameter)
      throw UsageError(
          fmt::format("command line: {0}= lacks a value; {0} '' gives an empty one", e.get_option_name()));
    if (e.kind() != po::invalid_syntax::missing_parameter)
      throw UsageError(fmt::format("command line: {}", e.what()));
    throw UsageError(fmt::format("command line: {} lacks a value", e.get_option_name()));
  } catch (const po::error& e) {
    throw UsageError(fmt::format("command line: {}", e.what()));
  }

  wants_help_ = false;
  ConfigSources sources{"", detail::process_environment(), {}};
  for (const auto& given : parsed.options) {
    if (given.string_key.empty()) {
      throw UsageError(fmt::format("command line: \"{}\" belongs to no option",
                                   given.value.empty() ? "" : given.value.front()));
    }
    // Only a switch may stand alone.
    const std::string value = given.value.empty() ? "true" : given.value.front();
    if (given.string_key == "help") {
      wants_help_ = true;
    } else if (given.string_key == "config") {
      sources.file = value;
    } else if (detail::find_setting(given.string_key) != nullptr) {
      sources.arguments.emplace_back(given.string_key, value);
    } else {
      const auto option = std::find_if(options_.begin(), options_.end(), [&](const Option& o) {
        return detail::dashed(o.name) == given.string_key;
      });
      try {
        option->assign(value);
      } catch (const std::invalid_argument& e) {
        throw UsageError(fmt::format("command line: --{} \"{}\" {}; legal: {}", given.string_key, value,
                                     e.what(), option->legal));
      }
    }
  }
  return wants_help_ ? Config{} : load_config(sources);
}

std::string CommandLine::help() const {
  std::string text = fmt::format("{}: {}\n\nOptions:\n", program_, what_);
  for (const Option& option : options_) {
    text += help_line(option.name, option.help, option.legal, option.shown_default);
  }
  text += fmt::format(
      "  --{:<{}} print this\n\n"
      "Options of the runtime; also ESKER_<NAME> in the environment and name = value in a file:\n"
      "  --{:<{}} read settings from FILE; also ESKER_CONFIG\n",
      "help", kHelpColumn - 4, "config FILE", kHelpColumn - 4);
  for (const ConfigRow& row : describe(Config{})) text += help_line(row.name, row.help, row.legal, row.value);
  return text;
}

Config CommandLine::parse(int argc, char** argv) {
  try {
    Config config = parse_arguments({argv + std::min(argc, 1), argv + argc});
    if (!wants_help_) return config;
  } catch (const Error& e) {
    // Every PE says it: the launcher may end the job before one chosen PE has spoken.
    std::fprintf(stderr, "%s: %s\n%s: --help lists the options\n", program_.c_str(), e.what(),
                 program_.c_str());
    std::exit(2);
  }
  if (is_first_process()) std::fputs(help().c_str(), stdout);
  std::exit(0);
}

}  // namespace esker
