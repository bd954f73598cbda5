// Where settings are written down, as text.
#include <esker/runtime/config_sources.hpp>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>
#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>

#include <esker/device/error.hpp>

namespace esker::detail {

namespace {

constexpr std::uintmax_t kMostBytes = 1 << 20;  // some thousand times what all settings take

[[noreturn]] void cannot_read(const std::string& path, const std::string& reason) {
  throw Error(Error::Kind::kConfiguration,
              fmt::format("cannot read the configuration file {}: {}", path, reason));
}

/// Before it is opened, which for a FIFO waits for a writer, and read, which for a device may never end.
void require_readable(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) cannot_read(path, std::strerror(error ? error.value() : ENOENT));
  if (std::filesystem::is_directory(status)) cannot_read(path, "it is a folder");
  if (!std::filesystem::is_regular_file(status))
    cannot_read(path, "it is a device, a pipe or a socket, not a file");
  const auto bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kMostBytes)
    cannot_read(path, fmt::format("its {} bytes are more than the {} that are read", bytes, kMostBytes));
}

}  // namespace

std::vector<FileLine> read_config_file(const std::string& path) {
  namespace po = boost::program_options;
  require_readable(path);
  errno = 0;
  std::ifstream file(path);
  if (!file) cannot_read(path, std::strerror(errno != 0 ? errno : EIO));
  const po::options_description none;  // names are checked by whoever knows the table
  std::vector<FileLine> lines;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    // One line at a time, since the parser does not say which line an option stood in.
    std::string where = fmt::format("{}:{}", path, number);
    const auto reject = [&] {
      throw Error(Error::Kind::kConfiguration,
                  fmt::format("{}: \"{}\" is not of the form name = value", where, text));
    };
    std::istringstream line(text);
    try {
      const auto parsed = po::parse_config_file(line, none, /*allow_unregistered=*/true);
      const auto start = text.find_first_not_of(" \t");
      if (start != std::string::npos && text[start] == '[') reject();  // a section: would be ignored
      for (const auto& option : parsed.options) {
        lines.push_back({option.string_key, option.value.empty() ? "" : option.value.front(), where});
      }
    } catch (const po::error&) {
      reject();
    }
  }
  if (file.bad()) cannot_read(path, std::strerror(errno != 0 ? errno : EIO));
  return lines;
}

std::map<std::string, std::string> process_environment() {
  std::map<std::string, std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* equals = std::strchr(*entry, '=');
    if (equals == nullptr || std::strncmp(*entry, "ESKER_", 6) != 0) continue;
    result.emplace(std::string(*entry, static_cast<std::size_t>(equals - *entry)), equals + 1);
  }
  return result;
}

}  // namespace esker::detail
