// Collectives of waves and groups against a lane-by-lane reference.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "on_device.hpp"

namespace esker {
namespace {

using testing::random_at;
using testing::run_on_device;
using testing::SharedArray;
using testing::Way;
using testing::ways;

constexpr std::uint32_t kRounds = 24;

/// What lane `lane` does in round `round`: the kernel and the reference both ask.
struct Plan {
  std::uint64_t seed;

  /// Lanes end at different rounds, some before the first; at least one of a wave of 4 stays.
  ESKER_HD std::uint32_t rounds(std::uint64_t lane) const {
    const std::uint64_t r = random_at(seed, lane, 1000);
    return lane % 4 == 0 || r % 3 != 0 ? kRounds : static_cast<std::uint32_t>(r / 3 % kRounds);
  }
  ESKER_HD std::uint64_t value(std::uint64_t lane, std::uint32_t round) const {
    return random_at(seed, lane, round);
  }
  ESKER_HD bool active(std::uint64_t lane, std::uint32_t round) const {
    const std::uint64_t r = random_at(seed, lane, round + 500);
    return round % 8 == 7 ? false : r % 3 != 0;  // also rounds without any active lane
  }
};

struct Result {
  std::uint64_t value;
  Position position;
};

template <class View>
ESKER_HD Result run_round(View view, const Plan& plan, std::uint64_t lane, std::uint32_t round) {
  const std::uint64_t value = plan.value(lane, round);
  const bool active = plan.active(lane, round);
  switch (round % 12) {
    case 0:
      return {0, view.position_among(active)};
    case 1:
      return {view.prefix_sum(value, active), {}};
    case 2:
      return {view.reduce(value, Sum{}, active), {}};
    case 3:
      return {view.reduce(value, Min{}, active), {}};
    case 4:
      return {view.reduce(value, Max{}, active), {}};
    case 5:
      return {view.reduce(value, And{}, active), {}};
    case 6:
      return {view.reduce(value, Or{}, active), {}};
    case 7:
      return {static_cast<std::uint64_t>(view.prefix_sum(static_cast<std::uint32_t>(value), active)), {}};
    case 8:
      return {static_cast<std::uint64_t>(view.reduce(static_cast<int>(value), Min{}, active)), {}};
    case 9:
      return {static_cast<std::uint64_t>(view.reduce(static_cast<float>(value % 1000), Max{}, active) == 0),
              {}};
    case 10: {
      const Position live = view.position_among(true);
      return {view.broadcast(value, live.last), live};
    }
    default:
      view.sync();
      return {view.index(), {view.size(), 0, 0}};
  }
}

/// The same over lanes [first, first + size), those that are live in this round.
Result reference(const Plan& plan, std::uint64_t first, std::uint32_t size, std::uint64_t lane,
                 std::uint32_t round) {
  std::vector<std::uint64_t> on;  // active lanes
  std::uint64_t last_live = first;
  Position live{0, 0, 0}, raised{0, 0, 0};
  std::uint64_t before = 0, sum = 0, low = ~std::uint64_t{0}, high = 0, all = ~std::uint64_t{0}, any = 0;
  std::uint32_t before32 = 0;
  int low_int = std::numeric_limits<int>::max();
  float high_float = -std::numeric_limits<float>::infinity();
  for (std::uint64_t l = first; l < first + size; ++l) {
    if (plan.rounds(l) <= round) continue;
    const auto index = static_cast<std::uint32_t>(l - first);
    live.index += l < lane;
    ++live.total;
    live.last = index;
    last_live = l;
    if (!plan.active(l, round)) continue;
    const std::uint64_t v = plan.value(l, round);
    raised.index += l < lane;
    ++raised.total;
    raised.last = index;
    if (l < lane) before += v;
    if (l < lane) before32 += static_cast<std::uint32_t>(v);
    sum += v;
    low = std::min(low, v);
    high = std::max(high, v);
    all &= v;
    any |= v;
    low_int = std::min(low_int, static_cast<int>(v));
    high_float = std::max(high_float, static_cast<float>(v % 1000));
  }
  switch (round % 12) {
    case 0:
      return {0, raised};
    case 1:
      return {before, {}};
    case 2:
      return {sum, {}};
    case 3:
      return {low, {}};
    case 4:
      return {high, {}};
    case 5:
      return {all, {}};
    case 6:
      return {any, {}};
    case 7:
      return {before32, {}};
    case 8:
      return {static_cast<std::uint64_t>(low_int), {}};
    case 9:
      return {high_float == 0, {}};
    case 10:
      return {plan.value(last_live, round), live};
    default:
      return {lane - first, {size, 0, 0}};
  }
}

struct Collectives {
  Plan plan;
  bool by_wave;
  Result* results;  // [lane][round]

  ESKER_HD void operator()(GroupLane& lane) const {
    const std::uint64_t id = lane.global_id();
    for (std::uint32_t round = 0; round < plan.rounds(id); ++round) {
      results[id * kRounds + round] =
          by_wave ? run_round(lane.wave(), plan, id, round) : run_round(lane.group(), plan, id, round);
    }
  }
};

void compare_with_reference(bool by_wave) {
  for (const std::uint64_t seed : testing::kSeeds) {
    for (const Way& way : ways()) {
      SCOPED_TRACE(way.name() + ", seed " + std::to_string(seed));
      const Plan plan{seed};
      SharedArray<Result> results(way.shape.lanes * kRounds);
      run_on_device(way, Collectives{plan, by_wave, results.data()});
      for (std::uint64_t lane = 0; lane < way.shape.lanes; ++lane) {
        const std::uint64_t group = lane / way.shape.group_lanes, group_first = group * way.shape.group_lanes;
        std::uint64_t first = group_first;
        std::uint32_t size = way.shape.lanes_of(group);
        if (by_wave) {
          first += (lane - group_first) / way.shape.wave_lanes * way.shape.wave_lanes;
          size = static_cast<std::uint32_t>(
              std::min<std::uint64_t>(way.shape.wave_lanes, group_first + size - first));
        }
        for (std::uint32_t round = 0; round < plan.rounds(lane); ++round) {
          const Result expected = reference(plan, first, size, lane, round);
          const Result& got = results[lane * kRounds + round];
          ASSERT_EQ(got.value, expected.value) << "lane " << lane << " round " << round;
          ASSERT_EQ(got.position.index, expected.position.index) << "lane " << lane << " round " << round;
          ASSERT_EQ(got.position.total, expected.position.total) << "lane " << lane << " round " << round;
          ASSERT_EQ(got.position.last, expected.position.last) << "lane " << lane << " round " << round;
        }
      }
    }
  }
}

TEST(Wave, CollectivesMatchALaneByLaneReference) { compare_with_reference(true); }
TEST(Group, CollectivesMatchALaneByLaneReference) { compare_with_reference(false); }

struct Placement {
  std::uint64_t* seen;  // [global id][field]
  ESKER_HD void operator()(Lane lane) const {
    std::uint64_t* mine = seen + lane.global_id() * 4;
    mine[0] += 1;
    mine[1] = lane.group_id();
    mine[2] = lane.lane();
    mine[3] = lane.lanes() * 1000 + lane.group_lanes();
  }
};

TEST(Lane, EachRunsOnceAndKnowsItsPlace) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name());
    SharedArray<std::uint64_t> seen(way.shape.lanes * 4);
    run_on_device(way, Placement{seen.data()});
    for (std::uint64_t id = 0; id < way.shape.lanes; ++id) {
      const std::uint64_t group = id / way.shape.group_lanes;
      ASSERT_EQ(seen[id * 4], 1u);
      ASSERT_EQ(seen[id * 4 + 1], group);
      ASSERT_EQ(seen[id * 4 + 2], id % way.shape.group_lanes);
      ASSERT_EQ(seen[id * 4 + 3], way.shape.lanes * 1000 + way.shape.lanes_of(group));
    }
  }
}

struct ScratchCounter {
  struct Shared {
    std::uint64_t values[256];
  };
  std::uint64_t* sums;  // a lane
  ESKER_HD void operator()(GroupLane& lane) const {
    Shared& shared = lane.scratch<Shared>();
    shared.values[lane.lane()] += lane.lane() + 1;
    lane.group().sync();
    std::uint64_t sum = 0;
    for (std::uint32_t l = 0; l < lane.group_lanes(); ++l) sum += shared.values[l];
    sums[lane.global_id()] = sum;
  }
};

TEST(Scratch, IsZeroedForEachGroupAndSharedByItsLanes) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name());
    SharedArray<std::uint64_t> sums(way.shape.lanes);
    run_on_device(way, ScratchCounter{sums.data()});
    for (std::uint64_t id = 0; id < way.shape.lanes; ++id) {
      const std::uint64_t n = way.shape.lanes_of(id / way.shape.group_lanes);
      ASSERT_EQ(sums[id], n * (n + 1) / 2);
    }
  }
}

}  // namespace
}  // namespace esker
