// Where operands stand in the memory of the host and of devices.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/transfer/plan/schedule.hpp>

namespace esker::transfer {

/// What an operand takes of a place. Neighbours at addresses of the host have no gaps, so they have none on
/// devices, where each begins as far beyond a multiple of `alignment`, a power of two, as it does there.
inline std::uint64_t space_of(const Operand& operand, std::uint64_t alignment) {
  return operand.host_address != 0 ? operand.bytes : (operand.bytes + alignment - 1) & ~(alignment - 1);
}

/// One allocation a place, and the offsets of storages in it, in bytes.
///
/// Contract. A startup's operands stand next to each other in both its places, with the same gaps, so one
///           copy moves them. On a device, memory is used again when what was in it is dead; the host's
///           operands keep theirs, since the program reads and writes them between runs.
struct Layout {
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};

  std::vector<std::uint64_t> bytes;                 // of each place's arena; place 0 is the host
  std::vector<std::uint64_t> separate_bytes;        // of each place, did nothing share memory
  std::vector<std::vector<std::uint64_t>> offsets;  // [place][storage]; kNowhere: not there

  /// Of a startup's copy: where it begins in a place, and how long it is.
  std::uint64_t begin_of(const Schedule& schedule, const Startup& startup, std::uint32_t place) const {
    return offsets[place][schedule.order[startup.first]];
  }
  std::uint64_t bytes_of(const OperandGraph& graph, const Schedule& schedule, const Startup& startup) const;
};

/// When a storage is in use in a place: stretches of steps, in order. 3t is what is moved before kernel t,
/// 3t + 1 the kernel, 3t + 2 what is moved after it. On a device, what arrives begins a stretch.
struct Lifetime {
  struct Stretch {
    std::uint32_t first, last;
  };
  std::vector<Stretch> stretches;

  bool is_used() const { return !stretches.empty(); }
  ESKER_API bool overlaps(const Lifetime& other) const;
};
/// By place and storage.
ESKER_API std::vector<std::vector<Lifetime>> lifetimes_of(const OperandGraph& graph,
                                                          const Schedule& schedule);

/// Places storages by first fit, large groups of neighbours first. Where that takes more than `limit` bytes
/// of a device, other offsets are tried, up to 10 000; the first fit stands if none of them fits.
/// `alignment` is a power of two.
///
/// Errors. Error{kTransfer}: operands that stand at addresses of the host overlap there, or are in one
///         startup without being neighbours.
ESKER_API Layout lay_out(const OperandGraph& graph, const Schedule& schedule, std::uint64_t alignment = 128,
                         std::uint64_t limit = ~std::uint64_t{0});

/// Most bytes of a device that are alive at one time: no layout needs less.
ESKER_API std::uint64_t most_alive(const OperandGraph& graph, const std::vector<Lifetime>& lifetimes,
                                   std::uint64_t alignment = 128);

}  // namespace esker::transfer
