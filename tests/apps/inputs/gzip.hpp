// Compressed files for tests.
#pragma once

#include <zlib.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace inputs::testing {

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
