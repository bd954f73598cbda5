// Lines of a stream of bytes, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "byte_stream.hpp"

namespace inputs {

/// What a line may take: a human chromosome is one line in some files. A compressed file of a few KiB can
/// hold one without an end.
inline constexpr std::size_t kMostLineBytes = std::size_t{1} << 28;

/// Contract A line ends with "\n", "\r\n" or the end of the stream; what ends it is not part of it. There is
///          no line after the last "\n". Memory is 64 KiB, or twice the longest line.
class LineReader {
 public:
  /// The first byte of `bytes` has position `offset`.
  explicit LineReader(std::unique_ptr<ByteStream> bytes, std::uint64_t offset = 0);
  /// A file's lines from byte `offset` on. The file outlives the reader.
  explicit LineReader(const File& file, std::uint64_t offset = 0)
      : LineReader(plain_bytes(file, offset), offset) {}

  /// The next line, valid until the next call of next() or peek(); nothing at the end. Throws Malformed for
  /// one that does not end within kMostLineBytes; it counts as returned.
  std::optional<std::string_view> next();
  /// The first character of the next line, which may be its end; nothing at the end of the stream.
  std::optional<char> peek();

  /// Position of the next line.
  std::uint64_t offset() const { return offset_; }
  /// Position of the line that next() returned last, or of the first.
  std::uint64_t last_offset() const { return last_offset_; }
  /// How many lines next() has returned.
  std::uint64_t lines() const { return lines_; }

 private:
  bool fill();

  std::unique_ptr<ByteStream> bytes_;
  std::size_t capacity_ = std::size_t{1} << 16;
  std::unique_ptr<char[]> buffer_ = std::make_unique_for_overwrite<char[]>(capacity_);
  std::size_t begin_ = 0;  // of what was read and not returned
  std::size_t end_ = 0;
  bool ended_ = false;  // bytes_ has no more
  std::uint64_t offset_;
  std::uint64_t last_offset_;
  std::uint64_t lines_ = 0;
};

}  // namespace inputs
