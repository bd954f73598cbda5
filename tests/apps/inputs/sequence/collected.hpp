// Records that own their text.
#pragma once

#include <esker/apps/inputs/sequence/reads.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "../in_parts.hpp"

namespace inputs::testing {

struct Record {
  std::string name;
  std::string bases;
  std::string qualities;
  bool operator==(const Record&) const = default;
};

inline std::vector<Record> collect(const std::string& file, Part part = {}) {
  std::vector<Record> records;
  for_each_read(file, part, [&](const Read& read) {
    records.push_back({std::string(read.name), std::string(read.bases), std::string(read.qualities)});
  });
  return records;
}

/// The records of all parts, one part behind the other.
inline std::vector<Record> collect_all(const std::string& file, std::uint64_t parts) {
  return in_parts([&](Part part) { return collect(file, part); }, parts);
}

}  // namespace inputs::testing
