// Kernels of the user's own beside and instead of Runtime::launch: on a GPU alone.
#include <cstdint>
#include <esker/device/election/predicated.hpp>
#include <esker/device/gpu/api.hpp>
#include <esker/runtime.hpp>
#include <string>
#include <vector>

#include "../runtime/pes.hpp"
#include "../runtime/seed.hpp"
#include "gtest.hpp"

namespace esker::testing {
namespace {

constexpr std::uint32_t kGroupLanes = 96;                  // no power of two
constexpr std::uint64_t kLanes = kSimulated ? 700 : 1900;  // the last group is not full
constexpr std::uint32_t kGroups = (kLanes + kGroupLanes - 1) / kGroupLanes;

/// Each lane's messages: some hit its counter, then one message for the handler.
struct Traffic {
  SymmetricArray<std::uint64_t> counters;  // kLanes a PE
  SymmetricArray<std::uint64_t> handled;   // the same
  Handler<std::uint64_t, std::uint64_t> handler;
  std::uint64_t stream;

  ESKER_HD std::uint64_t word(std::uint32_t pe, std::uint64_t lane) const { return pe * kLanes + lane; }
  ESKER_HD std::uint32_t pe_of(std::uint64_t w, std::uint32_t n_pes) const {
    return static_cast<std::uint32_t>(mix(stream + w) % n_pes);
  }
  ESKER_HD std::uint32_t hits(std::uint64_t w) const { return static_cast<std::uint32_t>((mix(w) >> 7) % 6); }
};

/// A program that wants less than the kernel of a WorkItem writes one like this.
__global__ void send_from_own_kernel(DeviceContext context, Traffic traffic) {
  KernelItem item(context);
  const std::uint64_t id = item.global_id();
  if (id >= kLanes) return;
  const std::uint64_t w = traffic.word(item.pe(), id);
  const std::uint32_t to = traffic.pe_of(w, item.n_pes());
  for (std::uint32_t i = 0; i < traffic.hits(w); ++i) shmem_inc(item, &traffic.counters[w], to);
  if (id % 2 == 0) shmem_am(item, traffic.handler, &traffic.handled[w], w, to);
}

/// The same with group operations.
__global__ void send_as_groups(DeviceContext context, Traffic traffic) {
  KernelItem item(context);
  const std::uint64_t id = item.global_id();
  const bool exists = id < kLanes;
  const std::uint64_t w = traffic.word(item.pe(), exists ? id : 0);
  const std::uint32_t to = traffic.pe_of(w, item.n_pes());
  const std::uint32_t mine = exists ? traffic.hits(w) : 0;
  const std::uint32_t most = item.group().reduce(mine, Max{});
  for (std::uint32_t i = 0; i < most; ++i) {
    shmem_inc(item, &traffic.counters[w], to, Predicated{i < mine});
  }
  if (exists && id % 2 == 0) shmem_am(item, traffic.handler, &traffic.handled[w], w, to);
}

/// Collective.
Traffic make_traffic(Runtime& rt) {
  rt.reserve_for(send_from_own_kernel, kGroupLanes);
  rt.reserve_for(send_as_groups, kGroupLanes);
  return {rt.heap().allocate<std::uint64_t>(kLanes * rt.n_pes()),
          rt.heap().allocate<std::uint64_t>(kLanes * rt.n_pes()),
          rt.register_handler<std::uint64_t, std::uint64_t>(
              "add up", [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & word,
                                        const std::uint64_t& value) { word += value + 1; }),
          seed()};
}

/// Collective. After `rounds` kernels on each PE and a barrier.
void expect_all(Runtime& rt, const Traffic& traffic, std::uint64_t rounds) {
  const std::vector<std::uint64_t> counters = rt.heap().read(traffic.counters);
  const std::vector<std::uint64_t> handled = rt.heap().read(traffic.handled);
  std::uint64_t wrong = 0;
  for (std::uint64_t w = 0; w < counters.size(); ++w) {
    const bool here = traffic.pe_of(w, rt.n_pes()) == rt.pe();
    wrong += counters[w] != (here ? rounds * traffic.hits(w) : 0) ? 1 : 0;
    wrong += handled[w] != (here && w % kLanes % 2 == 0 ? rounds * (w + 1) : 0) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u) << "PE " << rt.pe();
}

class UserKernel : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, UserKernel, ::testing::ValuesIn(gpu_ways()));

void launch_on_esker_stream(Runtime& rt) {
  ASSERT_TRUE(rt.runs_on_device());
  const Traffic traffic = make_traffic(rt);
  const auto stream = static_cast<gpu::Stream>(rt.stream());
  for (int round = 0; round < 3; ++round) {
    ESKER_GPU_START(send_from_own_kernel, kGroups, kGroupLanes, 0, stream, rt.device_context(), traffic);
    ESKER_GPU_START(send_as_groups, kGroups, kGroupLanes, 0, stream, rt.device_context(), traffic);
    gpu::require(ESKER_GPU(GetLastError)(), "launching");
  }
  rt.barrier_all();
  expect_all(rt, traffic, 6);
}
TEST_P(UserKernel, SendsFromEskersStream) { run_pes(GetParam(), launch_on_esker_stream); }

void launch_on_own_stream(Runtime& rt) {
  const Traffic traffic = make_traffic(rt);
  gpu::Stream stream = nullptr;
  gpu::require(ESKER_GPU(StreamCreateWithFlags)(&stream, ESKER_GPU(StreamNonBlocking)), "making a stream");
  ESKER_GPU_START(send_from_own_kernel, kGroups, kGroupLanes, 0, stream, rt.device_context(), traffic);
  gpu::require(ESKER_GPU(GetLastError)(), "launching");
  gpu::require(ESKER_GPU(StreamSynchronize)(stream), "waiting for the kernel");
  rt.barrier_all();
  expect_all(rt, traffic, 1);
  gpu::require(ESKER_GPU(StreamDestroy)(stream), "giving the stream back");
}
TEST_P(UserKernel, SendsFromAStreamOfItsOwnThatItWaitsFor) { run_pes(GetParam(), launch_on_own_stream); }

void launch_both_kinds(Runtime& rt) {
  const Traffic traffic = make_traffic(rt);
  const auto hits = rt.heap().allocate<std::uint64_t>(16);
  for (int round = 0; round < 4; ++round) {
    rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
      shmem_inc(item, &hits[item.global_id() % 16],
                static_cast<std::uint32_t>(item.global_id() % item.n_pes()));
    });
    ESKER_GPU_START(send_from_own_kernel, kGroups, kGroupLanes, 0, static_cast<gpu::Stream>(rt.stream()),
                    rt.device_context(), traffic);
    gpu::require(ESKER_GPU(GetLastError)(), "launching");
  }
  rt.quiet();
  rt.barrier_all();
  expect_all(rt, traffic, 4);
  std::uint64_t sum[1] = {0};
  for (const std::uint64_t count : rt.heap().read(hits)) sum[0] += count;
  rt.all_reduce(std::span<std::uint64_t>(sum), Reduction::kSum);
  EXPECT_EQ(sum[0], 4 * kLanes * rt.n_pes());
}
TEST_P(UserKernel, MixesWithLaunch) { run_pes(GetParam(), launch_both_kinds); }

void launch_without_a_reservation(Runtime& rt) {
  const auto counters = rt.heap().allocate<std::uint64_t>(kLanes * rt.n_pes());
  const Traffic traffic{counters, counters, {}, seed()};
  const auto stream = static_cast<gpu::Stream>(rt.stream());
  ESKER_GPU_START(send_from_own_kernel, 1, kGroupLanes, 0, stream, rt.device_context(), traffic);
  rt.barrier_all();
}
TEST(UserKernelDeathTest, IsToldToReserve) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_pes(gpu_ways().front(), launch_without_a_reservation), "call rt.reserve_for\\(kernel");
}

void reserve_too_much(Runtime& rt) {
  try {
    rt.reserve_for(send_from_own_kernel, kGroupLanes, 1 << 20);
    ADD_FAILURE() << "a group of a MiB of scratchpad fits";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kDevice);
    EXPECT_NE(std::string(error.what()).find("reserve_for: a processor holds no group"), std::string::npos)
        << error.what();
  }
}
TEST(UserKernelReservation, ThatFitsNowhereIsRefused) { run_pes(gpu_ways().front(), reserve_too_much); }

/// Nothing of Esker's.
__global__ void fill(std::uint32_t* words, std::uint32_t count, std::uint32_t value) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) words[i] = value + i;
}

/// Allocates, copies and frees, and runs a kernel on a stream of its own, as programs do.
void work_beside(std::uint32_t value) {
  constexpr std::uint32_t kWords = 10'000;
  gpu::Stream stream = nullptr;
  gpu::require(ESKER_GPU(StreamCreateWithFlags)(&stream, ESKER_GPU(StreamNonBlocking)), "making a stream");
  {
    void* memory = nullptr;
    gpu::require(ESKER_GPU(Malloc)(&memory, kWords * sizeof(std::uint32_t)), "allocating");
    ESKER_GPU_START(fill, (kWords + 127) / 128, 128, 0, stream, static_cast<std::uint32_t*>(memory), kWords,
                    value);
    gpu::require(ESKER_GPU(GetLastError)(), "launching");
    std::vector<std::uint32_t> words(kWords);
    gpu::require(ESKER_GPU(MemcpyAsync)(words.data(), memory, kWords * sizeof(std::uint32_t),
                                        ESKER_GPU(MemcpyDefault), stream),
                 "copying");
    gpu::require(ESKER_GPU(StreamSynchronize)(stream), "waiting for the kernel");
    std::uint64_t wrong = 0;
    for (std::uint32_t i = 0; i < kWords; ++i) wrong += words[i] != value + i ? 1 : 0;
    EXPECT_EQ(wrong, 0u);
    gpu::require(ESKER_GPU(Free)(memory), "freeing");  // waits for the whole device
  }
  gpu::require(ESKER_GPU(StreamDestroy)(stream), "giving the stream back");
}

constexpr std::uint64_t kMessagesALane = kSimulated ? 20 : 500;

/// Full queues nearly all of the time: tiny pools, and lanes that send as fast as they can.
void compute_beside_traffic(Runtime& rt) {
  constexpr std::uint64_t kWords = 1024;
  const auto words = rt.heap().allocate<std::uint64_t>(kWords);
  for (std::uint32_t round = 0; round < 10; ++round) {
    rt.launch(
        kLanes,
        [=] ESKER_LAMBDA(WorkItem item) {
          for (std::uint64_t m = 0; m < kMessagesALane; ++m) {
            const std::uint64_t r = mix(item.global_id() * kMessagesALane + m);
            shmem_inc(item, &words[r % kWords], static_cast<std::uint32_t>((r >> 32) % item.n_pes()));
          }
        },
        "background");
    work_beside(round);
    if (round % 3 == 0) rt.quiet();
  }
  rt.barrier_all();
  std::uint64_t sum[1] = {0};
  for (const std::uint64_t count : rt.heap().read(words)) sum[0] += count;
  rt.all_reduce(std::span<std::uint64_t>(sum), Reduction::kSum);
  EXPECT_EQ(sum[0], 10 * kLanes * kMessagesALane * rt.n_pes());
}

// PEs that are threads share a context: one's freeing would wait for the kernels of the others, and keep them
// from starting the progress kernels that those wait for. As processes they do not.
std::vector<Way> ways_of_one_pe() {
  std::vector<Way> ways = gpu_ways();
  std::erase_if(ways, [](const Way& way) { return way.n_pes > 1; });
  return ways;
}
class UserKernelAlone : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, UserKernelAlone, ::testing::ValuesIn(ways_of_one_pe()));
TEST_P(UserKernelAlone, AllocatesComputesAndFreesWhileMessagesMove) {
  run_pes(GetParam(), compute_beside_traffic);
}

}  // namespace
}  // namespace esker::testing
