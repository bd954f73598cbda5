// Memory that a pipeline's runs have one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <esker/device/device.hpp>

namespace esker::pipeline::detail {

using esker::detail::MemoryKind;

/// Contract One thread. What a run has taken is its own until give_back(). Memory holds what the run before
///          has left there.
/// Errors   Error{kOutOfMemory}, which says what it was for.
class MemoryPool {
 public:
  explicit MemoryPool(std::vector<Device> devices) : devices_{std::move(devices)} {}
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  /// kDevice: of the device on this side. All sides reach what is pinned or managed.
  std::byte* take(std::uint32_t side, MemoryKind kind, std::size_t bytes, const std::string& what);
  /// All that was taken.
  void give_back();
  /// Frees what nobody has taken.
  void trim();

 private:
  struct Block {
    std::variant<DeviceArray<std::byte>, PinnedArray<std::byte>, ManagedArray<std::byte>>
        memory;          // by MemoryKind
    std::uint32_t side;  // kDevice
    bool is_taken;
    std::size_t bytes() const;
    std::byte* data() const;
  };

  const std::vector<Device> devices_;
  std::vector<Block> blocks_;
};

}  // namespace esker::pipeline::detail
