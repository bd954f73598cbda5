// Devices: opened by name, memory of each kind, streams, events, copies, launches. The same body on the CPU
// and on a GPU.
#include <esker/device/device.hpp>
#include <esker/device/error.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest.hpp"

#if defined(ESKER_DEVICE_COMPILER)
#include <esker/device/gpu/api.hpp>
#endif

namespace esker::testing {
namespace {

#if defined(ESKER_DEVICE_COMPILER)
const char* backend() { return gpu::kBackend; }
#else
const char* backend() { return "cpu"; }
#endif
constexpr bool kIsGpu =
#if defined(ESKER_DEVICE_COMPILER)
    true;
#else
    false;
#endif

std::string error_of(const std::string& name) {
  try {
    (void)Device::open(name);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kDevice);
    return error.what();
  }
  return "it opened";
}
bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Kernels as classes: nvcc takes no lambda in a test's body.

/// *at = scale * *at + add, each lane its own word.
struct Change {
  std::uint32_t* at;
  std::uint32_t scale, add;
  ESKER_HD void operator()(Lane lane) const { at[lane.global_id()] = scale * at[lane.global_id()] + add; }
};
/// Each group's sum of 1 .. its lanes.
struct SumUp {
  std::uint32_t* at;
  ESKER_HD void operator()(GroupLane& lane) const {
    const std::uint32_t sum = lane.group().reduce(lane.lane() + 1, Sum{});
    if (lane.lane() == 0) at[lane.group_id()] = sum;
  }
};
struct Nothing {
  ESKER_HD void operator()(Lane) const {}
};

TEST(Device, OpensByName) {
  const Device device = Device::open("auto");
  EXPECT_STREQ(to_string(device.backend()), backend());
  EXPECT_STREQ(to_string(Device::open(backend()).backend()), backend());
  EXPECT_EQ(Device::open("cpu").name(), "cpu");
  const DeviceProperties& properties = device.properties();
  EXPECT_GE(properties.processors, 1u);
  EXPECT_TRUE(properties.wave_lanes == 32 || properties.wave_lanes == 64);
  EXPECT_GT(properties.memory_bytes, std::uint64_t{64} << 20);
  EXPECT_EQ(properties.index, 0u);
  EXPECT_EQ(device.occupancy() != nullptr, kIsGpu);
  if (!kIsGpu) return;
  EXPECT_EQ(device.name(), std::string(backend()) + ": " + properties.model + ", GPU 0 of " +
                               std::to_string(properties.devices));
  EXPECT_GT(properties.processor_scratch_bytes, 0u);
  const std::string last = std::to_string(properties.devices - 1);
  EXPECT_EQ(std::to_string(Device::open(std::string(backend()) + ":" + last).properties().index), last);
}

TEST(Device, SaysWhatThereIsWhereANameOpensNothing) {
  for (const char* name : {"", "gpu", "cpu:0", "Cuda", "cuda9"}) {
    const std::string error = error_of(name);
    EXPECT_TRUE(contains(error, std::string("Device::open(\"") + name + "\")")) << error;
    EXPECT_TRUE(contains(error, "auto, cpu, cuda, hip or simulated")) << error;
  }
  for (const char* name : {"cuda:", "cuda:x", "hip:1x", "simulated:-1"}) {
    EXPECT_TRUE(contains(error_of(name), "after the colon comes a GPU's number")) << name;
  }
  for (const char* name : {"cuda:100000", "hip:100000", "simulated:100000"}) {
    const std::string error = error_of(name);
    EXPECT_TRUE(contains(error, name)) << error;
    EXPECT_TRUE(contains(error, "use ")) << error;
    EXPECT_TRUE(contains(error, kIsGpu ? std::string("back end ") + backend() : "no GPU's back end"))
        << error;
  }
}

TEST(Device, GivesZeroedMemoryOfEachKind) {
  const Device device = Device::open(backend());
  constexpr std::size_t kN = 1000;
  const auto own = device.memory<std::uint64_t>(kN);
  const auto pinned = device.pinned<std::uint64_t>(kN);
  const auto managed = device.managed<std::uint64_t>(kN);
  const auto raw = device.pinned<std::uint32_t>(kN, {"a table", false});
  ASSERT_EQ(own.size(), kN);
  ASSERT_EQ(raw.span().size_bytes(), kN * 4);
  std::vector<std::uint64_t> copied(kN, 1);
  device.copy(copied.data(), own.data(), own.size_bytes());
  for (std::size_t i = 0; i < kN; ++i) ASSERT_EQ(copied[i] + pinned[i] + managed.span()[i], 0u) << i;
}

TEST(Device, ArraysOwnTheirMemory) {
  const Device device = Device::open(backend());
  using Array = PinnedArray<int>;
  static_assert(!std::is_copy_constructible_v<Array> && std::is_nothrow_move_constructible_v<Array>);
  Array first = device.pinned<int>(3);
  first[1] = 7;
  int* const at = first.data();
  Array second = std::move(first);
  EXPECT_EQ(second.data(), at);
  EXPECT_EQ(second[1], 7);
  EXPECT_TRUE(first.empty());
  first = std::move(second);
  EXPECT_EQ(first.data(), at);
  EXPECT_TRUE(device.memory<int>(0).empty());
}

TEST(Device, SaysWhatTheMemoryWasFor) {
  const Device device = Device::open(backend());
  for (const std::size_t n : {std::size_t{1} << 58, ~std::size_t{0}}) {
    try {
      (void)device.memory<std::uint64_t>(n, {.what = "the table of everything"});
      ADD_FAILURE() << n;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kOutOfMemory);
      EXPECT_TRUE(contains(error.what(), "the table of everything of ")) << error.what();
      EXPECT_TRUE(contains(error.what(), " bytes")) << error.what();
    }
  }
}

TEST(Device, RunsALanesKernelOnceALane) {
  const Device device = Device::open(backend());
  for (const std::uint64_t lanes : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}}) {
    const auto seen = device.managed<std::uint32_t>(1000);
    std::uint32_t* const at = seen.data();
    device.launch(lanes, Change{at, 1, 1});
    for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(seen[i], i < lanes ? 1u : 0u) << i << " of " << lanes;
  }
}

TEST(Device, RunsKernelsWhoseLanesWorkTogether) {
  const Device device = Device::open(backend());
  constexpr std::uint32_t kGroup = 64, kGroups = 9;
  const auto sums = device.managed<std::uint32_t>(kGroups);
  std::uint32_t* const at = sums.data();
  const LaunchShape shape{kGroups * kGroup - 5, kGroup};
  device.launch(shape, SumUp{at});
  for (std::uint32_t g = 0; g < kGroups; ++g) {
    const std::uint32_t n = shape.lanes_of(g);
    EXPECT_EQ(sums[g], n * (n + 1) / 2) << g;
  }
}

TEST(Device, RunsAStreamsWorkInOrder) {
  const Device device = Device::open(backend());
  constexpr std::size_t kN = 4096;
  const auto own = device.memory<std::uint32_t>(kN);
  const auto from = device.pinned<std::uint32_t>(kN);
  const auto to = device.pinned<std::uint32_t>(kN);
  const Stream stream = device.stream(StreamPriority::kHigh);
  std::uint32_t* const at = own.data();
  for (std::uint32_t round = 0; round < 5; ++round) {
    for (std::uint32_t i = 0; i < kN; ++i) from[i] = i + round;
    device.fill(to.data(), 0xff, to.size_bytes(), stream);
    device.copy_async(at, from.data(), from.size_bytes(), stream);
    device.launch(kN, Change{at, 2, 0}, stream);
    device.launch(kN, Change{at, 1, 1}, stream);
    device.copy_async(to.data(), at, to.size_bytes(), stream);
    stream.synchronize();
    EXPECT_TRUE(stream.is_idle());
    for (std::uint32_t i = 0; i < kN; ++i) ASSERT_EQ(to[i], 2 * (i + round) + 1) << i;
  }
  EXPECT_EQ(stream.native() != nullptr, kIsGpu);
}

TEST(Device, StreamsWaitForEvents) {
  const Device device = Device::open(backend());
  const auto word = device.managed<std::uint32_t>(1);
  std::uint32_t* const at = word.data();
  Stream first = device.stream(), second = device.stream();
  const Event begin = device.event(), end = device.event();
  EXPECT_TRUE(begin.is_done());  // nothing is recorded
  for (int round = 0; round < 20; ++round) {
    first.record(begin);
    device.launch(1, Change{at, 2, 1}, first);
    first.record(end);
    second.wait(end);
    device.launch(1, Change{at, 3, 0}, second);
    second.record(end);
    first.wait(end);
  }
  first.synchronize();
  end.synchronize();
  EXPECT_TRUE(end.is_done());
  EXPECT_GE(end.elapsed_since(begin).count(), 0);
  std::uint32_t expected = 0;
  for (int round = 0; round < 20; ++round) expected = 3 * (2 * expected + 1);
  EXPECT_EQ(*at, expected);
}

TEST(Device, CallsAHostFunctionInAStreamsOrder) {
  const Device device = Device::open(backend());
  const Stream stream = device.stream();
  const auto at = device.memory<std::uint32_t>(1);
  const auto seen = device.pinned<std::uint32_t>(1);
  std::vector<std::uint32_t> heard;
  for (std::uint32_t round = 1; round <= 10; ++round) {
    device.launch(1, Change{at.data(), 1, round}, stream);
    device.copy_async(seen.data(), at.data(), sizeof(std::uint32_t), stream);
    stream.call([&heard, now = seen.data()] { heard.push_back(*now); });
  }
  stream.synchronize();
  EXPECT_EQ(heard, (std::vector<std::uint32_t>{1, 3, 6, 10, 15, 21, 28, 36, 45, 55}));
}

TEST(Device, AGraphRunsAtEachLaunchAndNotBefore) {
  const Device device = Device::open(backend());
  const Stream stream = device.stream();
  const auto at = device.memory<std::uint32_t>(1);
  const auto seen = device.pinned<std::uint32_t>(1);
  std::uint32_t calls = 0;
  {
    const DeviceGraph graph = device.graph(stream, [&](const Stream& to) {
      device.launch(1, Change{at.data(), 2, 1}, to);
      to.call([&calls] { ++calls; });
      device.copy_async(seen.data(), at.data(), sizeof(std::uint32_t), to);
    });
    stream.synchronize();
    EXPECT_EQ(calls, 0u);
    EXPECT_EQ(seen[0], 0u);
    for (int i = 0; i < 5; ++i) graph.launch(stream);
    stream.synchronize();
  }
  EXPECT_EQ(calls, 5u);
  EXPECT_EQ(seen[0], 31u);
}

// Copies of the simulated GPU take time here, which its streams account for.
TEST(Device, AGraphOutlivesTheStreamThatWasCaptured) {
  setenv("SIMULATED_COPY", "bytes_per_s=1e9", 1);
  {
    const Device device = Device::open(backend());
    const auto at = device.memory<std::uint32_t>(1);
    const auto given = device.pinned<std::uint32_t>(1), seen = device.pinned<std::uint32_t>(1);
    given[0] = 7;
    const DeviceGraph graph = device.graph(device.stream(), [&](const Stream& to) {
      device.copy_async(at.data(), given.data(), sizeof(std::uint32_t), to);
      device.copy_async(seen.data(), at.data(), sizeof(std::uint32_t), to);
    });
    const Stream other = device.stream();
    graph.launch(other);
    other.synchronize();
    EXPECT_EQ(seen[0], 7u);
  }
  unsetenv("SIMULATED_COPY");
}

TEST(Device, AGraphHasWhatAnotherStreamDoesBetweenTwoEvents) {
  const Device device = Device::open(backend());
  const Stream stream = device.stream(), other = device.stream();
  const Event forked = device.event(), joined = device.event();
  const auto at = device.memory<std::uint32_t>(1);
  const auto seen = device.pinned<std::uint32_t>(1);
  const DeviceGraph graph = device.graph(stream, [&](const Stream& to) {
    device.launch(1, Change{at.data(), 1, 1}, to);
    to.record(forked);
    other.wait(forked);
    device.launch(1, Change{at.data(), 3, 0}, other);
    other.record(joined);
    to.wait(joined);
    device.launch(1, Change{at.data(), 1, 5}, to);
    device.copy_async(seen.data(), at.data(), sizeof(std::uint32_t), to);
  });
  for (int i = 0; i < 3; ++i) graph.launch(stream);
  stream.synchronize();
  EXPECT_EQ(seen[0], 104u);                          // x becomes 3 (x + 1) + 5: 8, 32, 104
  device.launch(1, Change{at.data(), 0, 6}, other);  // which is a stream as before
  other.record(joined);
  joined.synchronize();
}

#if defined(ESKER_DEVICE_COMPILER)
TEST(Device, AGraphThatDoesNotWaitForAnotherStreamIsNone) {
  const Device device = Device::open(backend());
  if (device.backend() == Backend::kHip) GTEST_SKIP() << "a graph puts all on the streams again";
  const Stream stream = device.stream(), other = device.stream();
  const Event forked = device.event();
  const auto at = device.memory<std::uint32_t>(1);
  EXPECT_THROW(device.graph(stream,
                            [&](const Stream& to) {
                              to.record(forked);
                              other.wait(forked);
                              device.launch(1, Change{at.data(), 3, 0}, other);
                            }),
               Error);
  stream.synchronize();
}
#endif

TEST(Device, AsCurrentCallsAndThrowsWhatIsThrown) {
  const Device device = Device::open(backend());
  int calls = 0;
  device.as_current([&] { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_THROW(device.as_current([] { throw std::out_of_range("inside"); }), std::out_of_range);
}

TEST(Device, AGraphWhoseFunctionThrowsIsNone) {
  const Device device = Device::open(backend());
  const Stream stream = device.stream();
  const auto put = [](const Stream&) { throw std::out_of_range("half way"); };
  if (device.backend() == Backend::kCuda || device.backend() == Backend::kSimulated) {
    EXPECT_THROW(device.graph(stream, put), std::out_of_range);
  } else {
    EXPECT_THROW(device.graph(stream, put).launch(stream), std::out_of_range);
  }
  stream.synchronize();  // which is a stream as before
}

TEST(Device, OutlivesItsHandle) {
  Stream stream = Device::open(backend()).stream();
  auto array = Device::open(backend()).pinned<int>(4);
  array[3] = 1;
  stream.synchronize();
}

#if defined(ESKER_DEVICE_COMPILER)
TEST(Device, AsCurrentMakesItTheThreadsDevice) {
  const int last = gpu::device_count() - 1;
  const Device device = Device::open(std::string(backend()) + ":" + std::to_string(last));
  int before = -1, inside = -1, after = -1;
  (void)ESKER_GPU(GetDevice)(&before);
  device.as_current([&] { (void)ESKER_GPU(GetDevice)(&inside); });
  (void)ESKER_GPU(GetDevice)(&after);
  EXPECT_EQ(inside, last);
  EXPECT_EQ(after, before);
}

TEST(Device, LeavesTheCurrentDeviceAlone) {
  int before = -1, after = -1;
  gpu::require(ESKER_GPU(GetDevice)(&before), "asking for the device");
  const Device last = Device::open(std::string(backend()) + ":" + std::to_string(gpu::device_count() - 1));
  const auto array = last.memory<int>(100);
  last.launch(100, Nothing{});
  gpu::require(ESKER_GPU(GetDevice)(&after), "asking for the device");
  EXPECT_EQ(before, after);
}
TEST(Device, ReachesItsOwnMemoryAndNotThatOfOtherBackEnds) {
  const Device device = Device::open(backend());
  EXPECT_TRUE(device.reach(device));
  EXPECT_EQ(device.reach(Device::open("cpu")), !kIsGpu);
  EXPECT_EQ(Device::open("cpu").reach(device), !kIsGpu);
}
#if defined(ESKER_TEST_SIMULATED)
TEST(Device, ReachesOthersButForPairsThatTheEnvironmentNames) {
  const Device first = Device::open("simulated:0"), second = Device::open("simulated:1");
  EXPECT_TRUE(first.reach(second));
  EXPECT_TRUE(second.reach(first));
  setenv("SIMULATED_NO_ACCESS", "1-0", 1);
  EXPECT_TRUE(first.reach(second));
  EXPECT_FALSE(second.reach(first));
  unsetenv("SIMULATED_NO_ACCESS");
}
#endif

TEST(Device, SaysWhyALaunchCannotBe) {
  try {
    Device::open(backend()).launch(LaunchShape{4096, 2048}, Nothing{});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_TRUE(contains(error.what(), "a group has 1 to 1024 lanes")) << error.what();
    EXPECT_TRUE(contains(error.what(), backend())) << error.what();
  }
}
#else
TEST(Device, ThrowsWhatALaneThrows) {
  const Device device = Device::open("cpu");
  EXPECT_THROW(device.launch(1000,
                             [](Lane lane) {
                               if (lane.global_id() == 617) throw std::out_of_range("lane 617");
                             }),
               std::out_of_range);
  std::atomic<int> runs{0};
  device.launch(1000, [&](Lane) { runs.fetch_add(1); });  // and goes on
  EXPECT_EQ(runs.load(), 1000);
}
TEST(Device, AKernelMayLaunch) {
  const Device device = Device::open("cpu");
  std::atomic<int> runs{0};
  device.launch(4, [&](Lane) { device.launch(10, [&](Lane) { runs.fetch_add(1); }); });
  EXPECT_EQ(runs.load(), 40);
}
#endif

}  // namespace
}  // namespace esker::testing
