// Timelines of batches: section 2.4's example and Table 2 to the digit, merging, staging, the rivals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>
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

/// A size from 1 to 100 MB, small ones as likely as large ones.
double random_bytes(std::mt19937& random) {
  return std::floor(std::pow(1e8, static_cast<double>(random() % 10'001) / 10'000));
}

TEST(Timeline, AnAlignedScheduleRunForwardsIsTheSame) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Topology systems[] = {example_system(), nehalem_system(), sandy_bridge_system()};
  for (int round = 0; round < 2000; ++round) {
    const Topology& t = systems[random() % 3];
    std::vector<StreamModel> streams;
    const std::size_t n = 1 + random() % 6;
    for (std::size_t i = 0; i < n; ++i) {
      // From a byte to 100 MB, and from no kernel to one of seconds.
      const double bytes = random_bytes(random);
      const double kernel_s = random() % 2 == 0 ? 0 : 1e-6 * random_bytes(random) / 20;
      const auto gpu = static_cast<std::uint32_t>(random() % 4);
      streams.push_back(random() % 2 == 0 ? to_device(t, gpu, bytes, kernel_s) : to_host(t, gpu, bytes));
    }
    const Timeline aligned = align_ends(t, streams);
    const Timeline forwards = replay(t, streams, aligned);
    EXPECT_NEAR(forwards.makespan_s, aligned.makespan_s, 1e-9 * aligned.makespan_s);
    for (std::size_t i = 0; i < n; ++i) {
      EXPECT_NEAR(forwards.streams[i].copy_end_s, aligned.streams[i].copy_end_s, 1e-9);
    }
    // All sequences end together.
    for (const Sequence& sequence : aligned.sequences) {
      double end = 0;
      for (const std::uint32_t leg : sequence.legs)
        end = std::max(end, aligned.streams[aligned.legs[leg].stream].end_s);
      for (const std::uint32_t stream : sequence.kernels) end = std::max(end, aligned.streams[stream].end_s);
      EXPECT_NEAR(end, aligned.makespan_s, 1e-9);
    }
    // No link carries more than it can.
    for (std::size_t link = 0; link < aligned.utilisation.size(); ++link)
      EXPECT_LE(aligned.utilisation[link], 1 + 1e-9);
    EXPECT_LE(divide_time(t, streams).utilisation[aligned.bottleneck], 1 + 1e-9);
  }
}

// Bytes that take less than a step of the clock, so long after the batch's end begins.
TEST(Timeline, AFewBytesBehindALongKernelEnd) {
  const Topology t = example_system();
  for (const auto& [bytes, kernel_ms] :
       {std::pair{64.0, 10.0}, {64.0, 100.0}, {64.0, 230.0}, {5000.0, 17.0}}) {
    const Timeline schedule =
        align_ends(t, std::vector<StreamModel>{to_device(t, 0, bytes, kernel_ms * kMs)});
    EXPECT_NEAR(schedule.makespan_s, bytes / 6e9 + kernel_ms * kMs, 1e-12);
  }
}

TEST(Timeline, ExchangesThatWaitedForEverEnd) {
  const Topology t = example_system();
  const StreamModel back{t.device(2), t.device(0), 60'000'000, 3 * kMs};
  const Timeline three = align_ends(
      t, std::vector<StreamModel>{{t.device(0), t.device(2), 60'000'000}, back, to_device(t, 1, 900'001)});
  EXPECT_GT(three.makespan_s, 15 * kMs);
  EXPECT_LT(three.makespan_s, 20 * kMs);
  const Timeline two =
      align_ends(t, std::vector<StreamModel>{{t.device(0), t.device(2), 5'000'011},
                                             {t.device(2), t.device(0), 5'000'011, 3 * kMs}});
  EXPECT_GT(two.makespan_s, 3.83 * kMs);
  EXPECT_LT(two.makespan_s, 5 * kMs);
}

TEST(Timeline, RandomExchangesEndWithinTheirBounds) {
  const std::uint32_t first = std::random_device{}();
  for (std::uint32_t seed = first; seed != first + 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    Topology t = random() % 3 == 0   ? example_system()
                 : random() % 2 == 0 ? nehalem_system()
                                     : sandy_bridge_system();
    // Startups, of most machines.
    for (std::uint32_t link = 0; link < t.links().size() && seed % 4 != 0; ++link) {
      LinkRate rate = t.links()[link].rate;
      rate.startup_s = 1e-6 * static_cast<double>(random() % 50);
      rate.further_s = rate.startup_s / 3;
      t.set_rate(link, rate);
    }
    std::vector<StreamModel> streams;
    for (std::size_t i = 0, n = 1 + random() % 6; i < n; ++i) {
      const auto a = static_cast<std::uint32_t>(random() % 4), b = static_cast<std::uint32_t>(random() % 4);
      StreamModel stream{t.device(a), t.device(b), random_bytes(random)};
      if (a == b) (random() % 2 == 0 ? stream.from : stream.to) = t.host();
      if (stream.to != t.host() && random() % 2 == 0) stream.kernel_s = 1e-6 * random_bytes(random) / 20;
      stream.pieces = static_cast<double>(1 + random() % 4);
      streams.push_back(stream);
    }
    const Timeline schedule = align_ends(t, streams);
    double sum = 0, last_begin = 0;
    for (const Sequence& sequence : schedule.sequences) last_begin = std::max(last_begin, sequence.begin_s);
    for (const StreamModel& stream : streams) sum += stream.kernel_s;
    for (const Leg& leg : schedule.legs) {
      double most = std::numeric_limits<double>::infinity(), least = most;
      for (const std::uint32_t link : leg.route) {
        most = std::min(most, t.links()[link].rate.bytes_per_s);
        least = std::min({least, t.links()[link].rate.bytes_per_s, t.links()[link].rate.both()});
      }
      EXPECT_GE(leg.end_s - leg.begin_s, leg.bytes / most * (1 - 1e-9) - 1e-12);
      if (leg.source != Leg::kNone) {
        EXPECT_GE(leg.end_s, schedule.legs[leg.source].end_s);
      }
      sum += leg.startup_s + leg.bytes / least;
    }
    for (std::size_t i = 0; i < streams.size(); ++i) {
      EXPECT_LE(schedule.streams[i].end_s, (last_begin + sum) * (1 + 1e-9));
      EXPECT_GE(schedule.streams[i].end_s, schedule.streams[i].copy_end_s + streams[i].kernel_s - 1e-9);
      EXPECT_LE(schedule.streams[i].end_s, schedule.makespan_s * (1 + 1e-9));
    }
    for (const double use : schedule.utilisation) EXPECT_LE(use, 1 + 1e-9);
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
  EXPECT_EQ(refusal({t.device(0), t.device(0), 5}),
            "batch: stream 1: a copy within GPU0 uses no link: copy_batch() or a kernel does it");
  for (const double pieces : {-100.0, 0.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_NE(refusal({t.host(), t.device(0), 5, 0, pieces}).find("pieces: at least 1"), std::string::npos);
}

TEST(Timeline, AReplayIsOfTheSameWays) {
  const Topology t = example_system();
  const std::vector<StreamModel> there{to_device(t, 0, 1), to_device(t, 1, 1)},
      others{to_device(t, 0, 1), to_device(t, 2, 1)};
  const Timeline schedule = align_ends(t, there);
  EXPECT_EQ(replay(t, there, schedule).makespan_s, schedule.makespan_s);
  EXPECT_THROW((void)replay(t, others, schedule), esker::Error);
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
