// Errors: names, and the way out on misuse.
#include <esker/device/error.hpp>

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include <esker/device/check.hpp>

namespace esker {
namespace {

std::mutex process_name_mutex;
std::string process_name;
thread_local std::string thread_name;

/// The last two components: enough to find the file, and the same on every machine.
std::string_view short_path(std::string_view path) {
  const auto last = path.rfind('/');
  if (last == std::string_view::npos || last == 0) return path;
  const auto before = path.rfind('/', last - 1);
  return before == std::string_view::npos ? path : path.substr(before + 1);
}

}  // namespace

const char* to_string(Error::Kind kind) noexcept {
  switch (kind) {
    case Error::Kind::kConfiguration:
      return "configuration";
    case Error::Kind::kOutOfMemory:
      return "out of memory";
    case Error::Kind::kDevice:
      return "device";
    case Error::Kind::kNetwork:
      return "network";
    case Error::Kind::kHandler:
      return "handler";
    case Error::Kind::kContract:
      return "contract";
  }
  return "unknown";
}

void set_process_name(std::string name) {
  const std::lock_guard lock(process_name_mutex);
  process_name = std::move(name);
}

void set_thread_name(std::string name) { thread_name = std::move(name); }

std::string who_am_i() {
  if (!thread_name.empty()) return thread_name;
  const std::lock_guard lock(process_name_mutex);
  return process_name;
}

void misuse(const std::string& message) {
  const std::string who = who_am_i();
  const std::string line = "esker: " + (who.empty() ? message : who + ": " + message) + "\n";
  // Never unlocked: a second caller waits here for the first one's abort and adds nothing to its report.
  static std::mutex first;
  first.lock();
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  std::abort();
}

void detail::check_failed(const char* condition, const char* file, int line, const std::string& message) {
  misuse(fmt::format("{} (requires {}, {}:{})", message, condition, short_path(file), line));
}

}  // namespace esker
