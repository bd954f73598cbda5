// Symmetric memory: the same offset on every PE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/error.hpp>

namespace esker {

/// A view of symmetric memory: trivially copyable, captured by kernels by value. &array[i] is the local
/// address that stands for element i on any PE.
template <class T>
class SymmetricArray {
 public:
  SymmetricArray() = default;
  SymmetricArray(T* data, std::uint64_t size) : data_{data}, size_{size} {}

  ESKER_HD T& operator[](std::uint64_t i) const { return data_[i]; }
  ESKER_HD T* data() const { return data_; }
  /// Elements on each PE.
  ESKER_HD std::uint64_t size() const { return size_; }
  ESKER_HD T* begin() const { return data_; }
  ESKER_HD T* end() const { return data_ + size_; }
  std::span<T> span() const { return {data_, size_}; }

 private:
  T* data_ = nullptr;
  std::uint64_t size_ = 0;
};

/// The allocator of one PE. All calls are collective and in the same order on every PE.
class SymmetricHeap {
 public:
  /// `count` zeroed elements on every PE, which start at a multiple of `alignment` bytes: a power of two, no
  /// more than kMostAlignment; less than kAlignment is as good as that. Messages may arrive there as soon as
  /// any PE has returned.
  ///
  /// Errors. Misuse: another alignment. Error{kOutOfMemory}: the heap's limit or the host's memory does not
  /// allow it; nothing has
  ///         changed on any PE. Error{kContract}: the PEs ask for different sizes or alignments, or are in
  ///         different calls. Every PE throws alike.
  template <class T>
  SymmetricArray<T> allocate(std::uint64_t count, std::size_t alignment = kAlignment) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    T* const data = static_cast<T*>(allocate_bytes(&count, sizeof(T), alignment, false));
    return {data, count};
  }
  /// The same where PEs need different numbers: every PE has as many as the one that asks for the most, which
  /// is the array's size().
  template <class T>
  SymmetricArray<T> allocate_largest(std::uint64_t count, std::size_t alignment = kAlignment) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    T* const data = static_cast<T*>(allocate_bytes(&count, sizeof(T), alignment, true));
    return {data, count};
  }

  /// Gives the memory back. Requires that no message for it is under way (barrier_all).
  template <class T>
  void free(SymmetricArray<T> array) {
    free_bytes(array.data());
  }

  /// Local. A copy of this PE's elements first .. first + to.size() - 1 as they are now, wherever the heap
  /// stands: a host program indexes an array itself only where on_host(). Waits for this PE's kernels.
  template <class T>
  void read(SymmetricArray<T> array, std::uint64_t first, std::span<T> to) {
    copy_out(to.data(), array.data() + first, to.size_bytes());
  }
  /// Error{kOutOfMemory} if the host has no memory for all of them.
  template <class T>
  std::vector<T> read(SymmetricArray<T> array) {
    std::vector<T> all;
    try {
      all.resize(array.size());
    } catch (const std::bad_alloc&) {
      throw Error(Error::Kind::kOutOfMemory, "heap().read: the program has no memory for a copy of " +
                                                 std::to_string(array.size() * sizeof(T)) +
                                                 " bytes; read the array in parts");
    }
    read(array, 0, std::span<T>(all));
    return all;
  }
  /// Local. The other way round. Requires that no message for these elements is under way.
  template <class T>
  void write(SymmetricArray<T> array, std::uint64_t first, std::span<const T> from) {
    copy_in(array.data() + first, from.data(), from.size_bytes());
  }
  /// Local. Where this PE's part begins, in the memory that kernels and handlers see; aligned to 4096 bytes.
  virtual std::byte* base() const = 0;
  /// The heap is in host memory.
  virtual bool on_host() const = 0;

  /// Most that can be allocated on each PE: Config::heap_bytes.
  virtual std::uint64_t limit_bytes() const = 0;
  virtual std::uint64_t allocated_bytes() const = 0;

  /// Every allocation starts on a multiple of this.
  static constexpr std::size_t kAlignment = 128;
  /// The most that may be asked for.
  static constexpr std::size_t kMostAlignment = 4096;

 protected:
  ~SymmetricHeap() = default;
  /// `largest`: *count becomes the largest of all PEs'.
  virtual void* allocate_bytes(std::uint64_t* count, std::size_t element_bytes, std::size_t alignment,
                               bool largest) = 0;
  virtual void free_bytes(void* at) = 0;
  virtual void copy_out(void* to, const void* from, std::uint64_t bytes) = 0;
  virtual void copy_in(void* to, const void* from, std::uint64_t bytes) = 0;
};

}  // namespace esker
