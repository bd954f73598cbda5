// Where each lane of a group waits: the bookkeeping under both CPU engines. It neither waits nor locks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/device/cpu/group.hpp>
#include <memory>
#include <string>
#include <vector>

namespace esker::cpu {

/// State. Each lane runs, waits in a collective, awaits a predicate, or has gone (returned or cancelled).
/// A collective ends when all its live lanes have arrived; it then runs `combine` over them.
class Rendezvous {
 public:
  void begin(const LaunchShape& shape, std::uint64_t group, std::uint32_t lanes);

  /// Lane `lane` hands in `mine`. True if that ended the collective: released() lanes run again.
  /// Throws std::logic_error, and the lane has not arrived, if others wait there in another collective
  /// or the collective itself is misused.
  bool arrive(std::uint32_t lane, std::uint32_t view, const Collective& what, const Exchange& mine);
  /// Lane `lane` takes part no longer. True if that ended a collective. Throws what a combine throws.
  bool leave(std::uint32_t lane);
  /// Lanes that the last arrive() or leave() set free, the caller of arrive() included.
  const std::vector<std::uint32_t>& released() const { return released_; }

  void await(std::uint32_t lane, const char* where) { lanes_[lane].where = where; }
  void resume(std::uint32_t lane) { lanes_[lane].where = nullptr; }
  bool is_in_collective(std::uint32_t lane) const { return lanes_[lane].what != nullptr; }

  const Exchange& result(std::uint32_t lane) const { return exchanges_[lane]; }
  std::uint32_t live() const { return views_[0].live; }
  std::uint32_t lanes() const { return static_cast<std::uint32_t>(lanes_.size()); }

  /// "all 3 live lanes of group 7 wait, and none can go on: lanes 0-1 in group.sync; lane 2 in ..."
  std::string misuse() const;

  std::byte* scratch(const void* key, std::size_t bytes);

 private:
  struct LaneState {
    const Collective* what = nullptr;  // in a collective
    const char* where = nullptr;       // awaiting
    std::uint32_t view = 0;
    bool gone = false;
  };
  struct View {
    std::uint32_t first, size, live, arrived;
  };
  struct FreeAligned {
    void operator()(std::byte* memory) const;
  };
  struct Scratch {
    const void* key;
    std::size_t bytes;
    bool in_use;  // by this group: zeroed
    std::unique_ptr<std::byte, FreeAligned> memory;
  };

  void end(View& view);
  std::string place(const LaneState& lane) const;

  std::uint64_t group_ = 0;
  std::uint32_t wave_lanes_ = 0;
  std::vector<LaneState> lanes_;
  std::vector<Exchange> exchanges_;
  std::vector<View> views_;  // 0: the group; 1 + w: wave w
  std::vector<std::uint32_t> released_;
  std::vector<Scratch> scratch_;
};

}  // namespace esker::cpu
