// Resident memory of this process, by /proc.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>

namespace faults {

/// KiB, by the line's name in /proc/self/status.
inline std::uint64_t status_kib(const std::string& name) {
  std::ifstream file("/proc/self/status");
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind(name + ":", 0) == 0) return std::stoull(line.substr(name.size() + 1));
  }
  return 0;
}

/// KiB that are resident of [begin, end), by /proc/self/smaps. Mappings that only touch the range count
/// in full, so let it be one of its own.
inline std::uint64_t mapping_kib(const void* begin, std::uint64_t bytes) {
  std::ifstream file("/proc/self/smaps");
  const auto first = reinterpret_cast<std::uint64_t>(begin);
  std::string line;
  bool inside = false;
  std::uint64_t kib = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    char dash = 0;
    if (words >> std::hex >> from >> dash >> to && dash == '-') {
      inside = from < first + bytes && first < to;
    } else if (inside && line.rfind("Rss:", 0) == 0) {
      kib += std::stoull(line.substr(4));
    }
  }
  return kib;
}

/// "anon_kib=1 file_kib=2 shmem_kib=3 peak_kib=4"
inline std::string resident_in_words() {
  return fmt::format("anon_kib={} file_kib={} shmem_kib={} peak_kib={}", status_kib("RssAnon"),
                     status_kib("RssFile"), status_kib("RssShmem"), status_kib("VmHWM"));
}

}  // namespace faults
