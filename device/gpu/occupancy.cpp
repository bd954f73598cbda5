// Which kernels fit on a GPU side by side.
#include <esker/device/gpu/occupancy.hpp>

#include <algorithm>
#include <utility>

namespace esker::gpu {
namespace {

// A device gives scratchpad out in units, of 128 bytes on CUDA's and 512 on AMD's: the most that a group of
// so many bytes takes. The least is what it asks for.
constexpr std::uint32_t in_scratch_units(std::uint32_t bytes) {
  constexpr std::uint32_t kUnit = 512;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

}  // namespace

Occupancy::GuestId Occupancy::add_guest(Guest guest) {
  const std::lock_guard lock(mutex_);
  guests_.push_back(std::move(guest));
  return guests_.size() - 1;
}

void Occupancy::require_guests() { guests_are_required_ = true; }

std::uint32_t Occupancy::scratch_left_of(const KernelFacts& kernel, std::uint32_t part) const {
  const std::uint32_t declared = in_scratch_units(kernel.declared_scratch() + kScratchAside);
  part = std::min(part, limits_.group_scratch + kScratchAside);
  return part <= declared ? 0 : (part - declared) / 1024 * 1024;
}

std::uint32_t Occupancy::lend(const KernelFacts& kernel, std::uint32_t group_lanes,
                              std::uint32_t most) const {
  const std::uint32_t groups = kernel.groups_a_processor(group_lanes, 0);
  const std::uint32_t free = groups == 0 ? 0 : scratch_left_of(kernel, limits_.processor_scratch / groups);
  const std::uint32_t bytes = std::min(std::max(free, kLeastLent), most);
  (void)kernel.allow_scratch(bytes);  // where it is refused, the launch says so
  return bytes;
}

LaunchPlan Occupancy::plan_resident(const KernelFacts& kernel, std::uint32_t group_lanes, std::uint64_t lanes,
                                    std::uint32_t most_lent) {
  LaunchPlan plan;
  plan.lent_bytes = lend(kernel, group_lanes, most_lent);
  const std::uint64_t held = std::max<std::uint64_t>(
      1, std::uint64_t{limits_.processors} * kernel.groups_a_processor(group_lanes, plan.lent_bytes));
  const std::uint64_t part = part_of(held);
  plan.groups = std::min(part, (lanes + group_lanes - 1) / group_lanes);
  // A guest's group finds at least what one of these would take.
  if (guests_are_required_) leave(kernel.declared_scratch() + kScratchAside + plan.lent_bytes);
  return plan;
}

// A processor that holds k groups of the kernel, and G of guests, alone, has room for k (1 - 1 / G) and one:
// of no resource does a group of either take more than its k-th, or G-th, part. Scratchpad keeps more out.
bool Occupancy::try_leave_place(const KernelFacts& kernel, const LaunchShape& shape,
                                std::uint32_t& lent_bytes) const {
  std::uint32_t guest = 0, held = kGroupsHeld;
  for (const Guest& each : guests_) {
    guest += in_scratch_units(each.scratch_bytes);
    held = std::min(held, each.groups_held);
  }
  const std::uint32_t all = limits_.processor_scratch;
  if (guest == 0) return true;
  if (all < 2 * guest) return false;
  const std::uint32_t fit = kernel.groups_a_processor(shape.group_lanes, 0) * (held - 1) / held;
  std::uint32_t groups = std::min(fit, all / guest - 1);
  const std::uint64_t processors = limits_.processors;
  const std::uint64_t launched = shape.groups() * sharers_;
  if (groups == 0) return launched <= processors - processors / kReservedPart;
  if (launched <= groups * processors) return true;
  const std::uint32_t declared = kernel.declared_scratch() + kScratchAside;
  const auto give = [&] { lent_bytes = scratch_left_of(kernel, (all - guest) / groups); };
  // In whole KiB it may be so little that one more finds room, if the device gives it no more than it asks
  // for.
  for (give(); groups > 1 && (groups + 1) * (declared + lent_bytes) <= all; give()) --groups;
  return lent_bytes == 0 || kernel.allow_scratch(lent_bytes);  // 0: what it declares keeps more out
}

LaunchPlan Occupancy::plan_shaped(const KernelFacts& kernel, const LaunchShape& shape) {
  LaunchPlan plan;
  plan.groups = shape.groups();
  if ((guests_are_required_ || sharers_ > 1) && !try_leave_place(kernel, shape, plan.lent_bytes)) {
    std::string who;
    for (const Guest& guest : guests_) who += (who.empty() ? "" : "; ") + guest.what;
    plan.refusal = "groups of " + std::to_string(shape.group_lanes) +
                   " lanes fill the GPU's processors, and " + who +
                   ", find no place beside them: launch smaller groups, or fewer lanes at a time";
    return plan;
  }
  if (guests_are_required_) leave(0);
  return plan;
}

std::string Occupancy::reserve(const KernelFacts& kernel, std::uint32_t group_lanes,
                               std::uint32_t lent_bytes) {
  const bool fits = group_lanes > 0 && group_lanes <= 1024 && kernel.allow_scratch(lent_bytes) &&
                    kernel.groups_a_processor(group_lanes, lent_bytes) > 0;
  if (!fits) {
    return "a processor holds no group of " + std::to_string(group_lanes) + " lanes with " +
           std::to_string(lent_bytes) + " bytes of scratchpad beside the " +
           std::to_string(kernel.declared_scratch()) + " that the kernel declares";
  }
  leave(0);  // its owner shapes the launch, so the least is what guests can count on
  return "";
}

void Occupancy::leave(std::uint32_t bytes) {
  if (bytes >= left_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  left_.store(bytes, std::memory_order_relaxed);
}

Occupancy::Turn Occupancy::guest_turn(GuestId guest, bool beside_a_launch, std::uint32_t own_bytes,
                                      std::uint32_t least_lent) {
  Turn turn{limits_.processors, least_lent, std::unique_lock(mutex_)};
  if (!beside_a_launch) return turn;
  // As many as find room there: others would begin when these have ended.
  turn.groups = std::max(1u, limits_.processors * guests_[guest].groups_held / kReservedPart);
  const std::uint32_t left = left_.load(std::memory_order_relaxed);
  if (left != kAll && left > own_bytes + least_lent) turn.lent_bytes = left - own_bytes;
  return turn;
}

}  // namespace esker::gpu
