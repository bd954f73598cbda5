// Memory without a name that processes of one host share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace esker::shared {

/// A segment's file as its process has it open, for the peers. Its number alone may be another file's by now.
struct SegmentFile {
  std::int64_t number = -1;
  std::uint64_t inode = 0;
};

/// Zeros to begin with; pages that nobody touches do not exist. It is mapped at a multiple of a huge page,
/// and is gone with the last process that maps it.
///
/// Errors. make() and open() return what went wrong, or "".
class Segment {
 public:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;

  explicit Segment(std::size_t bytes) : bytes_{bytes} {}
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  /// Its file stays open for the peers, until close_file().
  std::string make();
  std::string open(std::int64_t process, const SegmentFile& file);
  /// What the peers need.
  SegmentFile file() const;
  void close_file();

  std::byte* at() const { return at_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::string map();

  const std::size_t bytes_;
  int file_ = -1;
  void* mapping_ = nullptr;
  std::byte* at_ = nullptr;
};

}  // namespace esker::shared
