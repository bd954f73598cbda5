// What tests of containers share: the ways in which PEs run, and a file for all PEs of a test.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <esker/containers.hpp>

#include "../runtime/pes.hpp"

namespace esker::testing {

inline std::vector<Way> container_ways() {
  if (kOnGpu) return gpu_ways();
  std::vector<Way> all;
  for (const std::uint32_t n : {1u, 2u, 3u, 4u, 8u}) {
    all.push_back(way(n == 3 ? "2 lane threads, 2 helpers" : "1 lane thread", n, [=](Config& config) {
      config.cpu_threads = n == 3 ? 2 : 1;
      config.apply_helpers = n == 3 ? 2 : 0;
    }));
  }
  return all;
}

inline std::uint64_t sum_over_pes(Runtime& rt, std::uint64_t mine) {
  std::uint64_t sum[1] = {mine};
  rt.all_reduce(sum, Reduction::kSum);
  return sum[0];
}

/// A name for a file of this test's, which is removed when it ends.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& name)
      : path_{std::filesystem::temp_directory_path() / ("esker-" + std::to_string(::getpid()) + "-" + name)} {
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  std::string name() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace esker::testing
