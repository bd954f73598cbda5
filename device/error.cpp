// Errors: names, and the way out on misuse.
#include <esker/device/error.hpp>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <string_view>
#include <utility>

#include <esker/device/check.hpp>

namespace esker {
namespace {

std::mutex process_name_mutex;
std::string process_name;
thread_local std::string thread_name;
thread_local const char* kernel_name = nullptr;

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
    case Error::Kind::kKernel:
      return "kernel";
    case Error::Kind::kTask:
      return "task";
    case Error::Kind::kTransfer:
      return "transfer";
  }
  return "unknown";
}

Error current_error(const std::string& where) {
  try {
    throw;
  } catch (const Error& error) {
    return error;
  } catch (const std::bad_alloc&) {
    return {Error::Kind::kOutOfMemory, where + ": the host has no memory left (std::bad_alloc)"};
  } catch (const std::exception& error) {
    return {Error::Kind::kNetwork, where + ": " + error.what()};
  } catch (...) {
    return {Error::Kind::kNetwork, where + ": an exception that is no std::exception"};
  }
}

void set_process_name(std::string name) {
  const std::lock_guard lock(process_name_mutex);
  process_name = std::move(name);
}

std::string set_thread_name(std::string name) { return std::exchange(thread_name, std::move(name)); }

void set_running_kernel(const char* name) noexcept { kernel_name = name; }
const char* running_kernel() noexcept { return kernel_name; }

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
