// Containers in files: one file of all PEs, which any number of PEs may load.
//
// Format. 64 bytes of FileHeader, then the records, one behind the other: an element; or a key and its value,
// without a gap. Of an array they stand in the order of its indices, else in any. Numbers are as the machine
// has them; one of the other byte order is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include <esker/runtime.hpp>

namespace esker::containers {

enum class FileKind : std::uint32_t { kArray = 1, kMap, kSet, kCountingSet, kBag };

/// What a file says of a type: a number's kind, or that it is something else, and its size.
struct FileType {
  std::uint32_t kind = 0;  // 'u' unsigned, 'i' signed, 'f' floating point, 'c' other; 0: there is none
  std::uint32_t bytes = 0;

  template <class T>
  static constexpr FileType of() {
    constexpr char kKind = std::is_floating_point_v<T> ? 'f'
                           : !std::is_integral_v<T>    ? 'c'
                           : std::is_signed_v<T>       ? 'i'
                                                       : 'u';
    return {static_cast<std::uint32_t>(kKind), sizeof(T)};
  }
  friend bool operator==(const FileType& a, const FileType& b) {
    return a.kind == b.kind && a.bytes == b.bytes;
  }
};

struct FileContents {
  FileKind kind;
  FileType key;  // none, but for maps and sets
  FileType value;

  std::uint64_t record_bytes() const { return key.bytes + value.bytes; }
};

struct FileHeader {
  char magic[8];  // "ESKERCON"
  std::uint32_t byte_order;
  std::uint32_t version;
  FileContents contents;
  std::uint32_t reserved;
  std::uint64_t records;
  std::uint64_t checksum;  // of the records: see checksum_of()
  std::uint64_t header_checksum;
};
static_assert(std::is_trivially_copyable_v<FileHeader> && sizeof(FileHeader) == 64);

/// How many of so many records of a PE are read or written at a time; at least 1.
constexpr std::uint64_t file_chunk(std::uint64_t record_bytes, std::uint64_t records = ~std::uint64_t{0}) {
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 20;
  const std::uint64_t chunk = record_bytes > kBytes ? 1 : kBytes / record_bytes;
  return records == 0 ? 1 : records < chunk ? records : chunk;
}

/// So many elements in the host's memory, in one piece, as those of a std::vector<bool> are not.
template <class T>
class Chunk {
 public:
  explicit Chunk(std::uint64_t size) : elements_{std::make_unique<T[]>(size)}, size_{size} {}
  std::uint64_t size() const { return size_; }
  /// The first n, or as many as there are.
  std::span<T> first(std::uint64_t n) const { return {elements_.get(), n < size_ ? n : size_}; }

 private:
  std::unique_ptr<T[]> elements_;
  std::uint64_t size_;
};

/// An open file, closed at its end.
class ESKER_API FileDescriptor {
 public:
  FileDescriptor() = default;
  ~FileDescriptor() { (void)close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  /// False, with errno: it cannot be opened.
  bool open(const std::string& file, int flags);
  /// The same of what was not written before. True if nothing is open.
  bool close();
  int get() const { return number_; }

 private:
  int number_ = -1;
};

/// One PE's part of a file that is written.
///
/// Contract. Constructor and close() are collective. Between them write(), of as many records as the
///           constructor was told. A file that was not closed is none: its header comes last. What it held
///           before stays until then: FILE.new is written, and takes its place.
/// Errors.   Error{kConfiguration} on every PE, with the same message, from the constructor and close().
class ESKER_API FileWriter {
 public:
  FileWriter(Runtime& rt, const char* call, std::string file, const FileContents& contents,
             std::uint64_t records);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  /// The number in the file of this PE's first record.
  std::uint64_t first() const { return first_; }
  void write(std::span<const std::byte> records);
  void close();

 private:
  Runtime& rt_;
  const char* call_;
  std::string file_;
  std::string target_;   // the file that it leads to
  std::string written_;  // target_, if that is no file but a device or a pipe
  FileContents contents_;
  FileDescriptor descriptor_;
  std::uint64_t first_ = 0;
  std::uint64_t records_ = 0;  // of all PEs
  std::uint64_t next_ = 0;     // record, of this PE
  std::uint64_t end_ = 0;
  std::uint64_t checksum_ = 0;
  std::string failure_;
};

/// One PE's part of a file that is read: so many records in a row that all PEs have about as many.
///
/// Contract. Constructor and close() are collective; read() until it returns 0.
/// Errors.   Error{kConfiguration} on every PE, with the same message, from the constructor and close(): a
/// file
///           that cannot be read, is no such file, is damaged, or has other contents than `expected`.
class ESKER_API FileReader {
 public:
  FileReader(Runtime& rt, const char* call, std::string file, const FileContents& expected);
  FileReader(const FileReader&) = delete;
  FileReader& operator=(const FileReader&) = delete;

  /// Of all PEs.
  std::uint64_t records() const { return header_.records; }
  /// The same on every PE: records for which read() should be given space.
  std::uint64_t chunk() const {
    return file_chunk(header_.contents.record_bytes(), (records() + rt_.n_pes() - 1) / rt_.n_pes());
  }
  /// The number in the file of the record that read() comes to next.
  std::uint64_t next() const { return next_; }
  /// Fills `records` from its begin on. Returns how many records there were.
  std::uint64_t read(std::span<std::byte> records);
  void close();

 private:
  Runtime& rt_;
  const char* call_;
  std::string file_;
  FileDescriptor descriptor_;
  FileHeader header_{};
  std::uint64_t next_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t checksum_ = 0;
  std::string failure_;
};

}  // namespace esker::containers
