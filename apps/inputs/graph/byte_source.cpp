// Plain and gzip-compressed bytes.
#include "byte_source.hpp"

#include <fmt/format.h>
#include <esker/device/error.hpp>

#include <algorithm>
#include <limits>

namespace graph {
namespace {

constexpr std::size_t kBufferBytes = 1 << 16;
constexpr int kGzipWindow = 15 + 16;  // the largest window; 16: a gzip header and nothing else
constexpr unsigned char kGzipFirstByte = 0x1f;

}  // namespace

std::size_t PlainBytes::read(char* into, std::size_t bytes) {
  const std::size_t got = file_.read_some(offset_, into, bytes);
  offset_ += got;
  return got;
}

GzipBytes::GzipBytes(const InputFile& file) : file_{file}, buffer_(kBufferBytes) {
  if (inflateInit2(&stream_, kGzipWindow) != Z_OK) {
    throw esker::Error(esker::Error::Kind::kOutOfMemory,
                       fmt::format("{}: no memory to decompress it", file.path()));
  }
}

GzipBytes::~GzipBytes() { inflateEnd(&stream_); }

std::size_t GzipBytes::read(char* into, std::size_t bytes) {
  const uInt room = static_cast<uInt>(std::min<std::size_t>(bytes, std::numeric_limits<uInt>::max()));
  stream_.next_out = reinterpret_cast<Bytef*>(into);
  stream_.avail_out = room;
  while (stream_.avail_out == room) {
    if (!has_input()) {
      if (between_members_) return 0;
      file_.fail_at_byte(position(), "the compressed data ends before its check sum");
    }
    if (between_members_) {
      if (position() > 0 && *stream_.next_in != kGzipFirstByte) {
        file_.fail_at_byte(position(), "neither the end of the file nor another compressed part");
      }
      inflateReset(&stream_);
      between_members_ = false;
    }
    const int state = inflate(&stream_, Z_NO_FLUSH);
    if (state == Z_STREAM_END) {
      between_members_ = true;
    } else if (state != Z_OK && state != Z_BUF_ERROR) {
      file_.fail_at_byte(position(), fmt::format("not gzip, or damaged: {}",
                                                 stream_.msg != nullptr ? stream_.msg : zError(state)));
    }
  }
  return room - stream_.avail_out;
}

bool GzipBytes::has_input() {
  if (stream_.avail_in != 0) return true;
  const std::size_t got = file_.read_some(loaded_, buffer_.data(), buffer_.size());
  loaded_ += got;
  stream_.next_in = buffer_.data();
  stream_.avail_in = static_cast<uInt>(got);
  return got != 0;
}

std::uint64_t GzipBytes::position() const { return loaded_ - stream_.avail_in; }

}  // namespace graph
