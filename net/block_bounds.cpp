// Whether a block's frame stays inside the heap.
#include <esker/net/blocks.hpp>

#include <fmt/format.h>

#include <esker/device/error.hpp>

namespace esker {

void require_inside(const wire::FrameHeader& header, const wire::BlockHeader& block,
                    std::uint64_t heap_bytes) {
  if (block.bytes > 0 &&
      BlockLayout{block.piece_bytes, block.stride}.is_inside(block.offset, block.bytes, heap_bytes))
    return;
  throw Error(Error::Kind::kNetwork, fmt::format("a block's frame from PE {}: a block of {} bytes in pieces "
                                                 "of {} every {} at heap offset {:#x} is outside (the "
                                                 "heap's allocated part ends at {:#x})",
                                                 header.source, block.bytes, block.piece_bytes, block.stride,
                                                 block.offset, heap_bytes));
}

}  // namespace esker
