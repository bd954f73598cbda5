// Which PE owns which element of a distributed array, and where it stands there. For host and device.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>

namespace esker::containers {

/// An element's owner, and its index among the owner's elements.
struct Place {
  std::uint32_t pe;
  std::uint64_t index;
};

/// PE p has elements p b .. (p + 1) b - 1 of all, where b is size / pes, rounded up.
class Block {
 public:
  Block() = default;
  ESKER_HD constexpr Block(std::uint64_t size, std::uint32_t pes)
      : size_{size}, most_{size == 0 ? 1 : (size - 1) / pes + 1}, pes_{pes} {}

  /// Elements of all PEs; PEs.
  ESKER_HD constexpr std::uint64_t size() const { return size_; }
  ESKER_HD constexpr std::uint32_t pes() const { return pes_; }
  /// Most elements that a PE has; those that PE `pe` has.
  ESKER_HD constexpr std::uint64_t most() const { return most_; }
  ESKER_HD constexpr std::uint64_t count(std::uint32_t pe) const {
    const std::uint64_t first = pe * most_;
    return first >= size_ ? 0 : size_ - first < most_ ? size_ - first : most_;
  }
  /// Of element `i` < size().
  ESKER_HD constexpr Place place(std::uint64_t i) const {
    const std::uint64_t pe = i / most_;
    return {static_cast<std::uint32_t>(pe), i - pe * most_};
  }
  ESKER_HD constexpr std::uint32_t owner(std::uint64_t i) const { return place(i).pe; }
  ESKER_HD constexpr std::uint64_t local_index(std::uint64_t i) const { return place(i).index; }
  /// The inverse: element `index` < count(pe) of PE `pe`.
  ESKER_HD constexpr std::uint64_t global_index(std::uint32_t pe, std::uint64_t index) const {
    return pe * most_ + index;
  }

 private:
  std::uint64_t size_ = 0;
  std::uint64_t most_ = 1;
  std::uint32_t pes_ = 1;
};

/// PE p has elements p, p + pes, p + 2 pes, ...
class Cyclic {
 public:
  Cyclic() = default;
  ESKER_HD constexpr Cyclic(std::uint64_t size, std::uint32_t pes) : size_{size}, pes_{pes} {}

  ESKER_HD constexpr std::uint64_t size() const { return size_; }
  ESKER_HD constexpr std::uint32_t pes() const { return pes_; }
  ESKER_HD constexpr std::uint64_t most() const { return size_ == 0 ? 0 : (size_ - 1) / pes_ + 1; }
  ESKER_HD constexpr std::uint64_t count(std::uint32_t pe) const {
    return size_ / pes_ + (pe < size_ % pes_ ? 1 : 0);
  }
  ESKER_HD constexpr Place place(std::uint64_t i) const {
    return {static_cast<std::uint32_t>(i % pes_), i / pes_};
  }
  ESKER_HD constexpr std::uint32_t owner(std::uint64_t i) const { return place(i).pe; }
  ESKER_HD constexpr std::uint64_t local_index(std::uint64_t i) const { return place(i).index; }
  ESKER_HD constexpr std::uint64_t global_index(std::uint32_t pe, std::uint64_t index) const {
    return index * pes_ + pe;
  }

 private:
  std::uint64_t size_ = 0;
  std::uint32_t pes_ = 1;
};

}  // namespace esker::containers
