// POSIX files, and the text of messages.
#include "file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <esker/error.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace inputs {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw esker::Error(esker::Error::Kind::kConfiguration, message);
}

}  // namespace

void bad_line(const std::string& file, std::uint64_t line, const std::string& reason) {
  fail(fmt::format("{}:{}: {}", file, line, reason));
}

void bad_byte(const std::string& file, std::uint64_t byte, const std::string& reason) {
  fail(fmt::format("{}: byte {}: {}", file, byte, reason));
}

void bad_file(const std::string& file, const std::string& reason) {
  fail(fmt::format("{}: {}", file, reason));
}

File::File(std::string path) : path_{std::move(path)} {
  // Without O_NONBLOCK a pipe without a writer would wait here for ever.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) bad_file(path_, fmt::format("cannot be opened: {}", std::strerror(errno)));
  struct stat status = {};
  const char* reason = nullptr;
  if (::fstat(descriptor_, &status) != 0) {
    reason = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    reason = "is not a regular file";
  } else if (status.st_size == 0) {
    reason = "is empty";
  }
  if (reason != nullptr) {
    ::close(descriptor_);
    bad_file(path_, reason);
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

File::~File() { ::close(descriptor_); }

std::size_t File::read_at(std::uint64_t offset, std::span<char> into) const {
  std::size_t done = 0;
  while (done < into.size()) {
    const ssize_t n =
        ::pread(descriptor_, into.data() + done, into.size() - done, static_cast<off_t>(offset + done));
    if (n == 0) break;
    if (n < 0 && errno != EINTR) {
      bad_byte(path_, offset + done, fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    if (n > 0) done += static_cast<std::size_t>(n);
  }
  return done;
}

void File::read_all_at(std::uint64_t offset, std::span<char> into) const {
  const std::size_t n = read_at(offset, into);
  if (n < into.size()) bad_byte(path_, offset + n, "the file has become shorter since it was opened");
}

std::uint64_t File::line_start(std::uint64_t offset) const {
  if (offset == 0) return 0;
  std::vector<char> chunk(kChunkBytes);
  for (std::uint64_t at = offset - 1;;) {  // a line begins at `offset` if the one before ends just there
    const std::size_t n = read_at(at, chunk);
    const void* newline = std::memchr(chunk.data(), '\n', n);
    if (newline != nullptr) {
      return at + static_cast<std::uint64_t>(static_cast<const char*>(newline) - chunk.data()) + 1;
    }
    at += n;
    if (n < chunk.size()) return at;
  }
}

std::uint64_t File::line_of(std::uint64_t offset) const {
  std::vector<char> chunk(kChunkBytes);
  std::uint64_t line = 1;
  for (std::uint64_t at = 0; at < offset;) {
    const std::size_t wanted = std::min<std::uint64_t>(chunk.size(), offset - at);
    const std::size_t n = read_at(at, std::span(chunk.data(), wanted));
    if (n == 0) break;  // the file has become shorter
    line += static_cast<std::uint64_t>(std::count(chunk.data(), chunk.data() + n, '\n'));
    at += n;
  }
  return line;
}

}  // namespace inputs
