// Each way to elect delivers every message of divergent code exactly once.
#include <cstdint>

#include "traffic.hpp"

namespace esker {
namespace {

using testing::Arrivals;
using testing::QueueMemory;
using testing::Traffic;
using testing::Way;
using testing::ways;

/// The queue holds every package, even one a message, so no consumer need run beside the kernel.
/// `payload_bytes` of 256 hold 32 short messages or 10 long ones: larger groups need several packages.
template <class Kernel>
void expect_exact_delivery(std::uint32_t payload_bytes) {
  for (const std::uint64_t seed : testing::kSeeds) {
    for (const Way& way : ways()) {
      SCOPED_TRACE(way.name() + ", seed " + std::to_string(seed));
      QueueMemory memory(8192, payload_bytes);
      const Traffic traffic{seed};
      run_on_device(way, Kernel{traffic, memory.sink()});
      Arrivals arrivals;
      while (arrivals.take(memory.sink().queue)) {
      }
      traffic.expect_each_once(arrivals, way.shape.lanes);
      if (::testing::Test::HasFailure()) return;
    }
  }
}

TEST(PerLaneElection, DeliversEachMessageOnce) { expect_exact_delivery<testing::SendPerLane>(256); }
TEST(PerWaveElection, DeliversEachMessageOnce) {
  expect_exact_delivery<testing::SendPerWave>(256);
  expect_exact_delivery<testing::SendPerConvergedWave>(256);
}
TEST(PredicatedElection, DeliversEachMessageOnceInSmallPackages) {
  expect_exact_delivery<testing::SendPredicated>(256);
}
TEST(PredicatedElection, DeliversEachMessageOnceInLargePackages) {
  expect_exact_delivery<testing::SendPredicated>(2048);
}
TEST(ByDestinationElection, DeliversEachMessageOnceInSmallPackages) {
  expect_exact_delivery<testing::SendByDestination>(256);
}
TEST(ByDestinationElection, DeliversEachMessageOnceInLargePackages) {
  expect_exact_delivery<testing::SendByDestination>(2048);
}

/// Every lane has a message for destination id % n: the lists are as long as they can be.
struct OneForEach {
  testing::QueueSink sink;
  ESKER_HD void operator()(GroupLane& lane) const {
    constexpr std::uint32_t kDestinations = 3;
    testing::QueueSink to = sink;
    auto& counts = lane.scratch<DestinationCounts>();
    const auto destination = static_cast<std::uint32_t>(lane.global_id() % kDestinations);
    const std::uint64_t words[] = {testing::message_id(lane.global_id(), 0)};
    ByDestination{counts, kDestinations, destination}.send(lane, to, testing::kShort, words);
  }
};

TEST(ByDestinationElection, SendsOneListADestination) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name());
    QueueMemory memory(8192, 8192);
    run_on_device(way, OneForEach{memory.sink()});
    Arrivals arrivals;
    while (arrivals.take(memory.sink().queue)) {
    }
    EXPECT_EQ(arrivals.messages(), way.shape.lanes);
    std::uint64_t lists = 0;
    for (std::uint64_t g = 0; g < way.shape.groups(); ++g)
      lists += way.shape.lanes_of(g) < 3 ? way.shape.lanes_of(g) : 3;
    EXPECT_EQ(arrivals.packages(), lists);
  }
}

TEST(FineGrainElection, DeliversEachMessageOnceInSmallPackages) {
  expect_exact_delivery<testing::SendFineGrain>(256);
}
TEST(AutoGroupElection, DeliversEachMessageOnceInSmallPackages) {
  expect_exact_delivery<testing::SendAutoGrouped>(256);
}
TEST(AutoGroupElection, DeliversEachMessageOnceInLargePackages) {
  expect_exact_delivery<testing::SendAutoGrouped>(2048);
}

/// One command, the same number of messages in every lane.
struct Uniform {
  testing::QueueSink sink;
  std::uint32_t messages;
  ESKER_HD void operator()(GroupLane& lane) const {
    testing::QueueSink to = sink;
    GroupPacker packer(lane, to);
    for (std::uint32_t m = 0; m < messages; ++m) {
      const std::uint64_t words[] = {testing::message_id(lane.global_id(), m)};
      packer.append(testing::kShort, words);
    }
    packer.close();
  }
};

TEST(AutoGroupElection, FillsItsPackages) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name());
    constexpr std::uint32_t kMessages = 20, kColumns = 64;
    QueueMemory memory(8192, kColumns * 8);
    run_on_device(way, Uniform{memory.sink(), kMessages});
    Arrivals arrivals;
    while (arrivals.take(memory.sink().queue)) {
    }
    EXPECT_EQ(arrivals.messages(), way.shape.lanes * kMessages);
    std::uint64_t full = 0;
    for (std::uint64_t g = 0; g < way.shape.groups(); ++g) {
      full += (way.shape.lanes_of(g) * kMessages + kColumns - 1) / kColumns;
    }
    EXPECT_EQ(arrivals.packages(), full);
  }
}

}  // namespace
}  // namespace esker
