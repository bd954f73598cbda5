// Tracks and histograms: what is added is read, bounds hold, and nothing happens where there is no tracer.
#include <esker/aggregator/trace.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace esker {
namespace {

struct Read {
  std::map<std::string, Tracer::TrackView> tracks;
  std::vector<TraceEvent> events;
};
Read read(const Tracer& tracer) {
  Read all;
  tracer.visit([&](const Tracer::TrackView& track) { all.tracks[track.name] = track; },
               [&](const TraceEvent& event) { all.events.push_back(event); });
  return all;
}

TEST(Tracer, KeepsEachThreadsEventsInOrderOnItsOwnTrack) {
  constexpr std::uint32_t kThreads = 4;
  constexpr std::uint32_t kEvents = 1000;  // several chunks
  Tracer tracer(8, true);
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      tracer.name_thread("writer " + std::to_string(t));
      for (std::uint32_t i = 0; i < kEvents; ++i) {
        TraceSpan span(&tracer, TraceWhat::kRepack);
        span.set_values({t, i, 0, 0});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Read all = read(tracer);
  ASSERT_EQ(all.tracks.size(), kThreads);
  ASSERT_EQ(all.events.size(), kThreads * kEvents);
  std::vector<std::uint32_t> next(kThreads);
  for (const TraceEvent& event : all.events) {
    const std::uint32_t writer = event.values[0];
    EXPECT_EQ(event.track, all.tracks.at("writer " + std::to_string(writer)).index);
    ASSERT_EQ(event.values[1], next[writer]++);
    EXPECT_GE(event.duration_ns, 0);
  }
}

TEST(Tracer, IsReadWhileThreadsGoOn) {
  Tracer tracer(8, true);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (std::uint32_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      tracer.add_counter(TraceWhat::kOccupied, i);
    }
  });
  std::size_t seen = 0;
  while (seen < 3000) {
    const Read all = read(tracer);
    EXPECT_GE(all.events.size(), seen);
    seen = all.events.size();
    for (std::uint32_t i = 0; i < seen; ++i) ASSERT_EQ(all.events[i].values[0], i);
  }
  stop.store(true, std::memory_order_relaxed);
  writer.join();
}

TEST(Tracer, CountsWhatATrackHasNoRoomFor) {
  Tracer tracer(8, true, 300);
  for (int i = 0; i < 1000; ++i) tracer.add_counter(TraceWhat::kOccupied, 1);
  std::thread([&] { tracer.add_counter(TraceWhat::kOccupied, 2); }).join();
  const Read all = read(tracer);
  EXPECT_EQ(all.events.size(), 301u);
  ASSERT_TRUE(all.tracks.contains("thread 0"));
  EXPECT_EQ(all.tracks.at("thread 0").dropped, 700u);
  EXPECT_EQ(all.tracks.at("thread 1").dropped, 0u);
}

TEST(Tracer, ThreadsTellTracersApart) {
  Tracer first(8, true);
  Tracer second(8, true);
  for (int i = 0; i < 10; ++i) {
    first.add_counter(TraceWhat::kOccupied, 1);
    second.add_counter(TraceWhat::kOccupied, 2);
  }
  for (const auto* tracer : {&first, &second}) {
    const Read all = read(*tracer);
    EXPECT_EQ(all.tracks.size(), 1u);
    ASSERT_EQ(all.events.size(), 10u);
    for (const TraceEvent& event : all.events) EXPECT_EQ(event.values[0], tracer == &first ? 1u : 2u);
  }
}

TEST(Tracer, WithoutRecordingKeepsNothing) {
  Tracer tracer(8, false);
  for (int i = 0; i < 10; ++i) const TraceSpan span(&tracer, TraceWhat::kWait, "a bus");
  EXPECT_TRUE(read(tracer).events.empty());
}

TEST(TraceSpan, WithoutATracerIsNothing) {
  TraceSpan span(nullptr, TraceWhat::kWait);
  EXPECT_FALSE(span.is_on());
  RepackSpan repack(nullptr, 0, 1, 0);
  EXPECT_EQ(repack.life(), nullptr);
  repack.set_taken(5);
  const PublishSpan publish(nullptr, 0, 1, 2);
}

TEST(RepackSpan, FollowsSampledPackagesFromTheirStamp) {
  Tracer tracer(4, true);
  for (std::uint64_t ticket = 0; ticket < 2 * Tracer::kSampleEvery; ++ticket) {
    { const PublishSpan publish(&tracer, ticket, 7, 100); }
    // An empty pool first: nothing is taken, and the package keeps its stamp.
    for (const std::uint32_t taken : {0u, 60u}) {
      RepackSpan repack(&tracer, ticket, 7, 0);
      ASSERT_EQ(repack.life() != nullptr, ticket % Tracer::kSampleEvery == 0);
      if (repack.life() != nullptr) {
        EXPECT_GE(repack.life()->repacked_ns, repack.life()->published_ns);
      }
      repack.set_taken(taken);
    }
    RepackSpan rest(&tracer, ticket, 7, 60);
    EXPECT_EQ(rest.life(), nullptr);
    rest.set_taken(40);
  }
  EXPECT_EQ(tracer.package_wait.read().count(), 2 * Tracer::kSampleEvery);
  std::uint64_t messages = 0;
  for (const TraceEvent& event : read(tracer).events) {
    if (event.what == TraceWhat::kRepack) messages += event.values[0];
  }
  EXPECT_EQ(messages, 100 * 2 * Tracer::kSampleEvery);
}

TEST(RepackSpan, APackageThatNobodyStampedHasNoWait) {
  Tracer tracer(4, true);
  RepackSpan repack(&tracer, 0, 7, 0);
  EXPECT_EQ(repack.life(), nullptr);
  repack.set_taken(1);
  EXPECT_EQ(tracer.package_wait.read().count(), 0u);
}

TEST(Histogram, BucketsOfDurationsArePowersOfTwo) {
  EXPECT_EQ(duration_bucket(0), 0u);
  EXPECT_EQ(duration_bucket(1), 1u);
  EXPECT_EQ(duration_bucket(2), 2u);
  EXPECT_EQ(duration_bucket(3), 2u);
  EXPECT_EQ(duration_bucket(1023), 10u);
  EXPECT_EQ(duration_bucket(1024), 11u);
  EXPECT_EQ(duration_bucket(~std::uint64_t{0}), 47u);
}

TEST(Histogram, BucketsOfFillAreTwentieths) {
  EXPECT_EQ(fill_bucket(0, 1000), 0u);
  EXPECT_EQ(fill_bucket(50, 1000), 0u);
  EXPECT_EQ(fill_bucket(51, 1000), 1u);
  EXPECT_EQ(fill_bucket(950, 1000), 18u);
  EXPECT_EQ(fill_bucket(951, 1000), 19u);
  EXPECT_EQ(fill_bucket(1000, 1000), 19u);
}

TEST(Histogram, QuantilesAreThoseOfTheRank) {
  DurationCounters counters;
  for (std::int64_t i = 0; i < 99; ++i) counters.record(100);  // bucket 7
  counters.record(5000);                                       // bucket 13
  counters.record(-3);                                         // a clock that went back
  const DurationHistogram histogram = counters.read();
  EXPECT_EQ(histogram.count(), 101u);
  EXPECT_EQ(histogram.max, 5000u);
  EXPECT_EQ(histogram.bucket_at(0.001), 0u);
  EXPECT_EQ(histogram.bucket_at(0.5), 7u);
  EXPECT_EQ(histogram.bucket_at(0.99), 7u);
  EXPECT_EQ(histogram.bucket_at(1), 13u);
}

}  // namespace
}  // namespace esker
