// Blocks of one kind that have the right size, or nearly.
#include <esker/pipeline/memory_pool.hpp>

#include <algorithm>
#include <utility>

namespace esker::pipeline::detail {

std::size_t MemoryPool::Block::bytes() const {
  return std::visit([](const auto& array) { return array.size(); }, memory);
}
std::byte* MemoryPool::Block::data() const {
  return std::visit([](const auto& array) { return array.data(); }, memory);
}

std::byte* MemoryPool::take(std::uint32_t side, MemoryKind kind, std::size_t bytes, const std::string& what) {
  if (kind != MemoryKind::kDevice) side = 0;
  Block* best = nullptr;
  for (Block& block : blocks_) {
    if (block.is_taken || block.side != side || block.memory.index() != static_cast<std::size_t>(kind))
      continue;
    if (block.bytes() < bytes || block.bytes() / 2 > bytes) continue;
    if (best == nullptr || block.bytes() < best->bytes()) best = &block;
  }
  if (best != nullptr) {
    best->is_taken = true;
    return best->data();
  }
  // Beside a GPU a device that is the host's cores has no pinned memory.
  const auto gpu = std::find_if(devices_.begin(), devices_.end(),
                                [](const Device& device) { return device.backend() != Backend::kCpu; });
  const Device& device = side != 0 ? devices_[side - 1] : gpu != devices_.end() ? *gpu : devices_.front();
  Block block{{}, side, true};
  const Allocation allocation{what, false};
  switch (kind) {
    case MemoryKind::kDevice:
      block.memory = device.memory<std::byte>(bytes, allocation);
      break;
    case MemoryKind::kPinned:
      block.memory = device.pinned<std::byte>(bytes, allocation);
      break;
    case MemoryKind::kManaged:
      block.memory = device.managed<std::byte>(bytes, allocation);
      break;
  }
  blocks_.push_back(std::move(block));
  return blocks_.back().data();
}
void MemoryPool::give_back() {
  for (Block& block : blocks_) block.is_taken = false;
}
void MemoryPool::trim() {
  std::erase_if(blocks_, [](const Block& block) { return !block.is_taken; });
}

}  // namespace esker::pipeline::detail
