// The bytes of a text, first to last: as they lie in a file, or decompressed.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "input_file.hpp"

namespace graph {

class ByteSource {
 public:
  virtual ~ByteSource() = default;

  /// Up to `bytes`, at least 1 of them; 0 at the end alone. Throws esker::Error{kConfiguration}.
  virtual std::size_t read(char* into, std::size_t bytes) = 0;
};

/// A file from a byte on. The file outlives it.
class PlainBytes final : public ByteSource {
 public:
  PlainBytes(const InputFile& file, std::uint64_t offset) : file_{file}, offset_{offset} {}
  std::size_t read(char* into, std::size_t bytes) override;

 private:
  const InputFile& file_;
  std::uint64_t offset_;
};

/// What a gzip file holds: one member or several, one after the other. A file that ends within a member, a
/// wrong check sum and bytes after the last member are errors that name the byte of the compressed file.
class GzipBytes final : public ByteSource {
 public:
  explicit GzipBytes(const InputFile& file);
  ~GzipBytes() override;
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;
  std::size_t read(char* into, std::size_t bytes) override;

 private:
  bool has_input();
  std::uint64_t position() const;

  const InputFile& file_;
  std::uint64_t loaded_ = 0;  // bytes of the file that were in the buffer so far
  std::vector<unsigned char> buffer_;
  z_stream stream_{};
  bool between_members_ = true;
};

}  // namespace graph
