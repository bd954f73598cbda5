// Which kernels fit on a GPU side by side: the one place that divides groups, registers and scratchpad. No
// vendor's header, and no call of the device's runtime.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <esker/device/lane.hpp>

namespace esker::gpu {

/// Groups of a kernel that says how many lanes they have at most (Body::kMostGroupLanes): a processor holds
/// so many at least.
inline constexpr std::uint32_t kGroupsHeld = 3;
/// Of a GPU that a launch could fill, one part in so many stays free.
inline constexpr std::uint32_t kReservedPart = 8;
/// Beside what a group declares the device takes some scratchpad for itself.
inline constexpr std::uint32_t kScratchAside = 1024;

/// What the device's runtime says of a kernel (device/gpu/launch.hpp has the implementation).
class KernelFacts {
 public:
  /// Scratchpad that the kernel declares for a group.
  virtual std::uint32_t declared_scratch() const = 0;
  /// Groups that one processor holds at a time, each lent so much scratchpad.
  virtual std::uint32_t groups_a_processor(std::uint32_t group_lanes, std::uint32_t lent_bytes) const = 0;
  /// Lets launches lend a group so much. False: the device refuses.
  virtual bool allow_scratch(std::uint32_t bytes) const = 0;

 protected:
  ~KernelFacts() = default;
};

/// How a launch is to be made.
struct LaunchPlan {
  std::uint64_t groups = 0;
  std::uint32_t lent_bytes = 0;  // scratchpad of a group beside what it declares
  std::string refusal;           // why it must not start; "": it may
};

/// Divides one GPU between the user's launches and its guests: kernels of the library's own that have to run
/// beside them, or nothing goes on.
///
/// Contract. The user's thread makes the calls, but for guest_turn(), which is a guest's. A launch asks for a
///           plan, and the kernel is launched as the plan says. A guest is registered once, and asks for a
///           turn before each start.
/// Protocol. The broker remembers the least scratchpad that a group of a guest finds beside any launch so
///           far. A turn holds a lock that a launch which leaves less takes first, so a guest with more
///           scratchpad is on its stream before the first kernel that leaves less.
class ESKER_API Occupancy {
 public:
  struct Limits {
    std::uint32_t processors;
    std::uint32_t processor_scratch;  // bytes
    std::uint32_t group_scratch;      // bytes that a group may have
  };
  explicit Occupancy(const Limits& limits) : limits_{limits} {}

  struct Guest {
    std::string what;             // for a refusal: "progress kernels, which call handlers"
    std::uint32_t scratch_bytes;  // that a group takes at least, with kScratchAside
    std::uint32_t groups_held;    // that a processor with no other kernels holds at least
  };
  using GuestId = std::size_t;
  /// Launches leave it a place where the GPU has sharers.
  GuestId add_guest(Guest guest);
  /// From now on launches leave guests a place in any case, and what they leave is remembered.
  void require_guests();

  /// Processes whose kernels run on this GPU at a time, this one included. Each launch takes its part.
  void set_sharers(std::uint32_t sharers) { sharers_ = sharers; }
  /// Of so many groups that the GPU holds, those that a launch takes whose groups stay: at least one.
  std::uint64_t part_of(std::uint64_t groups) const {
    return std::max<std::uint64_t>(1, (groups - groups / kReservedPart) / sharers_);
  }
  /// Kernels run on this GPU that this broker does not plan: guests find the least.
  void expect_unplanned() { leave(0); }

  /// A launch that the library shapes: as many groups as the GPU holds, less the reserved part, and no more
  /// than `lanes` need. Lends scratchpad, up to `most_lent`, that costs no resident group; at least
  /// kLeastLent, which may cost some.
  LaunchPlan plan_resident(const KernelFacts& kernel, std::uint32_t group_lanes, std::uint64_t lanes,
                           std::uint32_t most_lent);
  static constexpr std::uint32_t kLeastLent = 8192;

  /// A launch that the user shapes, of lanes that may wait for guests. Lends so much scratchpad that guests
  /// find a place; refuses where they would find none.
  LaunchPlan plan_shaped(const KernelFacts& kernel, const LaunchShape& shape);

  /// A kernel that the user launches, in groups that get so much scratchpad beside what it declares. The user
  /// leaves guests their place (docs/reference/progress.md). Returns why no group of it fits, or "".
  std::string reserve(const KernelFacts& kernel, std::uint32_t group_lanes, std::uint32_t lent_bytes);

  /// What one start of a guest may take.
  struct Turn {
    std::uint32_t groups;
    std::uint32_t lent_bytes;
    std::unique_lock<std::mutex> lock;  // held until the guest is on its stream
  };
  /// `own_bytes` is what a group of this start takes before it is lent anything, with kScratchAside, and
  /// `least_lent` what it takes in any case. Any thread.
  Turn guest_turn(GuestId guest, bool beside_a_launch, std::uint32_t own_bytes, std::uint32_t least_lent);

  /// What is left of a group's `part` of a processor's scratchpad beside what the kernel declares, in whole
  /// KiB.
  std::uint32_t scratch_left_of(const KernelFacts& kernel, std::uint32_t part) const;

  const Limits& limits() const { return limits_; }

 private:
  static constexpr std::uint32_t kAll = ~0u;

  std::uint32_t lend(const KernelFacts& kernel, std::uint32_t group_lanes, std::uint32_t most) const;
  bool try_leave_place(const KernelFacts& kernel, const LaunchShape& shape, std::uint32_t& lent_bytes) const;
  void leave(std::uint32_t bytes);

  const Limits limits_;
  std::uint32_t sharers_ = 1;
  bool guests_are_required_ = false;
  std::vector<Guest> guests_;              // changes under mutex_
  std::mutex mutex_;                       // also a turn's
  std::atomic<std::uint32_t> left_{kAll};  // the least that a launch leaves a group of a guest; under mutex_
};

}  // namespace esker::gpu
