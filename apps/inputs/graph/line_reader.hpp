// Lines out of a stream of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "byte_source.hpp"

namespace graph {

class LineReader {
 public:
  explicit LineReader(std::unique_ptr<ByteSource> source);

  /// The next line without its end, "\n" or "\r\n"; the last one may lack it. Valid until the next call.
  /// False at the end. Throws Malformed for a line longer than 64 KiB, which no format here has, and what
  /// the source throws.
  bool next(std::string_view& line);

  /// Lines that next() has begun, the one that it threw for too, and bytes up to the end of the last one
  /// that it returned.
  std::uint64_t lines() const { return lines_; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<ByteSource> source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // of what is not yet returned
  std::size_t end_ = 0;
  std::uint64_t lines_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace graph
