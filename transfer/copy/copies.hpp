// A set of copies between a host and a device, whose addresses exist.
#pragma once

#include <cstddef>
#include <span>

#include <esker/device/platform.hpp>

namespace esker::transfer {

/// `bytes` bytes from `from` to `to`.
struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  std::size_t bytes = 0;
};

/// Refuses a set whose result would depend on the order of its copies.
///
/// Errors. Error{kTransfer}, with the copies' positions and addresses: a null address with bytes, a range
///         that ends beyond the last address, two ranges that are written and overlap, one that is written
///         and read. Copies of no bytes may have any address.
ESKER_API void check_copies(std::span<const Copy> copies);

}  // namespace esker::transfer
