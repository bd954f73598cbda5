// A file that is read at any byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace graph {

/// A regular file, open for reading. Any number of threads may read at once.
class InputFile {
 public:
  /// Throws esker::Error{kConfiguration} with the path and the cause if it cannot be opened, is no regular
  /// file, or is empty.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size_bytes() const { return size_bytes_; }

  /// Reads up to `bytes` from byte `offset` on; fewer only at the end of the file. Throws as above.
  std::size_t read_some(std::uint64_t offset, void* into, std::size_t bytes) const;

  /// Reads all of them, or throws: a file that shrank meanwhile.
  void read_all(std::uint64_t offset, void* into, std::size_t bytes) const;

  /// Throws esker::Error{kConfiguration}: "PATH: byte 17: reason".
  [[noreturn]] void fail_at_byte(std::uint64_t offset, const std::string& reason) const;

 private:
  std::string path_;
  int descriptor_;
  std::uint64_t size_bytes_;
};

}  // namespace graph
