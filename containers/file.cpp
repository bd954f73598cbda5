// Files of containers: POSIX files, their checks, and errors that every PE throws alike.
#include <esker/containers/file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <esker/containers/hash.hpp>

namespace esker::containers {
namespace {

constexpr char kMagic[8] = {'E', 'S', 'K', 'E', 'R', 'C', 'O', 'N'};
constexpr std::uint32_t kByteOrder = 0x01020304;
constexpr std::uint32_t kVersion = 1;

/// Of records that begin with number `first`. Those of several parts are added up, so that it does not matter
/// which PE has which; two that have changed places are noticed.
std::uint64_t checksum_of(std::span<const std::byte> records, std::uint64_t record_bytes,
                          std::uint64_t first) {
  std::uint64_t sum = 0;
  for (std::uint64_t at = 0; at < records.size(); at += record_bytes)
    sum += mix(hash_bytes(records.data() + at, record_bytes) + first++);
  return sum;
}

std::uint64_t header_checksum_of(const FileHeader& header) {
  return hash_bytes(&header, offsetof(FileHeader, header_checksum));
}

const char* name_of(FileKind kind) {
  switch (kind) {
    case FileKind::kArray:
      return "array";
    case FileKind::kMap:
      return "map";
    case FileKind::kSet:
      return "set";
    case FileKind::kCountingSet:
      return "counting set";
    case FileKind::kBag:
      return "bag";
  }
  return "unknown container";
}

std::string text_of(const FileType& type) {
  switch (type.kind) {
    case 'u':
      return fmt::format("unsigned integers of {} bytes", type.bytes);
    case 'i':
      return fmt::format("signed integers of {} bytes", type.bytes);
    case 'f':
      return fmt::format("floating-point numbers of {} bytes", type.bytes);
    default:
      return fmt::format("structures of {} bytes", type.bytes);
  }
}

std::string text_of(const FileContents& contents) {
  std::string text = name_of(contents.kind);
  if (contents.key.kind != 0) text += " with keys that are " + text_of(contents.key);
  if (contents.value.kind != 0)
    text += (contents.key.kind != 0 ? " and values that are " : " of ") + text_of(contents.value);
  return text;
}

/// Collective. Throws on every PE what the first of those says that have a `failure`.
void agree(Runtime& rt, const std::string& failure) {
  constexpr std::uint64_t kWords = 64;
  const std::uint64_t nobody = rt.n_pes();
  std::uint64_t first[1] = {failure.empty() ? nobody : rt.pe()};
  rt.all_reduce(first, Reduction::kMin);
  if (first[0] == nobody) return;
  std::array<std::uint64_t, kWords> text{};
  if (first[0] == rt.pe())
    std::memcpy(text.data(), failure.data(), std::min(failure.size(), sizeof text - 1));
  rt.all_reduce(text, Reduction::kSum);
  throw Error(Error::Kind::kConfiguration, reinterpret_cast<const char*>(text.data()));
}

/// All of it, or why not.
std::string write_at(int descriptor, std::span<const std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t done = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return std::strerror(done < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return {};
}

std::string read_at(int descriptor, std::span<std::byte> bytes, std::uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t done = ::pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? std::strerror(errno) : "it has become shorter";
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return {};
}

/// What is wrong with a file that begins with `header` and has `bytes`; nothing: "".
std::string fault_of(const FileHeader& header, std::uint64_t bytes, const FileContents& expected) {
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0)
    return "is no file of a container, or one whose writing has not ended";
  if (header.byte_order != kByteOrder) return "was written by a machine of the other byte order";
  if (header.version != kVersion)
    return fmt::format("has version {} of the format; this is version {}", header.version, kVersion);
  if (header.header_checksum != header_checksum_of(header))
    return "is damaged: its header's checksum is wrong";
  const FileContents& found = header.contents;
  if (found.kind != expected.kind || !(found.key == expected.key) || !(found.value == expected.value)) {
    return fmt::format("holds a {}; expected is a {}", text_of(found), text_of(expected));
  }
  const std::uint64_t whole = sizeof header + header.records * found.record_bytes();
  if (bytes != whole) return fmt::format("has {} bytes; {} records take {}", bytes, header.records, whole);
  return {};
}

}  // namespace

bool FileDescriptor::open(const std::string& file, int flags) {
  number_ = ::open(file.c_str(), flags, 0666);
  return number_ >= 0;
}

bool FileDescriptor::close() { return number_ < 0 || ::close(std::exchange(number_, -1)) == 0; }

FileWriter::FileWriter(Runtime& rt, const char* call, std::string file, const FileContents& contents,
                       std::uint64_t records)
    : rt_{rt}, call_{call}, file_{std::move(file)}, contents_{contents} {
  std::vector<std::uint64_t> counts(rt.n_pes());
  counts[rt.pe()] = records;
  rt.all_reduce(counts, Reduction::kSum);
  for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
    if (pe == rt.pe()) first_ = records_;
    records_ += counts[pe];
  }
  next_ = first_;
  end_ = first_ + records;
  std::error_code is_none;
  const std::filesystem::path real = std::filesystem::canonical(file_, is_none);
  target_ = is_none ? file_ : real.string();
  written_ = is_none || std::filesystem::is_regular_file(real, is_none) ? target_ + ".new" : target_;
  const auto open = [&](int flags) {
    // Without O_NONBLOCK a pipe without a reader would wait here for ever.
    if (!descriptor_.open(written_, O_WRONLY | O_CLOEXEC | O_NONBLOCK | flags))
      failure_ = fmt::format("{}: {} cannot be written: {}", call_, file_, std::strerror(errno));
  };
  if (rt.pe() == 0) open(O_CREAT | O_TRUNC);
  agree(rt, failure_);
  if (rt.pe() != 0) open(0);
  agree(rt, failure_);
}

FileWriter::~FileWriter() {
  if (rt_.pe() == 0 && written_ != target_) ::unlink(written_.c_str());  // it is there after a failure
}

void FileWriter::write(std::span<const std::byte> records) {
  if (!failure_.empty()) return;
  const std::uint64_t count = records.size() / contents_.record_bytes();
  if (next_ + count > end_) {
    failure_ = fmt::format("{}: what {} is to hold has changed on PE {} while it was written", call_, file_,
                           rt_.pe());
    return;
  }
  checksum_ += checksum_of(records, contents_.record_bytes(), next_);
  const std::string reason =
      write_at(descriptor_.get(), records, sizeof(FileHeader) + next_ * contents_.record_bytes());
  if (!reason.empty()) failure_ = fmt::format("{}: {} cannot be written: {}", call_, file_, reason);
  next_ += count;
}

void FileWriter::close() {
  if (failure_.empty() && next_ != end_) {
    failure_ = fmt::format("{}: what {} is to hold has changed on PE {} while it was written", call_, file_,
                           rt_.pe());
  }
  const auto close_here = [&] {
    if (failure_.empty() && ::fsync(descriptor_.get()) != 0 && errno != EINVAL && errno != EROFS)
      failure_ = fmt::format("{}: {} cannot be written: {}", call_, file_, std::strerror(errno));
    if (!descriptor_.close() && failure_.empty())
      failure_ = fmt::format("{}: {} cannot be written: {}", call_, file_, std::strerror(errno));
  };
  if (rt_.pe() != 0) close_here();
  agree(rt_, failure_);
  std::uint64_t checksum[1] = {checksum_};
  rt_.all_reduce(checksum, Reduction::kSum);
  if (rt_.pe() == 0) {
    FileHeader header{};
    std::memcpy(header.magic, kMagic, sizeof kMagic);
    header.byte_order = kByteOrder;
    header.version = kVersion;
    header.contents = contents_;
    header.records = records_;
    header.checksum = checksum[0];
    header.header_checksum = header_checksum_of(header);
    const std::string reason = write_at(descriptor_.get(), std::as_bytes(std::span(&header, 1)), 0);
    if (!reason.empty()) failure_ = fmt::format("{}: {} cannot be written: {}", call_, file_, reason);
    close_here();
    if (failure_.empty() && written_ != target_ && ::rename(written_.c_str(), target_.c_str()) != 0)
      failure_ = fmt::format("{}: {} cannot be written: {}", call_, file_, std::strerror(errno));
  }
  agree(rt_, failure_);
}

FileReader::FileReader(Runtime& rt, const char* call, std::string file, const FileContents& expected)
    : rt_{rt}, call_{call}, file_{std::move(file)} {
  // Without O_NONBLOCK a pipe without a writer would wait here for ever.
  const bool is_open = descriptor_.open(file_, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  std::string reason;
  struct stat status = {};
  if (!is_open) {
    reason = fmt::format("cannot be opened: {}", std::strerror(errno));
  } else if (::fstat(descriptor_.get(), &status) != 0) {
    reason = std::strerror(errno);
  } else if (!S_ISREG(status.st_mode)) {
    reason = "is not a regular file";
  } else if (static_cast<std::uint64_t>(status.st_size) < sizeof header_) {
    reason = fmt::format("has {} bytes; a container's header alone has {}", status.st_size, sizeof header_);
  } else if (reason = read_at(descriptor_.get(), std::as_writable_bytes(std::span(&header_, 1)), 0);
             !reason.empty()) {
    reason = "cannot be read: " + reason;
  } else {
    reason = fault_of(header_, static_cast<std::uint64_t>(status.st_size), expected);
  }
  if (!reason.empty()) failure_ = fmt::format("{}: {} {}", call_, file_, reason);
  agree(rt, failure_);
  const auto begin_of = [&](std::uint64_t pe) {
    const std::uint64_t share = header_.records / rt.n_pes();
    return pe * share + std::min(pe, header_.records % rt.n_pes());
  };
  next_ = begin_of(rt.pe());
  end_ = begin_of(rt.pe() + 1);
}

std::uint64_t FileReader::read(std::span<std::byte> records) {
  const std::uint64_t record_bytes = header_.contents.record_bytes();
  const std::uint64_t count = std::min(records.size() / record_bytes, end_ - next_);
  if (count == 0 || !failure_.empty()) return 0;
  const std::span<std::byte> part = records.first(count * record_bytes);
  const std::string reason = read_at(descriptor_.get(), part, sizeof header_ + next_ * record_bytes);
  if (!reason.empty()) {
    failure_ = fmt::format("{}: {} cannot be read: {}", call_, file_, reason);
    return 0;
  }
  checksum_ += checksum_of(part, record_bytes, next_);
  next_ += count;
  return count;
}

void FileReader::close() {
  agree(rt_, failure_);
  std::uint64_t checksum[1] = {checksum_};
  rt_.all_reduce(checksum, Reduction::kSum);
  if (checksum[0] != header_.checksum)
    failure_ = fmt::format("{}: {} is damaged: the checksum of its records is wrong", call_, file_);
  agree(rt_, failure_);
  (void)descriptor_.close();
}

}  // namespace esker::containers
