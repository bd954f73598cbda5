// Lines of a stream of bytes, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "file.hpp"

namespace inputs {

/// Bytes in order.
class ByteStream {
 public:
  ByteStream() = default;
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  /// Writes at least one byte to `into`, which is not empty, and returns how many; 0 at the end. Throws
  /// esker::Error.
  virtual std::size_t read(std::span<char> into) = 0;
};

/// A file's bytes from `offset` on. The file outlives the stream.
class FileStream final : public ByteStream {
 public:
  FileStream(const File& file, std::uint64_t offset) : file_{file}, offset_{offset} {}
  std::size_t read(std::span<char> into) override;

 private:
  const File& file_;
  std::uint64_t offset_;
};

/// Contract A line ends with "\n", "\r\n" or the end of the stream; what ends it is not part of it. There is
///          no line after the last "\n". Memory is 64 KiB, or twice the longest line.
class LineReader {
 public:
  /// The first byte of `stream` has position `offset`. The stream outlives the reader.
  explicit LineReader(ByteStream& stream, std::uint64_t offset = 0);

  /// The next line, valid until the next call of next() or peek(); nothing at the end.
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

  ByteStream& stream_;
  std::size_t capacity_ = std::size_t{1} << 16;
  std::unique_ptr<char[]> buffer_ = std::make_unique_for_overwrite<char[]>(capacity_);
  std::size_t begin_ = 0;  // of what was read and not returned
  std::size_t end_ = 0;
  bool ended_ = false;  // the stream has no more
  std::uint64_t offset_;
  std::uint64_t last_offset_;
  std::uint64_t lines_ = 0;
};

/// Position of the first line of `file` that begins at `offset` or behind it; its size if there is none.
std::uint64_t line_start(const File& file, std::uint64_t offset);

}  // namespace inputs
