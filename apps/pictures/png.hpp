// Pictures as PNG files, by zlib.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <zlib.h>

#include "../harness/output.hpp"

namespace png {

/// 32 bits, the upper ones first.
inline std::string word(std::uint64_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

/// Writes a chunk: its length, kind, bytes and checksum.
inline void write_chunk(harness::OutputFile& file, const std::string& kind, const std::string& bytes) {
  uLong sum = crc32(0, reinterpret_cast<const Bytef*>(kind.data()), 4);
  if (!bytes.empty())
    sum = crc32(sum, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size()));
  file.write(word(bytes.size()));
  file.write(kind);
  file.write(bytes);
  file.write(word(sum));
}

/// Writes rows of pixels from the top, three bytes a pixel: red, green, blue; and closes the file.
inline void write(harness::OutputFile& file, std::uint32_t width, std::uint32_t height,
                  const std::vector<std::uint8_t>& pixels) {
  std::vector<std::uint8_t> rows;  // each after the number of its filter: none
  rows.reserve(pixels.size() + height);
  for (std::size_t y = 0; y < height; ++y) {
    rows.push_back(0);
    rows.insert(rows.end(), pixels.begin() + static_cast<std::ptrdiff_t>(y * width * 3),
                pixels.begin() + static_cast<std::ptrdiff_t>((y + 1) * width * 3));
  }
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::string packed(size, '\0');
  if (compress(reinterpret_cast<Bytef*>(packed.data()), &size, rows.data(),
               static_cast<uLong>(rows.size())) != Z_OK)
    throw std::runtime_error("zlib has no memory for the picture");
  packed.resize(size);
  file.write("\x89PNG\r\n\x1a\n");
  write_chunk(file, "IHDR", word(width) + word(height) + std::string("\x08\x02\0\0\0", 5));
  write_chunk(file, "IDAT", packed);
  write_chunk(file, "IEND", {});
  file.close();
}

}  // namespace png
