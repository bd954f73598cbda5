// Copies whose addresses exist, by the fastest path.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/transfer/copy/copies.hpp>
#include <esker/transfer/copy/copy_profile.hpp>

namespace esker::transfer {

/// What a Copier does, or would do, with copies of one direction between the host and a device.
struct CopyChoice {
  Direction direction;
  CopyPath path;
  std::uint32_t copies;  // adjacent ones are one
  std::uint64_t bytes;
  double predicted_us;
};

/// Carries out sets of copies between the host and one device, or within it.
///
/// Contract Any thread may call. A set is checked before any of it is put on the stream: it may be in any
///          order, so no range that is written overlaps another one of the set. Copies that follow one
///          another on both sides go as one. When the stream has come there, sources have been read and
///          destinations written. Pageable memory goes through pinned memory of the copier's: a source is
///          read before the call returns, and no graph may be captured from the stream meanwhile.
/// Errors   Error{kTransfer}: see check_copies(); or a copy goes beyond the memory that it begins in; or an
///          address is in the memory of another device, which takes a peer copy (Device::copy_async()).
///          Nothing has been copied then.
class ESKER_API Copier {
 public:
  /// By what was measured on this machine (CopyProfile::of_machine()).
  explicit Copier(const Device& device);
  Copier(const Device& device, CopyProfile profile);
  ~Copier();
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  void copy(std::span<const Copy> copies, const Stream& stream);
  /// The same by one path, to compare. Returns the microseconds that the calls to the device took.
  double copy_by(CopyPath path, std::span<const Copy> copies, const Stream& stream);
  /// What copy() would do, but that pageable memory goes block by block, each by a choice of its own. Large
  /// copies of a set may go by another path than small ones.
  std::vector<CopyChoice> choose(std::span<const Copy> copies);
  const CopyProfile& profile() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Copier::copy() of a copier that the process keeps for this Device, and its copies, from the first call on:
/// the device stays open.
ESKER_API void copy_batch(const Device& device, std::span<const Copy> copies, const Stream& stream);

}  // namespace esker::transfer
