// The bytes of a text, first to last: as they stand in a file, or what is compressed there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "file.hpp"

namespace inputs {

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

// The file outlives the streams.

/// The file's bytes from `offset` on.
std::unique_ptr<ByteStream> plain_bytes(const File& file, std::uint64_t offset = 0);

/// What the members of a gzip file hold, one behind the other (bgzip writes many), with their checksums
/// verified. A truncated or damaged stream, or anything else behind a member, is an esker::Error that names
/// the file and the compressed byte.
std::unique_ptr<ByteStream> gzip_bytes(const File& file);

/// Whether the file starts as gzip files do, whatever its name is.
bool is_gzip(const File& file);

}  // namespace inputs
