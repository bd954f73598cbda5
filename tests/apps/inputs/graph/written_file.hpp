// Files that a test writes and removes.
#pragma once

#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace graph {

/// A file of the given bytes, in the temporary folder; `ending` is the end of its name.
class WrittenFile {
 public:
  WrittenFile(const std::string& ending, const std::string& bytes) {
    static int number = 0;
    path_ = std::filesystem::temp_directory_path() /
            ("esker-graph-" + std::to_string(::getpid()) + "-" + std::to_string(number++) + ending);
    std::ofstream file(path_, std::ios::binary);
    if (!(file << bytes) || !file.flush()) throw std::runtime_error("cannot write " + path_.string());
  }
  ~WrittenFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  WrittenFile(const WrittenFile&) = delete;
  WrittenFile& operator=(const WrittenFile&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// One gzip member.
inline std::string gzip(const std::string& text) {
  z_stream stream{};
  constexpr int kGzipWindow = 15 + 16;
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2");
  }
  std::string result(deflateBound(&stream, static_cast<uLong>(text.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  const int state = deflate(&stream, Z_FINISH);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  if (state != Z_STREAM_END) throw std::runtime_error("deflate");
  return result;
}

/// The bytes of .sg, and of .wsg where neighbours alternate with weights.
struct SerializedBytes {
  unsigned char directed = 0;
  std::int64_t neighbours = 0;
  std::int64_t vertices = 0;
  std::vector<std::int64_t> offsets;
  std::vector<std::int32_t> ids;

  /// Once for undirected graphs, twice for directed ones.
  std::string text() const {
    std::string result(1, static_cast<char>(directed));
    append(result, &neighbours, sizeof neighbours);
    append(result, &vertices, sizeof vertices);
    for (int copy = 0; copy < (directed == 1 ? 2 : 1); ++copy) {
      append(result, offsets.data(), offsets.size() * sizeof(std::int64_t));
      append(result, ids.data(), ids.size() * sizeof(std::int32_t));
    }
    return result;
  }

 private:
  static void append(std::string& to, const void* bytes, std::size_t count) {
    to.append(static_cast<const char*>(bytes), count);
  }
};

}  // namespace graph
