// Ownership blocks on the device: their locks, and lists of messages whose blocks are taken.
#pragma once

#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>
#include <esker/net/gpu/progress_policy.hpp>

namespace esker::gpu {

/// Ownership blocks share locks by number. Some 30 thousand are held at a time, and a message whose lock is
/// held for another block costs as much as one whose block is held.
inline constexpr std::uint32_t kOwnershipLocks = 1u << 20;

/// Messages of a package as lists: all messages of an ownership block are on one list. In scratchpad, one for
/// each wave of a progress kernel.
struct OwnershipLists {
  static constexpr std::uint32_t kMessages = 256;  // at a time
  static constexpr int kListBits = 6;
  static constexpr std::uint32_t kLists = 1u << kListBits;
  static constexpr std::uint32_t kEnd = 0xffff;
  GroupAtomic<std::uint32_t> heads[kLists];
  std::uint16_t next[kMessages];

  ESKER_HD void push(std::uint32_t list, std::uint32_t message) {
    std::uint32_t head = heads[list].load_relaxed();
    while (!heads[list].compare_exchange_relaxed(head, message)) {
    }
    next[message] = static_cast<std::uint16_t>(head);
  }
};
static_assert(OwnershipLists::kMessages <= OwnershipLists::kEnd);

struct ProgressLists {
  OwnershipLists of_wave[ProgressPolicy::kGroupLanes / 32];
};

}  // namespace esker::gpu
