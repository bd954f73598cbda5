// Pinned memory that copies of pageable memory go through.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/transfer/copy/copies.hpp>

namespace esker::transfer::detail {

/// Contract. One thread at a time. Blocks are taken in turn: one that an earlier call's stream may still use
///           is waited for, on the host where the host writes it, else in the stream.
class CopyStaging {
 public:
  using Put = std::function<void(std::span<const Copy>)>;

  explicit CopyStaging(const Device& device) : device_{device} {}
  ~CopyStaging();
  CopyStaging(const CopyStaging&) = delete;
  CopyStaging& operator=(const CopyStaging&) = delete;

  /// `put` puts copies between the blocks and the device on the stream.
  void stage(std::span<const Copy> copies, bool to_host, const Stream& stream, const Put& put);

 private:
  static constexpr std::size_t kBlocks = 4, kBlockBytes = std::size_t{4} << 20, kAlignment = 256;
  struct Block {
    PinnedArray<std::byte> memory;
    Event done;
  };

  Block& next_block();
  /// What is in the block goes, by `put`, and to the host on from there.
  void send(Block& block, std::vector<Copy>& staged, std::vector<Copy>& pageable, bool to_host,
            const Stream& stream, const Put& put);

  const Device device_;
  std::vector<Block> blocks_;
  std::size_t next_ = 0;
};

}  // namespace esker::transfer::detail
