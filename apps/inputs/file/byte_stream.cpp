// Reads by position, and zlib's inflate over them.
#include "byte_stream.hpp"

#include <fmt/format.h>
#include <zlib.h>
#include <esker/error.hpp>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace inputs {
namespace {

constexpr int kGzipOnly = 16 + MAX_WBITS;
constexpr std::string_view kMagic = "\x1f\x8b";

class PlainBytes final : public ByteStream {
 public:
  PlainBytes(const File& file, std::uint64_t offset) : file_{file}, offset_{offset} {}

  std::size_t read(std::span<char> into) override {
    const std::size_t n = file_.read_at(offset_, into);
    offset_ += n;
    return n;
  }

 private:
  const File& file_;
  std::uint64_t offset_;
};

class GzipBytes final : public ByteStream {
 public:
  explicit GzipBytes(const File& file) : file_{file}, compressed_(kChunkBytes) {
    if (inflateInit2(&inflate_, kGzipOnly) != Z_OK) {
      throw esker::Error(esker::Error::Kind::kOutOfMemory,
                         fmt::format("{}: no memory to decompress it", file_.path()));
    }
  }
  ~GzipBytes() override { inflateEnd(&inflate_); }

  std::size_t read(std::span<char> into) override {
    const std::size_t room = std::min<std::size_t>(into.size(), std::numeric_limits<uInt>::max());
    inflate_.next_out = reinterpret_cast<Bytef*>(into.data());
    inflate_.avail_out = static_cast<uInt>(room);
    while (inflate_.avail_out == room) {
      if (inflate_.avail_in == 0 && !fill()) {
        if (in_member_) fail("the gzip stream is truncated");
        return 0;
      }
      if (!in_member_ && position() > 0 && *inflate_.next_in != static_cast<Bytef>(kMagic[0])) {
        fail("neither the end of the file nor another gzip member");
      }
      in_member_ = true;
      const int status = inflate(&inflate_, Z_NO_FLUSH);
      if (status == Z_STREAM_END) {
        in_member_ = false;
        inflateReset(&inflate_);
      } else if (status != Z_OK) {
        fail(fmt::format("the gzip stream cannot be read: {}",
                         inflate_.msg == nullptr ? zError(status) : inflate_.msg));
      }
    }
    return room - inflate_.avail_out;
  }

 private:
  /// More compressed bytes; false at the end of the file.
  bool fill() {
    const std::size_t n = file_.read_at(loaded_, compressed_);
    loaded_ += n;
    inflate_.next_in = reinterpret_cast<Bytef*>(compressed_.data());
    inflate_.avail_in = static_cast<uInt>(n);
    return n > 0;
  }

  std::uint64_t position() const { return loaded_ - inflate_.avail_in; }
  [[noreturn]] void fail(const std::string& reason) const { bad_byte(file_.path(), position(), reason); }

  const File& file_;
  std::vector<char> compressed_;
  std::uint64_t loaded_ = 0;  // bytes of the file that were in compressed_ so far
  bool in_member_ = false;
  z_stream inflate_ = {};
};

}  // namespace

std::unique_ptr<ByteStream> plain_bytes(const File& file, std::uint64_t offset) {
  return std::make_unique<PlainBytes>(file, offset);
}

std::unique_ptr<ByteStream> gzip_bytes(const File& file) { return std::make_unique<GzipBytes>(file); }

bool is_gzip(const File& file) {
  std::array<char, kMagic.size()> start{};
  return std::string_view(start.data(), file.read_at(0, start)) == kMagic;
}

}  // namespace inputs
