// Kernels that send, over loopback: elections, divergence, lane threads, shapes.
#include "kernels.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <vector>

#include <esker/aggregator/wire.hpp>
#include <esker/device/device.hpp>

#include "pes.hpp"

namespace esker::testing {
namespace {

std::vector<Way> executions() {
  if (kOnGpu) return gpu_ways();
  const auto execution = [](std::uint32_t n_pes, std::uint32_t lane_threads, GroupExecution group) {
    return way(std::to_string(lane_threads) + " lane threads" +
                   (group == GroupExecution::kThreads ? ", a thread a lane" : ""),
               n_pes, [=](Config& config) {
                 config.cpu_threads = lane_threads;
                 config.group_execution = group;
               });
  };
  return {execution(1, 1, GroupExecution::kFibers), execution(2, 2, GroupExecution::kFibers),
          execution(3, 3, GroupExecution::kFibers), execution(2, 1, GroupExecution::kThreads)};
}

/// With a last group that is not full; a thread a lane is slow to start.
std::uint64_t lanes_of(const Way& way) {
  if (kOnGpu) return kSimulated ? 501 : 3001;
  return way.config.group_execution == GroupExecution::kThreads ? 75 : kIsSlow ? 150 : 500;
}

class Kernel : public ::testing::TestWithParam<Way> {
 protected:
  template <class Check>
  void run(Check check) {
    run_pes(GetParam(), [&](Runtime& rt) { check(rt, lanes_of(GetParam())); });
  }
};

TEST_P(Kernel, EveryElectionSendsEachMessageOnce) { run(check_elections); }

TEST_P(Kernel, SendsFromNestedBranchesLoopsAndLanesThatReturnEarly) { run(check_divergence); }

TEST_P(Kernel, AlternatesBetweenCommands) { run(check_interleaved_commands); }

INSTANTIATE_TEST_SUITE_P(Executions, Kernel, ::testing::ValuesIn(executions()));

void launch_no_lanes(Runtime& rt) {
  const auto ran = rt.heap().allocate<std::uint64_t>(1);
  rt.launch(0, [=] ESKER_LAMBDA(WorkItem item) { shmem_inc(item, ran.data(), item.pe()); });
  rt.launch(0, [=] ESKER_LAMBDA(GroupItem & item) { shmem_inc(item, ran.data(), item.pe()); });
  rt.barrier_all();
  EXPECT_EQ(rt.heap().read(ran)[0], 0u);
  EXPECT_EQ(rt.statistics().messages_published, 0u);
}
TEST(Launch, OfNoLanesSendsNothing) { run_pes(2, launch_no_lanes); }

// The device's memory beside the heap: a kernel that sends reads it, one that does not writes it.
struct Square {
  std::uint64_t* at;
  ESKER_HD void operator()(Lane lane) const { at[lane.global_id()] = lane.global_id() * lane.global_id(); }
};
void use_the_device(Runtime& rt) {
  const Device& device = rt.device();
  EXPECT_EQ(device.backend() != Backend::kCpu, rt.runs_on_device());
  EXPECT_EQ(device.name(), rt.device_name());
  constexpr std::uint64_t kLanes = 1000;
  const auto squares = device.memory<std::uint64_t>(kLanes);
  device.launch(kLanes, Square{squares.data()});
  const auto sum = rt.heap().allocate<std::uint64_t>(1);
  const std::uint64_t* const at = squares.data();
  // PEs of one process share a context: what the device is asked for above waits for kernels of all of them.
  rt.barrier_all();
  rt.launch(kLanes,
            [=] ESKER_LAMBDA(WorkItem item) { shmem_add(item, sum.data(), at[item.global_id()], 0u); });
  rt.barrier_all();
  if (rt.pe() == 0) {
    EXPECT_EQ(rt.heap().read(sum)[0], rt.n_pes() * (kLanes * (kLanes - 1) * (2 * kLanes - 1) / 6));
  }
  std::vector<std::uint64_t> copied(kLanes);
  device.copy(copied.data(), squares.data(), squares.size_bytes());
  EXPECT_EQ(copied[999], 999u * 999u);
  rt.barrier_all();  // before it is freed
}
TEST(Launch, ReadsMemoryOfTheRuntimesDevice) { run_pes(2, use_the_device); }

void launch_in_every_shape(Runtime& rt) {
  for (const LaunchShape shape :
       {LaunchShape{1, 1, 1}, LaunchShape{1000, 7, 3}, LaunchShape{999, 1024, 64}}) {
    const auto ran = rt.heap().allocate<std::uint64_t>(shape.lanes);
    rt.launch_shape(shape, [=] ESKER_LAMBDA(WorkItem item) { ++ran[item.global_id()]; });
    rt.launch_shape(shape, [=] ESKER_LAMBDA(GroupItem & item) { ++ran[item.global_id()]; });
    for (const std::uint64_t count : rt.heap().read(ran)) ASSERT_EQ(count, 2u);
  }
}
struct Computes {
  void operator()(const Lane& lane) const noexcept;
};
struct ComputesTogether {
  void operator()(GroupLane& lane);
};
struct Sends {
  void operator()(WorkItem item) const;
};
struct SendsTogether {
  void operator()(GroupItem& item) const;
};
struct TakesAnything {
  template <class T>
  void operator()(T item) const;
};
static_assert(detail::kSendsNothing<Computes> && detail::kSendsNothing<ComputesTogether>);
static_assert(!detail::kSendsNothing<Sends> && !detail::kSendsNothing<SendsTogether> &&
              !detail::kSendsNothing<TakesAnything> && !detail::kSendsNothing<void (*)(Lane)>);

/// And, between them, one that sends.
void launch_what_sends_nothing(Runtime& rt) {
  for (const LaunchShape shape :
       {LaunchShape{1, 1, 1}, LaunchShape{1000, 7, 3}, LaunchShape{999, 1024, 64}}) {
    const auto ran = rt.heap().allocate<std::uint64_t>(shape.lanes);
    const auto in_group = rt.heap().allocate<std::uint64_t>(shape.lanes);
    const auto sum = rt.heap().allocate<std::uint64_t>(1);
    rt.launch_shape(shape, [=] ESKER_LAMBDA(Lane lane) { ++ran[lane.global_id()]; });
    rt.launch_shape(shape, [=] ESKER_LAMBDA(const Lane& lane) { ++ran[lane.global_id()]; });
    rt.launch_shape(shape, [=] ESKER_LAMBDA(GroupLane & lane) {
      ++ran[lane.global_id()];
      in_group[lane.global_id()] = lane.group().reduce(std::uint64_t{1}, Sum{});
    });
    rt.launch_shape(shape, [=] ESKER_LAMBDA(WorkItem item) { shmem_add(item, sum.data(), 1, item.pe()); });
    rt.quiet();
    for (const std::uint64_t count : rt.heap().read(ran)) ASSERT_EQ(count, 3u);
    const std::vector<std::uint64_t> lanes = rt.heap().read(in_group);
    for (std::uint64_t id = 0; id < shape.lanes; ++id)
      ASSERT_EQ(lanes[id], shape.lanes_of(id / shape.group_lanes)) << "lane " << id;
    EXPECT_EQ(rt.heap().read(sum)[0], shape.lanes);
  }
}
TEST(Launch, RunsKernelsThatSendNothing) {
  run_pes(way("3 lane threads", 2, [](Config& config) { config.cpu_threads = 3; }),
          launch_what_sends_nothing);
}

TEST(Launch, RunsEachLaneOnceInEveryShape) {
  run_pes(way("3 lane threads", 1, [](Config& config) { config.cpu_threads = 3; }), launch_in_every_shape);
}

TEST(Launch, GpusHaveLargerNodeBuffersUnlessTheUserSays) {
  const auto chosen = [](std::uint32_t wanted) {
    return way("chosen", 1, [=](Config& config) {
      config.heap = HeapKind::kHost;
      config.node_buffer_bytes = wanted;
    });
  };
  run_pes(chosen(0),
          [](Runtime& rt) { EXPECT_EQ(rt.config().node_buffer_bytes, kOnGpu ? 512u << 10 : 64u << 10); });
  run_pes(chosen(2048), [](Runtime& rt) { EXPECT_EQ(rt.config().node_buffer_bytes, 2048u); });
}

// A package, and a run in its buffer, for each message: more runs than buffers have otherwise. Of one lane:
// those of a wave would send all of one command before the other.
void send_runs_of_one(Runtime& rt) {
  constexpr std::uint64_t kCalls = kIsSlow ? 3000 : 6000, kWords = 64;
  const auto words = rt.heap().allocate<std::uint64_t>(kWords);
  const std::uint32_t other = 1 - rt.pe();
  rt.launch(1, [=] ESKER_LAMBDA(WorkItem item) {
    for (std::uint64_t i = 0; i < kCalls; ++i) {
      std::uint64_t* const word = &words[i % kWords];
      if (i % 2 == 0)
        shmem_inc(item, word, other, PerLane{});
      else
        shmem_add(item, word, 1, other, PerLane{});
    }
  });
  rt.barrier_all();
  std::uint64_t sum = 0;
  for (const std::uint64_t word : rt.heap().read(words)) sum += word;
  EXPECT_EQ(sum, kCalls);
}
TEST(Launch, FillsBuffersWithRunsOfOneMessage) {
  const Way shape = way("large buffers", 2, [](Config& config) {
    config.heap = kOnGpu ? HeapKind::kDevice : HeapKind::kHost;
    config.peer_memory = kOnGpu ? PeerMemory::kOff : config.peer_memory;
    config.device_package_slots = 1024;
    config.package_slots = 1024;
    config.device_aggregators = 1;
    config.node_buffer_bytes = 64 << 10;
    config.aggregation_timeout = std::chrono::seconds{1};
  });
  Pes pes(2, shape.config);
  std::atomic<std::uint32_t> most_runs{0};
  pes.world().set_tamper([&](std::uint32_t, std::uint32_t, std::vector<std::byte>& frame) {
    wire::FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    std::uint32_t most = most_runs;
    while (header.runs > most && !most_runs.compare_exchange_weak(most, header.runs)) {
    }
    return loopback::Fate::kDeliver;
  });
  pes.run(send_runs_of_one);
  EXPECT_GT(most_runs, 1000u);
}

void send_in_every_shape(Runtime& rt) {
  for (const LaunchShape shape : {LaunchShape{1, 1, 1}, LaunchShape{1000, 7, 3}, LaunchShape{130, 64, 32},
                                  LaunchShape{999, 1024, 64}}) {
    check_hits(
        rt, "groups of " + std::to_string(shape.group_lanes), shape.lanes, [](std::uint64_t) { return 2u; },
        [&](Runtime& r, std::uint64_t, const SendHit& send) {
          r.launch_shape(shape, [=] ESKER_LAMBDA(WorkItem item) { send(item); });
          r.launch_shape(shape, [=] ESKER_LAMBDA(GroupItem & item) { send(item); });
        });
  }
}
TEST(Launch, SendsInEveryShape) { run_pes(2, send_in_every_shape); }

}  // namespace
}  // namespace esker::testing
