// Opening and positioned reads.
#include "input_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <esker/device/error.hpp>

#include <cerrno>
#include <cstring>
#include <utility>

namespace graph {
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw esker::Error(esker::Error::Kind::kConfiguration, fmt::format("{}: {}", path, reason));
}

}  // namespace

InputFile::InputFile(std::string path) : path_{std::move(path)} {
  // Without O_NONBLOCK a pipe without a writer would wait here for ever.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail(path_, fmt::format("cannot open: {}", std::strerror(errno)));
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode) || status.st_size == 0) {
    const std::string reason = !known                     ? std::strerror(errno)
                               : !S_ISREG(status.st_mode) ? "is not a regular file"
                                                          : "the file is empty";
    ::close(descriptor_);
    fail(path_, reason);
  }
  size_bytes_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() { ::close(descriptor_); }

std::size_t InputFile::read_some(std::uint64_t offset, void* into, std::size_t bytes) const {
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(descriptor_, static_cast<char*>(into) + done, bytes - done,
                                static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_at_byte(offset + done, fmt::format("cannot read: {}", std::strerror(errno)));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void InputFile::read_all(std::uint64_t offset, void* into, std::size_t bytes) const {
  const std::size_t got = read_some(offset, into, bytes);
  if (got != bytes) fail_at_byte(offset + got, "the file ends here, and was longer when it was opened");
}

void InputFile::fail_at_byte(std::uint64_t offset, const std::string& reason) const {
  fail(path_, fmt::format("byte {}: {}", offset, reason));
}

}  // namespace graph
