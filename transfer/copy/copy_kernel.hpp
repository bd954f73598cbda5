// A kernel whose lanes carry out a set of copies: a gather, or a scatter, over the bus.
#pragma once

#include <cstdint>
#include <span>

#include <esker/device/device.hpp>
#include <esker/transfer/copy/copies.hpp>

namespace esker::transfer::detail {

/// Puts copies on a stream, in as many kernels as it takes. Lanes reach both sides of each.
void copy_by_kernel(const Device& device, std::span<const Copy> copies, const Stream& stream);

}  // namespace esker::transfer::detail
