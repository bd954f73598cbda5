// memfd_create(), and the files of other processes in /proc.
#include <esker/net/shared/segment.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace esker::shared {
namespace {

std::uint64_t inode_of(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 ? status.st_ino : 0;
}

}  // namespace

Segment::~Segment() {
  if (mapping_ != nullptr) munmap(mapping_, bytes_ + kHugePage);
  close_file();
}

std::string Segment::make() {
  rlimit most{};  // beyond which ftruncate() raises SIGXFSZ
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur != RLIM_INFINITY && most.rlim_cur < bytes_)
    return fmt::format("files may have {} bytes (ulimit -f), and {} are needed", most.rlim_cur, bytes_);
  file_ = memfd_create("esker", MFD_CLOEXEC);
  if (file_ < 0) return fmt::format("memfd_create: {}", std::strerror(errno));
  if (ftruncate(file_, static_cast<off_t>(bytes_)) != 0)
    return fmt::format("ftruncate to {} bytes: {}", bytes_, std::strerror(errno));
  return map();
}

std::string Segment::open(std::int64_t process, const SegmentFile& file) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process, file.number);
  file_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file_ < 0) return fmt::format("{}: {}", path, std::strerror(errno));
  std::string why = inode_of(file_) == file.inode ? map() : path + " is another file";
  close_file();
  return why;
}

SegmentFile Segment::file() const { return {file_, inode_of(file_)}; }

void Segment::close_file() {
  if (file_ >= 0) close(file_);
  file_ = -1;
}

std::string Segment::map() {
  // Reserved with what the alignment may cost; the segment replaces a part of it.
  void* const reserved =
      mmap(nullptr, bytes_ + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved != MAP_FAILED) {
    mapping_ = reserved;
    auto* const begin = static_cast<std::byte*>(reserved);
    std::byte* const aligned =
        begin + (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
    void* const at = mmap(aligned, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, 0);
    if (at != MAP_FAILED) {
      at_ = aligned;
      return {};
    }
  }
  return fmt::format("mapping {} bytes: {}", bytes_, std::strerror(errno));
}

}  // namespace esker::shared
