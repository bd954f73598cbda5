// The bytes inside a gzip file.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <vector>

#include "../file/line_reader.hpp"

namespace inputs {

/// Whether the file starts as gzip files do, whatever its name is.
bool is_gzip(const File& file);

/// Contract The members of the file, one behind the other (bgzip writes many), with their checksums verified.
///          A truncated or damaged stream, or anything else behind a member, is an esker::Error that names
///          the file and the compressed byte.
class GzipStream final : public ByteStream {
 public:
  /// The file outlives the stream.
  explicit GzipStream(const File& file);
  ~GzipStream() override;

  std::size_t read(std::span<char> into) override;

 private:
  bool fill();

  const File& file_;
  std::vector<char> compressed_;
  std::uint64_t offset_ = 0;  // in the file, of what fill() reads next
  bool in_member_ = false;
  z_stream inflate_ = {};
};

}  // namespace inputs
