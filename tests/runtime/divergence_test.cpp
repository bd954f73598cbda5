// Every election in divergent kernels: random trip counts, nested branches, early exits. Each message is
// counted.
#include <cstdint>
#include <string>
#include <vector>

#include <esker/device/election/fine_grain.hpp>
#include <esker/device/election/per_lane.hpp>
#include <esker/device/election/per_wave.hpp>
#include <esker/device/election/predicated.hpp>

#include "../device/gtest.hpp"
#include "pes.hpp"
#include "seed.hpp"

namespace esker::testing {
namespace {

constexpr std::uint32_t kMostTrips = 11;
constexpr std::uint32_t kShort = 1, kLong = 1000;  // what the two kinds of message add to their counter

/// Which lanes send what, and the counters: one for each message that may be.
struct Flow {
  SymmetricArray<std::uint32_t> counters;
  std::uint64_t lanes;
  std::uint64_t stream;

  /// A fourth of the lanes send nothing at all.
  ESKER_HD std::uint32_t trips(std::uint32_t pe, std::uint64_t lane) const {
    const std::uint64_t r = random(pe, lane, kMostTrips);
    return r % 4 == 0 ? 0 : static_cast<std::uint32_t>((r >> 8) % (kMostTrips + 1));
  }
  /// In a trip: an increment, an addition, or nothing.
  ESKER_HD bool sends(std::uint32_t pe, std::uint64_t lane, std::uint32_t trip) const {
    return random(pe, lane, trip) % 5 != 0;
  }
  ESKER_HD bool is_long(std::uint32_t pe, std::uint64_t lane, std::uint32_t trip) const {
    return (random(pe, lane, trip) >> 8) % 3 == 0;
  }
  ESKER_HD std::uint32_t pe_of(std::uint32_t pe, std::uint64_t lane, std::uint32_t trip,
                               std::uint32_t n_pes) const {
    return static_cast<std::uint32_t>((random(pe, lane, trip) >> 16) % n_pes);
  }
  ESKER_HD std::uint64_t index(std::uint32_t pe, std::uint64_t lane, std::uint32_t trip) const {
    return (pe * lanes + lane) * kMostTrips + trip;
  }
  ESKER_HD std::uint64_t random(std::uint32_t pe, std::uint64_t lane, std::uint32_t number) const {
    return mix(mix(stream + pe * lanes + lane) + number);
  }

  template <class Item, class... Election>
  ESKER_HD void send_short(Item&& item, std::uint32_t trip, Election&&... election) const {
    const std::uint64_t id = item.global_id();
    shmem_inc(item, &counters[index(item.pe(), id, trip)], pe_of(item.pe(), id, trip, item.n_pes()),
              election...);
  }
  template <class Item, class... Election>
  ESKER_HD void send_long(Item&& item, std::uint32_t trip, Election&&... election) const {
    const std::uint64_t id = item.global_id();
    shmem_add(item, &counters[index(item.pe(), id, trip)], kLong, pe_of(item.pe(), id, trip, item.n_pes()),
              election...);
  }
  /// For elections that any lane calls in any branch.
  template <class Item, class... Election>
  ESKER_HD void run(Item&& item, Election... election) const {
    const std::uint64_t id = item.global_id();
    const std::uint32_t mine = trips(item.pe(), id);
    if (mine == 0) return;
    for (std::uint32_t trip = 0; trip < mine; ++trip) {
      if (!sends(item.pe(), id, trip)) continue;
      if (is_long(item.pe(), id, trip)) {
        send_long(item, trip, election...);
      } else {
        send_short(item, trip, election...);
      }
    }
  }
  /// For elections with an `active` flag, where all call both.
  template <class Election, class Item>
  ESKER_HD void run_together(Item&& item, std::uint32_t most) const {
    const std::uint64_t id = item.global_id();
    const std::uint32_t mine = trips(item.pe(), id);
    for (std::uint32_t trip = 0; trip < most; ++trip) {
      const bool active = trip < mine && sends(item.pe(), id, trip);
      const bool long_one = is_long(item.pe(), id, trip);
      send_long(item, trip, Election{active && long_one});
      send_short(item, trip, Election{active && !long_one});
    }
  }

  std::uint32_t expected(std::uint32_t at, std::uint32_t pe, std::uint64_t lane, std::uint32_t trip,
                         std::uint32_t n_pes) const {
    if (trip >= trips(pe, lane) || !sends(pe, lane, trip) || pe_of(pe, lane, trip, n_pes) != at) return 0;
    return is_long(pe, lane, trip) ? kLong : kShort;
  }
};

/// The loop and the two sides of its branch have a barrier each; who takes which is known before it is used.
struct RunFineGrain {
  struct Barriers {
    FineGrainState<> loop, longs, shorts;
  };
  Flow flow;

  ESKER_HD void operator()(GroupItem& item) const {
    Barriers& scratch = item.group_lane().scratch<Barriers>();
    FineGrainBarrier<> loop(item.group_lane(), scratch.loop), longs(item.group_lane(), scratch.longs),
        shorts(item.group_lane(), scratch.shorts);
    const std::uint64_t id = item.global_id();
    const std::uint32_t mine = flow.trips(item.pe(), id);
    if (mine > 0) loop.join();
    item.group().sync();
    if (mine == 0) return;
    for (std::uint32_t trip = 0; trip < mine; ++trip) {
      const bool sends = flow.sends(item.pe(), id, trip);
      const bool is_long = flow.is_long(item.pe(), id, trip);
      if (sends && is_long) longs.join();
      if (sends && !is_long) shorts.join();
      loop.wait();
      if (sends && is_long) {
        flow.send_long(item, trip, FineGrain<>{longs});
        longs.leave();
      }
      if (sends && !is_long) {
        flow.send_short(item, trip, FineGrain<>{shorts});
        shorts.leave();
      }
      loop.wait();
    }
    loop.leave();
  }
};

/// Collective. `launch(rt, shape, flow)` runs the flow on every lane of the shape, in several shapes.
template <class Launch>
void check_flow(Runtime& rt, Launch launch) {
  for (const auto& [lanes, group] : {std::pair{1u, 1u}, {70u, 7u}, {100u, 33u}, {130u, 64u}, kLargest}) {
    if (kIsSlow && (group == 7 || group == 64)) continue;
    const LaunchShape shape{lanes, group, rt.config().wave_lanes};
    const Flow flow{rt.heap().allocate<std::uint32_t>(std::uint64_t{lanes} * rt.n_pes() * kMostTrips), lanes,
                    seed() + lanes};
    launch(rt, shape, flow);
    rt.barrier_all();
    const std::vector<std::uint32_t> got = rt.heap().read(flow.counters);
    std::uint64_t wrong = 0;
    for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
      for (std::uint64_t lane = 0; lane < lanes; ++lane) {
        for (std::uint32_t trip = 0; trip < kMostTrips; ++trip) {
          const std::uint32_t expected = flow.expected(rt.pe(), pe, lane, trip, rt.n_pes());
          wrong += got[flow.index(pe, lane, trip)] != expected ? 1 : 0;
        }
      }
    }
    EXPECT_EQ(wrong, 0u) << lanes << " lanes in groups of " << group << ", PE " << rt.pe();
    rt.heap().free(flow.counters);
  }
}

class Divergence : public ::testing::TestWithParam<Way> {};

void run_auto(Runtime& rt, const LaunchShape& shape, const Flow& flow) {
  rt.launch_shape(shape, [=] ESKER_LAMBDA(WorkItem item) { flow.run(item); });
}
TEST_P(Divergence, SendsEachMessageOnceByItself) {
  run_pes(GetParam(), [](Runtime& rt) { check_flow(rt, run_auto); });
}

void run_auto_group(Runtime& rt, const LaunchShape& shape, const Flow& flow) {
  rt.launch_shape(shape, [=] ESKER_LAMBDA(GroupItem & item) { flow.run(item); });
}
TEST_P(Divergence, SendsEachMessageOnceAutoGrouped) {
  run_pes(GetParam(), [](Runtime& rt) { check_flow(rt, run_auto_group); });
}

void run_per_lane(Runtime& rt, const LaunchShape& shape, const Flow& flow) {
  rt.launch_shape(shape, [=] ESKER_LAMBDA(WorkItem item) { flow.run(item, PerLane{}); });
}
TEST_P(Divergence, SendsEachMessageOncePerLane) {
  run_pes(GetParam(), [](Runtime& rt) { check_flow(rt, run_per_lane); });
}

void run_per_wave(Runtime& rt, const LaunchShape& shape, const Flow& flow) {
  rt.launch_shape(shape, [=] ESKER_LAMBDA(GroupItem & item) {
    const std::uint32_t mine = flow.trips(item.pe(), item.global_id());
    flow.run_together<PerWave>(item, item.wave().reduce(mine, Max{}));
  });
}
TEST_P(Divergence, SendsEachMessageOncePerWave) {
  run_pes(GetParam(), [](Runtime& rt) { check_flow(rt, run_per_wave); });
}

void run_per_converged_wave(Runtime& rt, const LaunchShape& shape, const Flow& flow) {
  rt.launch_shape(shape, [=] ESKER_LAMBDA(GroupItem & item) { flow.run(item, PerConvergedWave{}); });
}
TEST_P(Divergence, SendsEachMessageOncePerConvergedWave) {
  run_pes(GetParam(), [](Runtime& rt) { check_flow(rt, run_per_converged_wave); });
}

void run_predicated(Runtime& rt, const LaunchShape& shape, const Flow& flow) {
  rt.launch_shape(shape, [=] ESKER_LAMBDA(GroupItem & item) {
    const std::uint32_t mine = flow.trips(item.pe(), item.global_id());
    if (mine == 0) return;  // it no longer takes part
    flow.run_together<Predicated>(item, item.group().reduce(mine, Max{}));
  });
}
TEST_P(Divergence, SendsEachMessageOncePredicated) {
  run_pes(GetParam(), [](Runtime& rt) { check_flow(rt, run_predicated); });
}

void run_fine_grain(Runtime& rt, const LaunchShape& shape, const Flow& flow) {
  rt.launch_shape(shape, RunFineGrain{flow});
}
TEST_P(Divergence, SendsEachMessageOnceFineGrain) {
  run_pes(GetParam(), [](Runtime& rt) { check_flow(rt, run_fine_grain); });
}

std::vector<Way> ways() {
  if (kOnGpu) return gpu_ways();
  return {way("a lane thread", 1, [](Config&) {}),
          way("2 lane threads", 2, [](Config& config) { config.cpu_threads = 2; }),
          way("3 lane threads", 3, [](Config& config) { config.cpu_threads = 3; })};
}
INSTANTIATE_TEST_SUITE_P(Ways, Divergence, ::testing::ValuesIn(ways()));

}  // namespace
}  // namespace esker::testing
