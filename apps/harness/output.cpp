// POSIX files: they can be opened for writing without losing what they hold.
#include "output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "failure.hpp"

namespace harness {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 16;
constexpr std::uint64_t kChunk = std::uint64_t{1} << 10;  // of a reduction
constexpr mode_t kAll = 0666;

[[noreturn]] void cannot_write(const std::string& path, int error) {
  throw esker::Error(esker::Error::Kind::kConfiguration,
                     fmt::format("{}: cannot be written: {}", path, std::strerror(error)));
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_{std::move(path)} {
  if (path_ == "-") {
    path_ = "standard output";
    descriptor_ = STDOUT_FILENO;
    return;
  }
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, kAll);
  if (descriptor_ >= 0) {
    // It can be made. A job that is refused may be ended by its launcher at any time, and leaves no empty
    // file.
    ::unlink(path_.c_str());
    ::close(std::exchange(descriptor_, -1));
    return;
  }
  if (errno == EEXIST) descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail(errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ >= 0 && descriptor_ != STDOUT_FILENO) ::close(descriptor_);
}

void OutputFile::write(std::string_view text) {
  buffer_ += text;
  if (buffer_.size() >= kBufferBytes) flush();
}

void OutputFile::flush() {
  if (descriptor_ < 0 && error_ == 0) {
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC | O_CREAT | O_TRUNC, kAll);
    if (descriptor_ < 0) error_ = errno;
  } else if (!has_begun_ && descriptor_ != STDOUT_FILENO) {
    struct stat status = {};
    const bool is_file = ::fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
    if (is_file && ::ftruncate(descriptor_, 0) != 0) error_ = errno;
  }
  has_begun_ = true;
  for (std::size_t done = 0; done < buffer_.size() && error_ == 0;) {
    const ssize_t n = ::write(descriptor_, buffer_.data() + done, buffer_.size() - done);
    if (n >= 0) done += static_cast<std::size_t>(n);
    if (n < 0 && errno != EINTR) error_ = errno;
  }
  buffer_.clear();
}

void OutputFile::close() {
  flush();
  const int descriptor = std::exchange(descriptor_, -1);
  // A network's file system may say only here that the disk is full.
  if (descriptor >= 0 && descriptor != STDOUT_FILENO && ::close(descriptor) != 0 && error_ == 0)
    error_ = errno;
  if (error_ != 0) fail(error_);
}

void OutputFile::fail(int error) const { cannot_write(path_, error); }

void flush_standard_output() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    cannot_write("standard output", errno == 0 ? EIO : errno);
}

void write_in_order(esker::Runtime& rt, OutputFile* file, std::uint64_t count,
                    const std::function<std::uint64_t(std::uint64_t)>& word_of,
                    const std::function<void(std::string&, std::uint64_t, std::uint64_t)>& line) {
  std::vector<std::uint64_t> words;
  std::string text;
  for (std::uint64_t first = 0; first < count; first += words.size()) {
    words.resize(std::min(kChunk, count - first));
    for (std::uint64_t i = 0; i < words.size(); ++i) words[i] = word_of(first + i);
    rt.all_reduce(std::span(words), esker::Reduction::kSum);
    if (file == nullptr) continue;
    text.clear();
    for (std::uint64_t i = 0; i < words.size(); ++i) line(text, first + i, words[i]);
    file->write(text);
  }
  agree(rt, [&] {
    if (file != nullptr) file->close();
  });
}

}  // namespace harness
