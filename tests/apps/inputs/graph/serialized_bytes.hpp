// Serialized graphs of the GAP benchmark suite, byte by byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace inputs::testing {

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

}  // namespace inputs::testing
