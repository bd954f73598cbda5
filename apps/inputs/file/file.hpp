// A regular file that is read by position, and the messages that say where its contents are wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>

namespace inputs {

/// A reason without a place: whoever knows the file and the line turns it into an esker::Error.
class Malformed : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What sequential readers take at a time.
inline constexpr std::size_t kChunkBytes = 1 << 16;

/// Throws esker::Error{kConfiguration} "FILE:LINE: reason"; lines count from 1.
[[noreturn]] void bad_line(const std::string& file, std::uint64_t line, const std::string& reason);
/// The same for files without lines: "FILE: byte N: reason"; bytes count from 0.
[[noreturn]] void bad_byte(const std::string& file, std::uint64_t byte, const std::string& reason);
/// The same for what concerns the whole file: "FILE: reason".
[[noreturn]] void bad_file(const std::string& file, const std::string& reason);

/// State    open from construction to destruction; read only. Calls of one object may run at once.
/// Contract Every failure is an esker::Error that names the file and the cause.
class File {
 public:
  /// Throws for what cannot be opened, is no regular file or is empty.
  explicit File(std::string path);
  ~File();
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  const std::string& path() const { return path_; }
  /// In bytes, when it was opened.
  std::uint64_t size() const { return size_; }

  /// Reads bytes from `offset` on into `into`. Returns how many: fewer than it holds at the end only.
  std::size_t read_at(std::uint64_t offset, std::span<char> into) const;
  /// Fills `into` with the bytes from `offset` on; throws where the file has become shorter.
  void read_all_at(std::uint64_t offset, std::span<char> into) const;

  /// Position of the first line that begins at `offset` or behind it; size() if there is none.
  std::uint64_t line_start(std::uint64_t offset) const;
  /// The line, from 1, that holds byte `offset`. For messages: it reads the file up to there.
  std::uint64_t line_of(std::uint64_t offset) const;

 private:
  std::string path_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

}  // namespace inputs
