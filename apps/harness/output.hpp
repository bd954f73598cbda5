// Files that an application writes: found unwritable before the run, and never short without a word.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include <esker/esker.hpp>

namespace harness {

/// State    open -> closed. What it held stays until the first byte is written, and one that is not there is
///          made then.
/// Errors   esker::Error{kConfiguration} with the file and the cause, from the constructor and close(): what
///          write() cannot do, close() says.
class OutputFile {
 public:
  /// - is standard output.
  explicit OutputFile(std::string path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::string_view text);
  void close();

 private:
  void flush();
  [[noreturn]] void fail(int error) const;

  std::string path_;
  int descriptor_ = -1;  // while the file has yet to be made
  bool has_begun_ = false;
  int error_ = 0;  // errno of the first write that failed
  std::string buffer_;
};

/// Throws esker::Error if what was written to standard output, by printf and the like, did not get there.
void flush_standard_output();

/// Collective. Appends line(text, i, word) for i from 0 to `count` - 1 to `file`, which PE 0 alone has, and
/// closes it. The word of i is word_of(i) on one PE, which has it; on others that is 0. Nobody holds more
/// than a chunk.
void write_in_order(esker::Runtime& rt, OutputFile* file, std::uint64_t count,
                    const std::function<std::uint64_t(std::uint64_t i)>& word_of,
                    const std::function<void(std::string& text, std::uint64_t i, std::uint64_t word)>& line);

}  // namespace harness
