// The memory under the symmetric heap of one PE, and which parts of it are taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <esker/net/shared/segment.hpp>

namespace esker {

/// Reserves address space at once and takes memory only for what is allocated.
///
/// Contract. The user's thread allocates and frees. Placement is first fit and depends on the sequence
///           of calls alone, so PEs that make the same calls get the same offsets.
class HeapMemory {
 public:
  /// `may_share`: peers are to open it, if that costs no huge pages. Error{kOutOfMemory} if the address space
  /// cannot be had.
  HeapMemory(std::uint64_t limit_bytes, bool huge_pages, bool may_share);
  /// Over memory that another object owns, all of it at once; `clear(offset, bytes)` zeroes a part.
  using Clear = std::function<void(std::uint64_t, std::uint64_t)>;
  HeapMemory(std::byte* base, std::uint64_t limit_bytes, Clear clear)
      : base_{base}, limit_{limit_bytes}, clear_{std::move(clear)} {}
  ~HeapMemory();
  HeapMemory(const HeapMemory&) = delete;
  HeapMemory& operator=(const HeapMemory&) = delete;

  std::byte* base() const { return base_; }
  std::uint64_t limit_bytes() const { return limit_; }
  /// What peers open; null: nothing.
  shared::Segment* segment() { return segment_.get(); }
  /// Why that is so, if it was to be shared.
  const std::string& why_private() const { return why_private_; }
  /// Before anything is taken: no more than `bytes`, so that the PEs agree.
  void lower_limit(std::uint64_t bytes) { limit_ = bytes < limit_ ? bytes : limit_; }
  std::uint64_t allocated_bytes() const { return allocated_; }
  /// Messages may touch offsets below this. Read by the appliers.
  const std::atomic<std::uint64_t>& end() const { return end_; }

  /// Where `bytes` would go, at a multiple of `alignment`. Empty: they do not fit.
  std::optional<std::uint64_t> find(std::uint64_t bytes, std::uint64_t alignment) const;
  /// Takes what find() returned, with zeroed memory behind it. False: the host has none; nothing taken.
  bool take(std::uint64_t offset, std::uint64_t bytes);
  /// False: nothing was allocated there.
  bool release(std::uint64_t offset);

 private:
  bool try_share();
  bool take_own(std::uint64_t offset, std::uint64_t end);
  /// Of the segment: huge pages [first, last); false where the kernel does not make them all.
  bool collapse(std::uint64_t first, std::uint64_t last);
  /// Behind [offset, end), where there are none yet.
  void make_huge_pages(std::uint64_t offset, std::uint64_t end);

  const bool huge_pages_ = false;
  std::unique_ptr<shared::Segment> segment_;
  std::string why_private_;
  std::byte* mapping_ = nullptr;  // where it is no segment
  std::size_t mapping_bytes_ = 0;
  std::byte* base_ = nullptr;
  std::uint64_t limit_;
  Clear clear_;  // empty: the memory is this object's
  std::uint64_t allocated_ = 0;
  std::uint64_t touched_ = 0;                      // below this, memory may hold old values
  std::vector<bool> is_huge_;                      // pages of the segment, or it has been tried
  std::map<std::uint64_t, std::uint64_t> blocks_;  // offset, bytes
  std::atomic<std::uint64_t> end_{0};
};

/// "1.5 MiB", for messages.
std::string in_mib(std::uint64_t bytes);
/// Bytes that processes on this host can still take: free and reclaimable memory, within the limits of
/// the control group.
std::uint64_t available_host_bytes();
/// Bytes of this host, or of the control group if that is less.
std::uint64_t total_host_bytes();
/// Of this process, by RLIMIT_AS (ulimit -v); nothing where there is no limit.
std::optional<std::uint64_t> address_space_limit();
/// Bytes that it may still map under that limit; 2^64 - 1 without one.
std::uint64_t address_space_left();
/// Resident bytes of this process now, by /proc/self/statm.
std::uint64_t resident_bytes();

}  // namespace esker
