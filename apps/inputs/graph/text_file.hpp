// A text file, plain or compressed, that is read in parts of whole lines.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "../file/file.hpp"
#include "../file/line_reader.hpp"
#include "../file/part.hpp"

namespace inputs {

/// A header of lines, if read_header() is called, and a body of lines.
///
/// Parts. Each line of the body belongs to exactly one part. In a plain file part p of n is the lines that
/// begin in the p-th n-th of the body's bytes, so it costs an n-th of the file. A compressed file cannot be
/// cut: every part decompresses all of it and keeps every n-th block of 1024 lines, so n parts cost n times
/// the decompression, side by side (about 300 MB/s of text on one core).
class TextFile {
 public:
  /// Throws esker::Error{kConfiguration} if the file cannot be opened, is empty or holds an empty text.
  TextFile(const std::string& path, bool compressed);

  /// Shows the lines from the first on to `visit` until it returns false: that was the header's last line.
  /// Throws esker::Error{kConfiguration} if the file ends before, saying that `missing` is missing, and
  /// where `visit` throws Malformed.
  void read_header(const char* missing, const std::function<bool(std::string_view line)>& visit);

  /// Lines of the header, 0 without one.
  std::uint64_t header_lines() const { return header_lines_; }

  /// Shows the lines of a part to `visit`. Where `visit` throws Malformed, throws
  /// esker::Error{kConfiguration}: "PATH:LINE: reason". Any number of threads at once.
  void for_each_line(Part part, const std::function<void(std::string_view line)>& visit) const;

  /// Throws esker::Error{kConfiguration} for a line, which counts from 1.
  [[noreturn]] void fail_at_line(std::uint64_t line, const std::string& reason) const;

 private:
  LineReader lines() const;
  void for_each_line_of_range(Range bytes, const std::function<void(std::string_view)>& visit) const;
  void for_each_line_of_blocks(Part part, const std::function<void(std::string_view)>& visit) const;

  File file_;
  bool compressed_;
  std::uint64_t header_lines_ = 0;
  std::uint64_t header_bytes_ = 0;
};

}  // namespace inputs
