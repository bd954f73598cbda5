// Collectives in divergent code: software predication, and fine-grain barriers (thesis, Table 5-1b and c).
#include <cstdint>
#include <esker/device/fine_grain_barrier.hpp>
#include <vector>

#include "on_device.hpp"

namespace esker {
namespace {

using testing::random_at;
using testing::run_on_device;
using testing::SharedArray;
using testing::Way;
using testing::ways;

constexpr std::uint32_t kMaxTrips = 9;

/// Random control flow: how often a lane loops, and in which trips it takes the inner branch.
struct Flow {
  std::uint64_t seed;
  ESKER_HD std::uint32_t trips(std::uint64_t lane) const {
    return static_cast<std::uint32_t>(random_at(seed, lane, 77) % (kMaxTrips + 1));
  }
  ESKER_HD bool inner(std::uint64_t lane, std::uint32_t trip) const {
    return random_at(seed, lane, trip) % 2 == 0;
  }
  ESKER_HD std::uint64_t value(std::uint64_t lane, std::uint32_t trip) const {
    return random_at(seed, lane, trip + 200) % 1000;
  }
};

struct Trip {
  std::uint64_t sum, before, low;
};

/// Trip t: over the lanes that still loop, the sum, the sum of lower lanes, and, over those that take
/// the inner branch, the minimum.
Trip reference(const Flow& flow, std::uint64_t first, std::uint32_t size, std::uint64_t lane,
               std::uint32_t t) {
  Trip trip{0, 0, ~std::uint64_t{0}};
  for (std::uint64_t l = first; l < first + size; ++l) {
    if (flow.trips(l) <= t) continue;
    const std::uint64_t v = flow.value(l, t);
    trip.sum += v;
    if (l < lane) trip.before += v;
    if (flow.inner(l, t) && v < trip.low) trip.low = v;
  }
  return trip;
}

/// All lanes loop as often as the longest; `active` says who would be there.
struct WithPredication {
  Flow flow;
  Trip* trips;
  ESKER_HD void operator()(GroupLane& lane) const {
    const std::uint64_t id = lane.global_id();
    auto group = lane.group();
    const std::uint32_t most = group.reduce(flow.trips(id), Max{});
    for (std::uint32_t t = 0; t < most; ++t) {
      const bool active = t < flow.trips(id);
      const std::uint64_t value = flow.value(id, t);
      const Trip trip{group.reduce(value, Sum{}, active), group.prefix_sum(value, active),
                      group.reduce(value, Min{}, active && flow.inner(id, t))};
      if (active) trips[id * kMaxTrips + t] = trip;
    }
  }
};

/// Each lane loops as often as it likes and then leaves.
struct WithFineGrainBarriers {
  using Barrier = FineGrainBarrier<>;
  struct Barriers {
    FineGrainState<> loop, inner;
  };
  Flow flow;
  bool exits_early;  // lanes without a trip return before anyone joins
  Trip* trips;

  ESKER_HD void operator()(GroupLane& lane) const {
    const std::uint64_t id = lane.global_id();
    Barriers& scratch = lane.scratch<Barriers>();
    Barrier loop(lane, scratch.loop), inner(lane, scratch.inner);
    if (exits_early && flow.trips(id) == 0) return;
    loop.join();
    lane.group().sync();
    for (std::uint32_t t = 0; t < flow.trips(id); ++t) {
      const std::uint64_t value = flow.value(id, t);
      Trip trip{loop.reduce(value, Sum{}), loop.prefix_sum(value), ~std::uint64_t{0}};
      const bool takes = flow.inner(id, t);
      if (takes) inner.join();
      loop.wait();
      if (takes) trip.low = inner.reduce(value, Min{});
      if (takes) inner.leave();
      loop.wait();
      trips[id * kMaxTrips + t] = takes ? trip : Trip{trip.sum, trip.before, 0};
    }
    loop.leave();
  }
};

template <class MakeKernel>
void compare_with_reference(bool minimum_for_all, MakeKernel make_kernel) {
  for (const std::uint64_t seed : testing::kSeeds) {
    for (const Way& way : ways()) {
      SCOPED_TRACE(way.name() + ", seed " + std::to_string(seed));
      const Flow flow{seed};
      SharedArray<Trip> trips(way.shape.lanes * kMaxTrips);
      run_on_device(way, make_kernel(flow, trips.data()));
      for (std::uint64_t id = 0; id < way.shape.lanes; ++id) {
        const std::uint64_t group = id / way.shape.group_lanes, first = group * way.shape.group_lanes;
        for (std::uint32_t t = 0; t < flow.trips(id); ++t) {
          const Trip expected = reference(flow, first, way.shape.lanes_of(group), id, t);
          const Trip& got = trips[id * kMaxTrips + t];
          ASSERT_EQ(got.sum, expected.sum) << "lane " << id << " trip " << t;
          ASSERT_EQ(got.before, expected.before) << "lane " << id << " trip " << t;
          if (minimum_for_all || flow.inner(id, t)) {
            ASSERT_EQ(got.low, expected.low) << "lane " << id << " trip " << t;
          }
        }
      }
    }
  }
}

TEST(DivergedCollectives, MatchTheReferenceWithPredication) {
  compare_with_reference(true, [](const Flow& flow, Trip* trips) { return WithPredication{flow, trips}; });
}

TEST(DivergedCollectives, MatchTheReferenceWithFineGrainBarriers) {
  compare_with_reference(false, [](const Flow& flow, Trip* trips) {
    return WithFineGrainBarriers{flow, false, trips};
  });
}

TEST(DivergedCollectives, MatchTheReferenceWhenLanesReturnBeforeTheyJoin) {
  compare_with_reference(false, [](const Flow& flow, Trip* trips) {
    return WithFineGrainBarriers{flow, true, trips};
  });
}

/// Lanes leave while others wait: the last to leave lets them go on. Nobody is left behind.
struct LeaveWhileOthersWait {
  std::uint64_t* waits;
  ESKER_HD void operator()(GroupLane& lane) const {
    FineGrainBarrier<> barrier(lane, lane.scratch<FineGrainState<>>());
    barrier.join();
    lane.group().sync();
    const std::uint32_t trips = lane.lane() % 5;
    for (std::uint32_t t = 0; t < trips; ++t) {
      barrier.wait();
      ++waits[lane.global_id()];
    }
    barrier.leave();
  }
};

TEST(FineGrainBarrier, LetsMembersGoOnWhenTheOthersLeave) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name());
    SharedArray<std::uint64_t> waits(way.shape.lanes);
    run_on_device(way, LeaveWhileOthersWait{waits.data()});
    for (std::uint64_t id = 0; id < way.shape.lanes; ++id) {
      ASSERT_EQ(waits[id], id % way.shape.group_lanes % 5);
    }
  }
}

}  // namespace
}  // namespace esker
