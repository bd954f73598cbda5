// Timelines of batches: section 2.4's example and Table 2 to the digit, merging, staging, the rivals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <esker/error.hpp>
#include <esker/transfer.hpp>

namespace {

using namespace esker::transfer;

constexpr double kMega = 1e6, kMiB = 1 << 20, kMs = 1e-3;

/// A copy to device i of so many bytes, then a kernel.
StreamModel to_device(const Topology& t, std::uint32_t i, double bytes, double kernel_s = 0) {
  return {t.host(), t.device(i), bytes, kernel_s};
}
StreamModel to_host(const Topology& t, std::uint32_t i, double bytes) {
  return {t.device(i), t.host(), bytes, 0};
}

std::vector<StreamModel> images(const Topology& t) {
  std::vector<StreamModel> streams;
  const double sizes[] = {32 * kMega, 128 * kMega, 128 * kMega, 32 * kMega};
  for (std::uint32_t i = 0; i < 4; ++i) streams.push_back(to_device(t, i, sizes[i], sizes[i] / 10e9));
  return streams;
}

TEST(Timeline, InspectionExampleTakes44Point8Milliseconds) {
  const Topology t = example_system();
  const Timeline schedule = align_ends(t, images(t));
  EXPECT_NEAR(schedule.makespan_s, 44.8 * kMs, 1e-12);
  for (const StreamTimes& times : schedule.streams) EXPECT_NEAR(times.end_s, 44.8 * kMs, 1e-12);
  EXPECT_NEAR(schedule.streams[0].kernel_begin_s, 41.6 * kMs, 1e-12);
  EXPECT_NEAR(schedule.streams[0].copy_begin_s, 33.6 * kMs, 1e-12);
  EXPECT_NEAR(schedule.streams[1].copy_begin_s, 0, 1e-12);
  EXPECT_EQ(t.link_name(schedule.bottleneck), "CPU -> IOH");
  // 320 MB of the 8 GB/s that it could carry.
  EXPECT_NEAR(schedule.utilisation[schedule.bottleneck], 320e6 / 8e9 / 44.8e-3, 1e-12);
}

TEST(Timeline, BandwidthAllocationTakes76Point8Milliseconds) {
  const Topology t = example_system();
  EXPECT_NEAR(allocate_bandwidth(t, images(t)).makespan_s, 76.8 * kMs, 1e-12);
}

TEST(Timeline, TimeDivisionTakesTheBestOfAllOrders) {
  const Topology t = example_system();
  const Timeline schedule = divide_time(t, images(t));
  // 320 MB at the 6 GB/s of one GPU's link, then the kernel of a small image.
  EXPECT_NEAR(schedule.makespan_s, 320e6 / 6e9 + 3.2 * kMs, 1e-12);
  std::vector<StreamModel> streams = images(t);
  std::vector<int> order{0, 1, 2, 3};
  double best = 1;
  do {
    double end = 0, copied = 0;
    for (const int i : order) {
      copied += streams[static_cast<std::size_t>(i)].bytes / 6e9;
      end = std::max(end, copied + streams[static_cast<std::size_t>(i)].kernel_s);
    }
    best = std::min(best, end);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_NEAR(schedule.makespan_s, best, 1e-12);
}

TEST(Timeline, Table2IsPredictedToItsLastDigit) {
  const auto end_of = [](const Timeline& schedule, std::size_t stream) {
    // The paper's time of a stream is from when it starts.
    return (schedule.streams[stream].end_s - schedule.streams[stream].copy_begin_s) / kMs;
  };
  const Topology nehalem = nehalem_system(), sandy = sandy_bridge_system();
  const std::vector<StreamModel> n_there{to_device(nehalem, 0, 256 * kMiB, 10 * kMs),
                                         to_device(nehalem, 1, 128 * kMiB, 10 * kMs)};
  const std::vector<StreamModel> n_back{to_host(nehalem, 0, 256 * kMiB), to_host(nehalem, 1, 128 * kMiB)};
  std::vector<StreamModel> s_there, s_back;
  const double sizes[] = {256 * kMiB, 128 * kMiB, 64 * kMiB, 32 * kMiB};
  for (std::uint32_t i = 0; i < 4; ++i) {
    s_there.push_back(to_device(sandy, i, sizes[i], 10 * kMs));
    s_back.push_back(to_host(sandy, i, sizes[i]));
  }
  const struct {
    const Topology& topology;
    const std::vector<StreamModel>& streams;
    std::vector<double> printed;
  } rows[] = {{nehalem, n_there, {60.71, 38.46}},
              {nehalem, n_back, {91.69, 61.12}},
              {sandy, s_there, {43.74, 32.25, 18.40, 15.60}},
              {sandy, s_back, {34.11, 22.02, 8.59, 5.72}}};
  for (const auto& row : rows) {
    const Timeline schedule = align_ends(row.topology, row.streams);
    EXPECT_NEAR(schedule.makespan_s / kMs, row.printed[0], 0.006);
    for (std::size_t i = 0; i < row.printed.size(); ++i)
      EXPECT_NEAR(end_of(schedule, i), row.printed[i], 0.006);
  }
}

TEST(Timeline, StreamsOfOneEngineAreMerged) {
  Topology t("merging");
  const auto memory = t.add("M", Topology::Kind::kMemory);
  const auto gpu = t.add("G", Topology::Kind::kDevice);
  t.connect(memory, gpu, {1e9, 0, 2e-3, 1e-3}, {1e9, 0, 2e-3, 1e-3});
  const std::vector<StreamModel> streams{
      {memory, gpu, 10e6, 5e-3}, {memory, gpu, 20e6, 7e-3}, {gpu, memory, 4e6}};
  const Timeline schedule = align_ends(t, streams);
  ASSERT_EQ(schedule.sequences.size(), 2u);
  // A startup, 10 MB, a further one, 20 MB, both kernels; the copy back has an engine of its own.
  EXPECT_NEAR(schedule.makespan_s, (2 + 10 + 1 + 20 + 5 + 7) * kMs, 1e-12);
  EXPECT_NEAR(schedule.streams[1].copy_begin_s, 12 * kMs, 1e-12);
  EXPECT_NEAR(schedule.streams[0].kernel_begin_s, 33 * kMs, 1e-12);
  EXPECT_NEAR(schedule.streams[1].kernel_begin_s, 38 * kMs, 1e-12);
  EXPECT_NEAR(schedule.streams[2].copy_begin_s, (45 - 6) * kMs, 1e-12);
}

TEST(Timeline, OneEngineForBothDirectionsTakesThemInTurn) {
  const Topology t = nehalem_system();
  const std::vector<StreamModel> streams{to_device(t, 0, 10e6), to_host(t, 0, 10e6)};
  const Timeline schedule = align_ends(t, streams);
  ASSERT_EQ(schedule.sequences.size(), 1u);
  EXPECT_NEAR(schedule.streams[1].copy_begin_s, schedule.streams[0].copy_end_s, 1e-12);
}

TEST(Timeline, AStagedCopyLeavesBeforeItArrives) {
  const Topology t = example_system();
  const std::vector<StreamModel> streams{{t.device(0), t.device(1), 60e6, 4e-3},
                                         {t.device(1), t.device(0), 60e6}};
  ASSERT_TRUE(t.is_staged(t.device(0), t.device(1)));
  const Timeline schedule = align_ends(t, streams);
  ASSERT_EQ(schedule.legs.size(), 4u);
  for (const Leg& leg : schedule.legs) {
    if (leg.source == Leg::kNone) continue;
    const Leg& first = schedule.legs[leg.source];
    EXPECT_LT(first.begin_s, leg.begin_s);
    EXPECT_LT(first.end_s, leg.end_s);
  }
  // Both directions of the 8 GB/s link are 120 MB each; the kernel follows, a piece's time in all is lost.
  EXPECT_GT(schedule.makespan_s, 15e-3);
  EXPECT_LT(schedule.makespan_s, 20e-3);
  EXPECT_NEAR(schedule.streams[0].kernel_begin_s, schedule.streams[0].copy_end_s, 1e-12);
}

TEST(Timeline, AnAlignedScheduleRunForwardsIsTheSame) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Topology systems[] = {example_system(), nehalem_system(), sandy_bridge_system()};
  for (int round = 0; round < 500; ++round) {
    const Topology& t = systems[random() % 3];
    std::vector<StreamModel> streams;
    const std::size_t n = 1 + random() % 6;
    for (std::size_t i = 0; i < n; ++i) {
      const double bytes = 1e5 * static_cast<double>(1 + random() % 1000);
      const auto gpu = static_cast<std::uint32_t>(random() % 4);
      streams.push_back(random() % 2 == 0
                            ? to_device(t, gpu, bytes, 1e-4 * static_cast<double>(random() % 100))
                            : to_host(t, gpu, bytes));
    }
    const Timeline aligned = align_ends(t, streams);
    const Timeline forwards = replay(t, streams, aligned);
    EXPECT_NEAR(forwards.makespan_s, aligned.makespan_s, 1e-9 * aligned.makespan_s);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(forwards.streams[i].copy_end_s, aligned.streams[i].copy_end_s, 1e-9);
      EXPECT_NEAR(aligned.streams[i].end_s > 0 ? aligned.makespan_s : 0, aligned.makespan_s, 1e-9);
    }
    // No rival that the batch method was made to beat beats the time that any method needs.
    for (std::size_t link = 0; link < aligned.utilisation.size(); ++link)
      EXPECT_LE(aligned.utilisation[link], 1 + 1e-9);
    EXPECT_LE(divide_time(t, streams).utilisation[aligned.bottleneck], 1 + 1e-9);
  }
}

TEST(Timeline, RefusesWhatIsNoStream) {
  const Topology t = example_system();
  const auto refusal = [&](const StreamModel& stream) -> std::string {
    try {
      (void)align_ends(t, std::vector<StreamModel>{to_device(t, 0, 1), stream});
    } catch (const esker::Error& error) {
      EXPECT_EQ(error.kind(), esker::Error::Kind::kTransfer);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal({t.find("CPU"), t.device(0), 5}),
            "batch: stream 1: CPU is a processor: copies go between memories and devices");
  EXPECT_EQ(refusal({t.device(0), t.host(), 5, 1}),
            "batch: stream 1: a kernel on MEM, which is a memory: a kernel follows a copy to its device; one "
            "before a copy to the host is a batch before this one");
  EXPECT_EQ(refusal({t.host(), 99, 5}), "batch: stream 1: node 99 is not in topology 'example', which has 7");
  EXPECT_EQ(refusal({t.host(), t.host(), 5}),
            "batch: stream 1: a copy from MEM to MEM: at least one end is a device");
  EXPECT_EQ(refusal({t.host(), t.device(0), -5}),
            "batch: stream 1: -5 bytes and a kernel of 0 s: neither may be negative");
}

TEST(Timeline, NothingTakesNoTime) {
  const Topology t = example_system();
  EXPECT_EQ(align_ends(t, {}).makespan_s, 0);
  const Timeline schedule =
      align_ends(t, std::vector<StreamModel>{to_device(t, 0, 0), to_device(t, 1, 0, 2e-3)});
  EXPECT_NEAR(schedule.makespan_s, 2e-3, 1e-12);
  EXPECT_EQ(schedule.bottleneck, Leg::kNone);
}

}  // namespace
