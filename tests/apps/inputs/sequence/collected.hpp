// Records that own their text, and gzip files for tests.
#pragma once

#include <zlib.h>
#include <esker/apps/inputs/sequence/reads.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace inputs::testing {

struct Record {
  std::string name;
  std::string bases;
  std::string qualities;
  bool operator==(const Record&) const = default;
};

inline std::vector<Record> collect(const std::string& file, std::uint64_t part = 0, std::uint64_t parts = 1) {
  std::vector<Record> records;
  for_each_read(file, part, parts, [&](const Read& read) {
    records.push_back({std::string(read.name), std::string(read.bases), std::string(read.qualities)});
  });
  return records;
}

/// The records of all parts, one part behind the other.
inline std::vector<Record> collect_all(const std::string& file, std::uint64_t parts) {
  std::vector<Record> records;
  for (std::uint64_t part = 0; part < parts; ++part) {
    for (Record& record : collect(file, part, parts)) records.push_back(std::move(record));
  }
  return records;
}

/// A gzip member.
inline std::string gzip(std::string_view text) {
  z_stream deflate_ = {};
  if (deflateInit2(&deflate_, Z_BEST_SPEED, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string out(deflateBound(&deflate_, text.size()), '\0');
  deflate_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  deflate_.avail_in = static_cast<uInt>(text.size());
  deflate_.next_out = reinterpret_cast<Bytef*>(out.data());
  deflate_.avail_out = static_cast<uInt>(out.size());
  if (deflate(&deflate_, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate");
  out.resize(deflate_.total_out);
  deflateEnd(&deflate_);
  return out;
}

}  // namespace inputs::testing
