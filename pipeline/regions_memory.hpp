// Memory for the words and buffers of a grid's regions, and what stands there at first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/device/lane_group.hpp>
#include <esker/pipeline/regions_grid.hpp>
#include <esker/tasks/index_ring.hpp>

namespace esker::pipeline {

/// Whose threads or lanes use something.
enum class RegionSide { kHost, kDevice };

namespace detail {

/// One allocation: a word of 8 bytes a region and one more, then arrays of 4 bytes a region, the ring of free
/// buffers, and the buffers. The host keeps an image of all but the last.
class RegionMemory {
 public:
  using Ring = tasks::detail::IndexRing<Scope::kDevice>;

  /// `buffers`: 0 for one a region. What words hold is to be said, and then reset() called.
  RegionMemory(const Device& device, RegionSide side, const RegionGrid& grid, std::uint32_t arrays,
               std::uint32_t buffers, std::uint64_t cell_bytes, const std::string& what)
      : device_{device}, regions_{grid.count()} {
    if (buffers == 0 || buffers > regions_) buffers = regions_;
    is_short_ = buffers < regions_;
    while (ring_entries_ < buffers) ring_entries_ *= 2;
    ring_at_ = words_at(arrays);
    cells_at_ = ring_at_ + aligned(Ring::storage_bytes(ring_entries_));
    image_.resize(cells_at_ / 8);
    const Ring all(image_.data() + ring_at_ / 8, ring_entries_);
    LoneLane alone;
    for (std::uint32_t b = 0; b < buffers; ++b) all.push(alone, b);

    const std::uint64_t bytes = cells_at_ + buffers * grid.region.volume() * cell_bytes;
    if (side == RegionSide::kHost) {
      pinned_ = device.pinned<std::byte>(bytes, {what, false});
    } else {
      memory_ = device.memory<std::byte>(bytes, {what, false});
    }
    at_ = side == RegionSide::kHost ? pinned_.data() : memory_.data();
  }

  template <class ValueOf>
  void set_words(std::uint32_t array, const ValueOf& value_of) {
    std::vector<std::uint32_t> values(regions_);
    for (std::uint32_t r = 0; r < regions_; ++r) values[r] = value_of(r);
    std::memcpy(image_.data() + words_at(array) / 8, values.data(), values.size() * 4);
  }
  void reset() const { device_.copy(at_, image_.data(), image_.size() * 8); }

  DeviceAtomic<std::uint64_t>* buffer_words() const {
    return reinterpret_cast<DeviceAtomic<std::uint64_t>*>(at_);
  }
  /// Fewer buffers than regions.
  bool is_short() const { return is_short_; }
  DeviceAtomic<std::uint64_t>* one_more_word() const { return buffer_words() + regions_; }
  DeviceAtomic<std::uint32_t>* words(std::uint32_t array) const {
    return reinterpret_cast<DeviceAtomic<std::uint32_t>*>(at_ + words_at(array));
  }
  Ring ring() const { return {at_ + ring_at_, ring_entries_}; }
  std::byte* cells() const { return at_ + cells_at_; }

 private:
  static constexpr std::uint64_t aligned(std::uint64_t bytes) {
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  std::uint64_t words_at(std::uint32_t array) const {
    return aligned((std::uint64_t{regions_} + 1) * 8) + array * aligned(std::uint64_t{regions_} * 4);
  }

  Device device_;
  std::uint32_t regions_;
  bool is_short_ = false;
  std::uint32_t ring_entries_ = 1;
  std::uint64_t ring_at_ = 0, cells_at_ = 0;
  std::vector<std::uint64_t> image_;
  PinnedArray<std::byte> pinned_;
  DeviceArray<std::byte> memory_;
  std::byte* at_ = nullptr;
};

}  // namespace detail

}  // namespace esker::pipeline
