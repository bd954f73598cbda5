// Cutting a text into parts, and naming the line of an error.
#include "text_file.hpp"

#include <fmt/format.h>
#include <esker/device/error.hpp>

#include <algorithm>
#include <vector>

#include "line_reader.hpp"
#include "text_fields.hpp"

namespace graph {
namespace {

constexpr std::uint64_t kBlockLines = 1024;
constexpr std::size_t kScanBytes = 1 << 16;

}  // namespace

TextFile::TextFile(const std::string& path, bool compressed) : file_{path}, compressed_{compressed} {
  char first = 0;
  if (source()->read(&first, 1) == 0) fail_at_line(1, "the compressed text is empty");
}

void TextFile::read_header(const char* missing, const std::function<bool(std::string_view)>& visit) {
  LineReader reader(source());
  try {
    std::string_view line;
    bool more = true;
    while (more) {
      if (!reader.next(line)) throw Malformed(fmt::format("the file ends without {}", missing));
      more = visit(line);
    }
  } catch (const Malformed& malformed) {
    fail_at_line(reader.lines(), malformed.what());
  }
  header_lines_ = reader.lines();
  header_bytes_ = reader.bytes();
}

void TextFile::for_each_line(Part part, const std::function<void(std::string_view)>& visit) const {
  if (compressed_) {
    range_of(0, part);  // checks the part
    for_each_line_of_blocks(part, visit);
    return;
  }
  const Range cut = range_of(file_.size_bytes() - header_bytes_, part);
  for_each_line_of_range({line_start(header_bytes_ + cut.begin), header_bytes_ + cut.end}, visit);
}

void TextFile::for_each_line_of_range(Range bytes, const std::function<void(std::string_view)>& visit) const {
  LineReader reader(std::make_unique<PlainBytes>(file_, bytes.begin));
  try {
    std::string_view line;
    while (bytes.begin + reader.bytes() < bytes.end && reader.next(line)) visit(line);
  } catch (const Malformed& malformed) {
    // Lines are counted where there is something to say about one, not in every run.
    fail_at_line(newlines_before(bytes.begin) + reader.lines(), malformed.what());
  }
}

void TextFile::for_each_line_of_blocks(Part part, const std::function<void(std::string_view)>& visit) const {
  LineReader reader(source());
  try {
    std::string_view line;
    while (reader.next(line)) {
      if (reader.lines() <= header_lines_) continue;
      if ((reader.lines() - header_lines_ - 1) / kBlockLines % part.count == part.index) visit(line);
    }
  } catch (const Malformed& malformed) {
    fail_at_line(reader.lines(), malformed.what());
  }
}

void TextFile::fail_at_line(std::uint64_t line, const std::string& reason) const {
  throw esker::Error(esker::Error::Kind::kConfiguration,
                     fmt::format("{}:{}: {}", file_.path(), line, reason));
}

std::unique_ptr<ByteSource> TextFile::source() const {
  if (compressed_) return std::make_unique<GzipBytes>(file_);
  return std::make_unique<PlainBytes>(file_, 0);
}

// The first line that begins at `offset` or later.
std::uint64_t TextFile::line_start(std::uint64_t offset) const {
  if (offset == header_bytes_) return offset;
  std::vector<char> buffer(kScanBytes);
  for (std::uint64_t at = offset - 1;;) {
    const std::size_t got = file_.read_some(at, buffer.data(), buffer.size());
    const auto end = buffer.begin() + static_cast<std::ptrdiff_t>(got);
    const auto newline = std::find(buffer.begin(), end, '\n');
    at += static_cast<std::uint64_t>(newline - buffer.begin());
    if (newline != end) return at + 1;
    if (got < buffer.size()) return at;
  }
}

std::uint64_t TextFile::newlines_before(std::uint64_t offset) const {
  std::vector<char> buffer(kScanBytes);
  std::uint64_t count = 0;
  for (std::uint64_t at = 0; at < offset;) {
    const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(kScanBytes, offset - at));
    file_.read_all(at, buffer.data(), wanted);
    count += static_cast<std::uint64_t>(
        std::count(buffer.begin(), buffer.begin() + static_cast<std::ptrdiff_t>(wanted), '\n'));
    at += wanted;
  }
  return count;
}

}  // namespace graph
