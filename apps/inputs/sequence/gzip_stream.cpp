// zlib's inflate over a file that is read by position.
#include "gzip_stream.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string>

namespace inputs {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;

}  // namespace

bool is_gzip(const File& file) {
  std::array<char, 2> magic{};
  return file.read_at(0, magic) == 2 && magic[0] == '\x1f' && magic[1] == '\x8b';
}

GzipStream::GzipStream(const File& file) : file_{file}, compressed_(1 << 16) {
  if (inflateInit2(&inflate_, kGzipOnly) != Z_OK) bad_file(file_.path(), "no memory to decompress");
}

GzipStream::~GzipStream() { inflateEnd(&inflate_); }

/// More compressed bytes; false at the end of the file.
bool GzipStream::fill() {
  const std::size_t n = file_.read_at(offset_, compressed_);
  offset_ += n;
  inflate_.next_in = reinterpret_cast<Bytef*>(compressed_.data());
  inflate_.avail_in = static_cast<uInt>(n);
  return n > 0;
}

std::size_t GzipStream::read(std::span<char> into) {
  const std::size_t room = std::min<std::size_t>(into.size(), std::numeric_limits<uInt>::max());
  inflate_.next_out = reinterpret_cast<Bytef*>(into.data());
  inflate_.avail_out = static_cast<uInt>(room);
  while (inflate_.avail_out == room) {
    if (inflate_.avail_in == 0 && !fill()) {
      if (in_member_) bad_byte(file_.path(), offset_, "the gzip stream is truncated");
      return 0;
    }
    in_member_ = true;
    const int status = inflate(&inflate_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) {
      in_member_ = false;
      inflateReset(&inflate_);
    } else if (status != Z_OK) {
      const std::string cause = inflate_.msg == nullptr ? "damaged" : inflate_.msg;
      bad_byte(file_.path(), offset_ - inflate_.avail_in, "the gzip stream cannot be read: " + cause);
    }
  }
  return room - inflate_.avail_out;
}

}  // namespace inputs
