// Pageable memory, block by block.
#include <esker/transfer/copy/staging.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace esker::transfer::detail {

CopyStaging::~CopyStaging() {
  try {
    for (const Block& block : blocks_) block.done.synchronize();
  } catch (const std::exception&) {  // the device has failed: nothing uses the blocks any more
  }
}

CopyStaging::Block& CopyStaging::next_block() {
  while (blocks_.size() < kBlocks) {
    blocks_.push_back({device_.pinned<std::byte>(kBlockBytes, {.what = "staging of copies", .zeroed = false}),
                       device_.event()});
  }
  return blocks_[next_++ % kBlocks];
}

void CopyStaging::stage(std::span<const Copy> copies, bool to_host, const Stream& stream, const Put& put) {
  Block* block = nullptr;
  std::size_t used = 0;
  std::vector<Copy> staged, pageable;
  for (const Copy& copy : copies) {
    for (std::size_t offset = 0; offset < copy.bytes;) {
      if (block != nullptr && used >= kBlockBytes)
        send(*std::exchange(block, nullptr), staged, pageable, to_host, stream, put);
      if (block == nullptr) {
        block = &next_block();
        used = 0;
        if (to_host) {
          stream.wait(block->done);
        } else {
          block->done.synchronize();
        }
      }
      const std::size_t bytes = std::min(copy.bytes - offset, kBlockBytes - used);
      std::byte* const place = block->memory.data() + used;
      auto* const to = static_cast<std::byte*>(copy.to) + offset;
      const auto* const from = static_cast<const std::byte*>(copy.from) + offset;
      if (to_host) {
        staged.push_back({place, from, bytes});
        pageable.push_back({to, place, bytes});
      } else {
        std::memcpy(place, from, bytes);
        staged.push_back({to, place, bytes});
      }
      offset += bytes;
      used += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
  }
  if (block != nullptr) send(*block, staged, pageable, to_host, stream, put);
}

void CopyStaging::send(Block& block, std::vector<Copy>& staged, std::vector<Copy>& pageable, bool to_host,
                       const Stream& stream, const Put& put) {
  put(staged);
  if (to_host) {
    stream.call([copies = std::move(pageable)] {
      for (const Copy& copy : copies) std::memcpy(copy.to, copy.from, copy.bytes);
    });
  }
  stream.record(block.done);
  staged.clear();
  pageable.clear();
}

}  // namespace esker::transfer::detail
