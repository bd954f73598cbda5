// Pictures as PNG files, by zlib.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <zlib.h>

namespace png {

/// Writes a chunk: its length, kind, bytes and checksum.
inline void write_chunk(std::FILE* file, const std::string& kind, const std::vector<std::uint8_t>& bytes) {
  const auto put_word = [&](std::uint64_t word) {
    for (int shift = 24; shift >= 0; shift -= 8) std::fputc(static_cast<int>(word >> shift & 0xff), file);
  };
  put_word(bytes.size());
  std::fwrite(kind.data(), 1, 4, file);
  if (!bytes.empty()) std::fwrite(bytes.data(), 1, bytes.size(), file);
  uLong sum = crc32(0, reinterpret_cast<const Bytef*>(kind.data()), 4);
  if (!bytes.empty()) sum = crc32(sum, bytes.data(), static_cast<uInt>(bytes.size()));
  put_word(sum);
}

/// Writes rows of pixels from the top, three bytes a pixel: red, green, blue. Throws where the file cannot be
/// written.
inline void write(const std::string& path, std::uint32_t width, std::uint32_t height,
                  const std::vector<std::uint8_t>& pixels) {
  std::vector<std::uint8_t> rows;  // each after the number of its filter: none
  rows.reserve(pixels.size() + height);
  for (std::size_t y = 0; y < height; ++y) {
    rows.push_back(0);
    rows.insert(rows.end(), pixels.begin() + static_cast<std::ptrdiff_t>(y * width * 3),
                pixels.begin() + static_cast<std::ptrdiff_t>((y + 1) * width * 3));
  }
  uLongf size = compressBound(static_cast<uLong>(rows.size()));
  std::vector<std::uint8_t> packed(size);
  if (compress(packed.data(), &size, rows.data(), static_cast<uLong>(rows.size())) != Z_OK)
    throw std::runtime_error("zlib has no memory for the picture");
  packed.resize(size);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file) throw std::runtime_error("cannot write " + path);
  std::fwrite("\x89PNG\r\n\x1a\n", 1, 8, file.get());
  std::vector<std::uint8_t> header;
  for (const std::uint32_t word : {width, height}) {
    for (int shift = 24; shift >= 0; shift -= 8) header.push_back(static_cast<std::uint8_t>(word >> shift));
  }
  for (const std::uint8_t byte : std::array<std::uint8_t, 5>{8, 2, 0, 0, 0}) header.push_back(byte);
  write_chunk(file.get(), "IHDR", header);
  write_chunk(file.get(), "IDAT", packed);
  write_chunk(file.get(), "IEND", {});
  if (std::fflush(file.get()) != 0 || std::ferror(file.get()) != 0)
    throw std::runtime_error("cannot write all of " + path);
}

}  // namespace png
