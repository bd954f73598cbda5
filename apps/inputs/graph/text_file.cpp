// Cutting a text into parts, and naming the line of an error.
#include "text_file.hpp"

#include <fmt/format.h>

#include "text_fields.hpp"

namespace inputs {
namespace {

constexpr std::uint64_t kBlockLines = 1024;

}  // namespace

TextFile::TextFile(const std::string& path, bool compressed) : file_{path}, compressed_{compressed} {
  if (!lines().peek()) bad_file(path, "holds nothing but an empty gzip stream");
}

void TextFile::read_header(const char* missing, const std::function<bool(std::string_view)>& visit) {
  LineReader reader = lines();
  try {
    bool more = true;
    while (more) {
      const auto line = reader.next();
      if (!line) throw Malformed(fmt::format("the file ends without {}", missing));
      more = visit(*line);
    }
  } catch (const Malformed& malformed) {
    fail_at_line(reader.lines(), malformed.what());
  }
  header_lines_ = reader.lines();
  header_bytes_ = reader.offset();
}

void TextFile::for_each_line(Part part, const std::function<void(std::string_view)>& visit) const {
  if (compressed_) {
    range_of(0, part);  // checks the part
    for_each_line_of_blocks(part, visit);
    return;
  }
  const Range cut = range_of(file_.size() - header_bytes_, part);
  const std::uint64_t begin = file_.line_start(header_bytes_ + cut.begin);
  for_each_line_of_range({begin, header_bytes_ + cut.end}, visit);
}

void TextFile::for_each_line_of_range(Range bytes, const std::function<void(std::string_view)>& visit) const {
  LineReader reader(file_, bytes.begin);
  try {
    while (reader.offset() < bytes.end) {
      const auto line = reader.next();
      if (!line) return;
      visit(*line);
    }
  } catch (const Malformed& malformed) {
    // Lines are counted where there is something to say about one, not in every run.
    fail_at_line(file_.line_of(reader.last_offset()), malformed.what());
  }
}

void TextFile::for_each_line_of_blocks(Part part, const std::function<void(std::string_view)>& visit) const {
  LineReader reader = lines();
  try {
    while (const auto line = reader.next()) {
      if (reader.lines() <= header_lines_) continue;
      if ((reader.lines() - header_lines_ - 1) / kBlockLines % part.count == part.index) visit(*line);
    }
  } catch (const Malformed& malformed) {
    fail_at_line(reader.lines(), malformed.what());
  }
}

void TextFile::fail_at_line(std::uint64_t line, const std::string& reason) const {
  bad_line(file_.path(), line, reason);
}

LineReader TextFile::lines() const {
  return LineReader(compressed_ ? gzip_bytes(file_) : plain_bytes(file_));
}

}  // namespace inputs
