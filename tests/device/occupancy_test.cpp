// The broker's numbers, for GPUs and kernels that are made up. A table's rows are what launches came to
// before the broker was one object.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <esker/device/gpu/occupancy.hpp>
#include <string>
#include <thread>
#include <utility>

namespace esker::testing {
namespace {

using gpu::Occupancy;

constexpr std::uint32_t kRegisters = 65536, kMostLanes = 2048, kMostGroups = 32;  // of a processor

constexpr Occupancy::Limits kH100{132, 228 << 10, 227 << 10};
constexpr Occupancy::Limits kSmall{80, 64 << 10, 48 << 10};
constexpr Occupancy::Limits kTiny{2, 228 << 10, 227 << 10};

class FakeKernel final : public gpu::KernelFacts {
 public:
  FakeKernel(const Occupancy::Limits& limits, std::uint32_t declared, std::uint32_t lane_registers)
      : limits_{limits}, declared_{declared}, lane_registers_{lane_registers} {}
  std::uint32_t declared_scratch() const override { return declared_; }
  std::uint32_t groups_a_processor(std::uint32_t group_lanes, std::uint32_t lent_bytes) const override {
    return std::min({kRegisters / (lane_registers_ * group_lanes), kMostLanes / group_lanes,
                     limits_.processor_scratch / (declared_ + gpu::kScratchAside + lent_bytes), kMostGroups});
  }
  bool allow_scratch(std::uint32_t bytes) const override {
    return bytes + declared_ <= limits_.group_scratch;
  }

 private:
  Occupancy::Limits limits_;
  std::uint32_t declared_, lane_registers_;
};

constexpr std::uint32_t kGuestBytes = 31 << 10;  // with what it is lent at least
constexpr std::uint32_t kPlainBytes = 22 << 10, kLeastLent = 10 << 10;
Occupancy::Guest guest() {
  return {"progress kernels, which serve other PEs", kGuestBytes, gpu::kGroupsHeld};
}

TEST(Occupancy, ShapesResidentLaunches) {
  struct Row {
    Occupancy::Limits limits;
    std::uint32_t declared, most_lent;
    std::uint64_t lanes;
    std::uint32_t sharers;
    std::uint64_t groups;      // expected
    std::uint32_t lent, left;  // expected
  };
  const Row rows[] = {
      {kH100, 3000, 1024, 1000, 3, 4, 1024, 5048},
      {kH100, 3000, 1024, 1073741824, 1, 347, 1024, 5048},
      {kH100, 3000, 1024, 1073741824, 3, 115, 1024, 5048},
      {kH100, 3000, 57344, 1073741824, 1, 347, 57344, 61368},
      {kH100, 3000, 57344, 1073741824, 3, 115, 57344, 61368},
      {kH100, 20000, 1024, 1000, 3, 4, 1024, 22048},
      {kH100, 20000, 1024, 1073741824, 1, 347, 1024, 22048},
      {kH100, 20000, 1024, 1073741824, 3, 115, 1024, 22048},
      {kH100, 20000, 57344, 1073741824, 1, 347, 56320, 77344},
      {kH100, 20000, 57344, 1073741824, 3, 115, 56320, 77344},
      {kSmall, 3000, 1024, 1000, 3, 4, 1024, 5048},
      {kSmall, 3000, 1024, 1073741824, 1, 210, 1024, 5048},
      {kSmall, 3000, 1024, 1073741824, 3, 70, 1024, 5048},
      {kSmall, 3000, 57344, 1073741824, 1, 210, 17408, 21432},
      {kSmall, 3000, 57344, 1073741824, 3, 70, 17408, 21432},
      {kSmall, 20000, 1024, 1000, 3, 4, 1024, 22048},
      {kSmall, 20000, 1024, 1073741824, 1, 140, 1024, 22048},
      {kSmall, 20000, 1024, 1073741824, 3, 46, 1024, 22048},
      {kSmall, 20000, 57344, 1073741824, 1, 140, 8192, 29216},
      {kSmall, 20000, 57344, 1073741824, 3, 46, 8192, 29216},
      {kTiny, 3000, 1024, 1000, 3, 2, 1024, 5048},
      {kTiny, 3000, 1024, 1073741824, 1, 6, 1024, 5048},
      {kTiny, 3000, 1024, 1073741824, 3, 2, 1024, 5048},
      {kTiny, 3000, 57344, 1073741824, 1, 6, 57344, 61368},
      {kTiny, 3000, 57344, 1073741824, 3, 2, 57344, 61368},
      {kTiny, 20000, 1024, 1000, 3, 2, 1024, 22048},
      {kTiny, 20000, 1024, 1073741824, 1, 6, 1024, 22048},
      {kTiny, 20000, 1024, 1073741824, 3, 2, 1024, 22048},
      {kTiny, 20000, 57344, 1073741824, 1, 6, 56320, 77344},
      {kTiny, 20000, 57344, 1073741824, 3, 2, 56320, 77344},
  };
  for (const Row& row : rows) {
    Occupancy occupancy(row.limits);
    const auto id = occupancy.add_guest(guest());
    occupancy.require_guests();
    occupancy.set_sharers(row.sharers);
    const FakeKernel kernel(row.limits, row.declared, 80);
    const gpu::LaunchPlan plan = occupancy.plan_resident(kernel, 256, row.lanes, row.most_lent);
    const auto where = ::testing::Message() << "row " << &row - rows;
    EXPECT_EQ(plan.refusal, "") << where;
    EXPECT_EQ(plan.groups, row.groups) << where;
    EXPECT_EQ(plan.lent_bytes, row.lent) << where;
    const bool is_more = row.left > kPlainBytes + kLeastLent;
    EXPECT_EQ(occupancy.guest_turn(id, true, kPlainBytes, kLeastLent).lent_bytes,
              is_more ? row.left - kPlainBytes : kLeastLent)
        << where;
  }
}

TEST(Occupancy, LeavesGuestsAPlaceBesideLaunchesThatTheUserShapes) {
  struct Row {
    Occupancy::Limits limits;
    std::uint32_t declared, lane_registers, group_lanes;
    std::uint64_t groups;
    std::uint32_t sharers;
    bool fits;           // expected
    std::uint32_t lent;  // expected
  };
  const Row rows[] = {
      {kH100, 3000, 32, 64, 100000, 1, true, 35840},
      {kH100, 3000, 32, 256, 100000, 1, true, 35840},
      {kH100, 3000, 32, 1024, 2, 1, true, 0},
      {kH100, 3000, 32, 1024, 2, 4, true, 0},
      {kH100, 3000, 32, 1024, 100, 4, true, 197632},
      {kH100, 3000, 32, 1024, 100000, 1, true, 197632},
      {kH100, 3000, 64, 64, 100000, 1, true, 35840},
      {kH100, 3000, 64, 256, 100, 4, true, 96256},
      {kH100, 3000, 64, 256, 100000, 1, true, 96256},
      {kH100, 3000, 64, 1024, 2, 1, true, 0},
      {kH100, 3000, 64, 1024, 2, 4, true, 0},
      {kH100, 3000, 64, 1024, 100, 4, false, 0},
      {kH100, 3000, 64, 1024, 100000, 1, false, 0},
      {kH100, 20000, 32, 64, 100000, 1, true, 18432},
      {kH100, 20000, 32, 256, 100000, 1, true, 18432},
      {kH100, 20000, 32, 1024, 2, 1, true, 0},
      {kH100, 20000, 32, 1024, 2, 4, true, 0},
      {kH100, 20000, 32, 1024, 100, 4, true, 180224},
      {kH100, 20000, 32, 1024, 100000, 1, true, 180224},
      {kH100, 20000, 64, 64, 100000, 1, true, 18432},
      {kH100, 20000, 64, 256, 100, 4, true, 78848},
      {kH100, 20000, 64, 256, 100000, 1, true, 78848},
      {kH100, 20000, 64, 1024, 2, 1, true, 0},
      {kH100, 20000, 64, 1024, 2, 4, true, 0},
      {kH100, 20000, 64, 1024, 100, 4, false, 0},
      {kH100, 20000, 64, 1024, 100000, 1, false, 0},
      {kSmall, 3000, 32, 64, 100, 4, true, 29696},
      {kSmall, 3000, 32, 64, 100000, 1, true, 29696},
      {kSmall, 3000, 32, 256, 100, 4, true, 29696},
      {kSmall, 3000, 32, 256, 100000, 1, true, 29696},
      {kSmall, 3000, 32, 1024, 2, 1, true, 0},
      {kSmall, 3000, 32, 1024, 2, 4, true, 0},
      {kSmall, 3000, 32, 1024, 100, 4, true, 29696},
      {kSmall, 3000, 32, 1024, 100000, 1, true, 29696},
      {kSmall, 3000, 64, 64, 100, 4, true, 29696},
      {kSmall, 3000, 64, 64, 100000, 1, true, 29696},
      {kSmall, 3000, 64, 256, 100, 4, true, 29696},
      {kSmall, 3000, 64, 256, 100000, 1, true, 29696},
      {kSmall, 3000, 64, 1024, 2, 1, true, 0},
      {kSmall, 3000, 64, 1024, 2, 4, true, 0},
      {kSmall, 3000, 64, 1024, 100, 1, false, 0},
      {kSmall, 3000, 64, 1024, 100, 4, false, 0},
      {kSmall, 3000, 64, 1024, 100000, 1, false, 0},
      {kSmall, 20000, 32, 64, 100, 4, true, 12288},
      {kSmall, 20000, 32, 64, 100000, 1, true, 12288},
      {kSmall, 20000, 32, 256, 100, 4, true, 12288},
      {kSmall, 20000, 32, 256, 100000, 1, true, 12288},
      {kSmall, 20000, 32, 1024, 2, 1, true, 0},
      {kSmall, 20000, 32, 1024, 2, 4, true, 0},
      {kSmall, 20000, 32, 1024, 100, 4, true, 12288},
      {kSmall, 20000, 32, 1024, 100000, 1, true, 12288},
      {kSmall, 20000, 64, 64, 100, 4, true, 12288},
      {kSmall, 20000, 64, 64, 100000, 1, true, 12288},
      {kSmall, 20000, 64, 256, 100, 4, true, 12288},
      {kSmall, 20000, 64, 256, 100000, 1, true, 12288},
      {kSmall, 20000, 64, 1024, 2, 1, true, 0},
      {kSmall, 20000, 64, 1024, 2, 4, true, 0},
      {kSmall, 20000, 64, 1024, 100, 1, false, 0},
      {kSmall, 20000, 64, 1024, 100, 4, false, 0},
      {kSmall, 20000, 64, 1024, 100000, 1, false, 0},
      {kTiny, 3000, 32, 64, 100, 4, true, 35840},
      {kTiny, 3000, 32, 64, 100000, 1, true, 35840},
      {kTiny, 3000, 32, 256, 100, 4, true, 35840},
      {kTiny, 3000, 32, 256, 100000, 1, true, 35840},
      {kTiny, 3000, 32, 1024, 2, 1, true, 0},
      {kTiny, 3000, 32, 1024, 2, 4, true, 197632},
      {kTiny, 3000, 32, 1024, 100, 4, true, 197632},
      {kTiny, 3000, 32, 1024, 100000, 1, true, 197632},
      {kTiny, 3000, 64, 64, 100, 4, true, 35840},
      {kTiny, 3000, 64, 64, 100000, 1, true, 35840},
      {kTiny, 3000, 64, 256, 100, 4, true, 96256},
      {kTiny, 3000, 64, 256, 100000, 1, true, 96256},
      {kTiny, 3000, 64, 1024, 2, 1, true, 0},
      {kTiny, 3000, 64, 1024, 2, 4, false, 0},
      {kTiny, 3000, 64, 1024, 100, 1, false, 0},
      {kTiny, 3000, 64, 1024, 100, 4, false, 0},
      {kTiny, 3000, 64, 1024, 100000, 1, false, 0},
      {kTiny, 20000, 32, 64, 100, 4, true, 18432},
      {kTiny, 20000, 32, 64, 100000, 1, true, 18432},
      {kTiny, 20000, 32, 256, 100, 4, true, 18432},
      {kTiny, 20000, 32, 256, 100000, 1, true, 18432},
      {kTiny, 20000, 32, 1024, 2, 1, true, 0},
      {kTiny, 20000, 32, 1024, 2, 4, true, 180224},
      {kTiny, 20000, 32, 1024, 100, 4, true, 180224},
      {kTiny, 20000, 32, 1024, 100000, 1, true, 180224},
      {kTiny, 20000, 64, 64, 100, 4, true, 18432},
      {kTiny, 20000, 64, 64, 100000, 1, true, 18432},
      {kTiny, 20000, 64, 256, 100, 4, true, 78848},
      {kTiny, 20000, 64, 256, 100000, 1, true, 78848},
      {kTiny, 20000, 64, 1024, 2, 1, true, 0},
      {kTiny, 20000, 64, 1024, 2, 4, false, 0},
      {kTiny, 20000, 64, 1024, 100, 1, false, 0},
      {kTiny, 20000, 64, 1024, 100, 4, false, 0},
      {kTiny, 20000, 64, 1024, 100000, 1, false, 0},
  };
  for (const Row& row : rows) {
    Occupancy occupancy(row.limits);
    const auto id = occupancy.add_guest(guest());
    occupancy.require_guests();
    occupancy.set_sharers(row.sharers);
    const FakeKernel kernel(row.limits, row.declared, row.lane_registers);
    const gpu::LaunchPlan plan =
        occupancy.plan_shaped(kernel, {row.groups * row.group_lanes, row.group_lanes});
    const auto where = ::testing::Message() << "row " << &row - rows;
    EXPECT_EQ(plan.refusal.empty(), row.fits) << where << ": " << plan.refusal;
    if (!row.fits) continue;
    EXPECT_EQ(plan.groups, row.groups) << where;
    EXPECT_EQ(plan.lent_bytes, row.lent) << where;
    EXPECT_EQ(occupancy.guest_turn(id, true, kPlainBytes, kLeastLent).lent_bytes, kLeastLent) << where;
  }
}

TEST(Occupancy, LeavesNothingUntilSomebodyNeedsIt) {
  Occupancy occupancy(kH100);
  const FakeKernel kernel(kH100, 3000, 32);
  const LaunchShape shape{100'000 * 256, 256};
  EXPECT_EQ(occupancy.plan_shaped(kernel, shape).lent_bytes, 0u);
  (void)occupancy.add_guest(guest());
  EXPECT_EQ(occupancy.plan_shaped(kernel, shape).lent_bytes, 0u);
  occupancy.set_sharers(2);  // others' messages are applied beside these lanes
  EXPECT_GT(occupancy.plan_shaped(kernel, shape).lent_bytes, 0u);
}

TEST(Occupancy, RefusesWithTheReason) {
  Occupancy occupancy(kSmall);
  (void)occupancy.add_guest(guest());
  occupancy.require_guests();
  const std::string refusal =
      occupancy.plan_shaped(FakeKernel(kSmall, 3000, 64), {1024 * 1000, 1024}).refusal;
  EXPECT_NE(refusal.find("groups of 1024 lanes"), std::string::npos) << refusal;
  EXPECT_NE(refusal.find("progress kernels, which serve other PEs, find no place"), std::string::npos)
      << refusal;
}

TEST(Occupancy, RemembersTheLeastGenerousLaunch) {
  Occupancy occupancy(kH100);
  const auto id = occupancy.add_guest(guest());
  const FakeKernel kernel(kH100, 3000, 80);
  const auto lent = [&](bool beside) {
    return occupancy.guest_turn(id, beside, kPlainBytes, kLeastLent).lent_bytes;
  };
  (void)occupancy.plan_resident(kernel, 256, 1 << 30, 16 << 10);
  EXPECT_EQ(lent(true), kLeastLent);  // it was launched before anybody needed a place
  occupancy.require_guests();
  (void)occupancy.plan_resident(kernel, 256, 1 << 30, 56 << 10);
  EXPECT_EQ(lent(true), 3000 + 1024 + (56 << 10) - kPlainBytes);
  (void)occupancy.plan_resident(kernel, 256, 1 << 30, 40 << 10);
  EXPECT_EQ(lent(true), 3000 + 1024 + (40 << 10) - kPlainBytes);
  (void)occupancy.plan_resident(kernel, 256, 1 << 30, 56 << 10);
  EXPECT_EQ(lent(true), 3000 + 1024 + (40 << 10) - kPlainBytes);
  EXPECT_EQ(lent(false), kLeastLent);  // a kernel that nobody has planned might run
  EXPECT_EQ(occupancy.reserve(kernel, 256, 0), "");
  EXPECT_EQ(lent(true), kLeastLent);
}

TEST(Occupancy, GivesGuestsTheReservedPartBesideALaunchAndTheGpuAlone) {
  for (const auto& [limits, beside] : {std::pair{kH100, 49u}, {kSmall, 30u}, {kTiny, 1u}}) {
    Occupancy occupancy(limits);
    const auto id = occupancy.add_guest(guest());
    EXPECT_EQ(occupancy.guest_turn(id, true, kPlainBytes, kLeastLent).groups, beside);
    EXPECT_EQ(occupancy.guest_turn(id, false, kPlainBytes, kLeastLent).groups, limits.processors);
  }
}

TEST(Occupancy, SaysWhichReservationFitsNowhere) {
  Occupancy occupancy(kSmall);
  EXPECT_EQ(occupancy.reserve(FakeKernel(kSmall, 3000, 64), 1024, 0), "");
  for (const auto& [lanes, lent] : {std::pair{1024u, 46u << 10}, {0u, 0u}, {2048u, 0u}}) {
    const std::string refusal = occupancy.reserve(FakeKernel(kSmall, 3000, 64), lanes, lent);
    EXPECT_NE(refusal.find(std::to_string(lanes) + " lanes"), std::string::npos) << refusal;
  }
}

TEST(Occupancy, ALaunchThatLeavesLessWaitsForATurn) {
  Occupancy occupancy(kH100);
  const auto id = occupancy.add_guest(guest());
  occupancy.require_guests();
  const FakeKernel kernel(kH100, 3000, 80);
  (void)occupancy.plan_resident(kernel, 256, 1 << 30, 56 << 10);
  std::atomic<bool> is_planned{false};
  std::thread launcher;
  {
    const auto turn = occupancy.guest_turn(id, true, kPlainBytes, kLeastLent);
    launcher = std::thread([&] {
      (void)occupancy.plan_shaped(kernel, {256, 256});
      is_planned.store(true);
    });
    std::this_thread::yield();
    EXPECT_FALSE(is_planned.load());
  }
  launcher.join();
  EXPECT_TRUE(is_planned.load());
}

}  // namespace
}  // namespace esker::testing
