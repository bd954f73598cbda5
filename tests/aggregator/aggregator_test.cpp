// The aggregators: flushes, time-outs, exhausted pools, and rest where there is nothing to do.
#include <esker/aggregator/aggregator.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <ctime>
#include <thread>

#include "one_pe.hpp"

namespace esker {
namespace {

using namespace std::chrono_literals;

constexpr Command kInc = built_in(Operation::kInc, Operand::kUint64);
constexpr std::uint32_t kPes = 3;

AggregatorSettings patient(std::uint32_t threads) {
  return {.threads = threads,
          .pe = OnePe::kSource,
          .n_pes = kPes,
          .buffer_bytes = 1024,
          .buffers = 2 * kPes,
          .timeout = 1h,
          .max_age = 1h};
}

/// `count` increments for PEs 0, 1, 2, 0, ...
std::vector<std::uint64_t> increments(Ledger& ledger, std::uint32_t count) {
  std::vector<std::uint64_t> words;
  for (std::uint32_t i = 0; i < count; ++i)
    words.push_back(address_word(i % kPes, ledger.add(i % kPes, kInc)));
  return words;
}

void help_until(Aggregators& aggregators, auto holds) {
  while (!holds()) {
    if (!aggregators.help()) std::this_thread::yield();
  }
}

TEST(Aggregators, AFlushSubmitsWhatWasPublishedBeforeIt) {
  OnePe pe(patient(2), 8, 1024);
  Ledger ledger(OnePe::kSource, kPes);
  PackageQueue queue = pe.memory.queue();
  for (std::uint64_t round = 1; round <= 50; ++round) {
    publish(queue, queue.reserve(), kInc, 1, increments(ledger, 7));
    const std::uint64_t epoch = pe.aggregators.request_flush();
    help_until(pe.aggregators, [&] { return pe.aggregators.flushed(epoch); });
    while (pe.receive_one(ledger)) {
    }
    ASSERT_EQ(ledger.received(), 7 * round);
  }
  ledger.expect_each_exactly_once();
  EXPECT_EQ(pe.aggregators.packages(), 50u);
  EXPECT_EQ(pe.aggregators.messages(), 350u);
  EXPECT_EQ(pe.aggregators.was_open(), 0u);
}

// Else a reply could be counted before its request.
TEST(Aggregators, CountARequestBeforeItCanLeave) {
  struct CountingSink final : BufferSink {
    void submit(Buffer* buffer) override {
      left += buffer->messages;
      EXPECT_GE(aggregators->asked(), left);
      recycle(buffer);
    }
    Aggregators* aggregators = nullptr;
    std::uint64_t left = 0;
  } sink;
  constexpr std::uint32_t kMessages = 512;
  PackageMemory memory{2, 16 * kMessages};
  Aggregators aggregators{patient(1), memory.queue(), sink};
  sink.aggregators = &aggregators;
  PackageQueue queue = memory.queue();
  std::vector<std::uint64_t> words;
  for (std::uint32_t i = 0; i < kMessages; ++i) words.push_back(address_word(i % kPes, 8 * i));
  publish(queue, queue.reserve(), built_in(Operation::kGet, Operand::kBytes8), 2, words);
  const std::uint64_t epoch = aggregators.request_flush();
  help_until(aggregators, [&] { return aggregators.flushed(epoch); });
  EXPECT_EQ(sink.left, kMessages);
  EXPECT_EQ(aggregators.asked(), kMessages);
}

TEST(Aggregators, AFlushIncludesPackagesBehindOneThatIsNotYetPublished) {
  OnePe pe(patient(2), 8, 1024);
  Ledger ledger(OnePe::kSource, kPes);
  PackageQueue queue = pe.memory.queue();
  const std::uint64_t slow = queue.reserve();
  publish(queue, queue.reserve(), kInc, 1, increments(ledger, 5));  // by another group
  const std::uint64_t epoch = pe.aggregators.request_flush();
  for (int i = 0; i < 100; ++i) {
    pe.aggregators.help();
    ASSERT_FALSE(pe.aggregators.flushed(epoch)) << "the second package is still in the queue";
    std::this_thread::yield();
  }
  publish(queue, slow, kInc, 1, increments(ledger, 4));
  help_until(pe.aggregators, [&] { return pe.aggregators.flushed(epoch); });
  while (pe.receive_one(ledger)) {
  }
  EXPECT_EQ(ledger.received(), 9u);
  ledger.expect_each_exactly_once();
}

TEST(Aggregators, AFlushThatWaitsForOnePackageSubmitsWhatItCanRead) {
  OnePe pe(patient(1), 8, 1024);
  Ledger ledger(OnePe::kSource, kPes);
  PackageQueue queue = pe.memory.queue();
  publish(queue, queue.reserve(), kInc, 1, increments(ledger, 3));
  const std::uint64_t slow = queue.reserve();
  const std::uint64_t epoch = pe.aggregators.request_flush();
  help_until(pe.aggregators, [&] {
    while (pe.receive_one(ledger)) {
    }
    return ledger.received() == 3;
  });
  EXPECT_FALSE(pe.aggregators.flushed(epoch));
  publish(queue, slow, kInc, 1, increments(ledger, 1));
  help_until(pe.aggregators, [&] { return pe.aggregators.flushed(epoch); });
  while (pe.receive_one(ledger)) {
  }
  ledger.expect_each_exactly_once();
}

TEST(Aggregators, StaleBuffersLeaveWithoutAFlushWhateverTheClock) {
  for (const bool producing : {false, true}) {
    AggregatorSettings settings = patient(1);
    settings.timeout = 1ms;
    OnePe pe(settings, 8, 1024);
    Ledger ledger(OnePe::kSource, kPes);
    PackageQueue queue = pe.memory.queue();
    pe.aggregators.set_producing(producing);
    publish(queue, queue.reserve(), kInc, 1, increments(ledger, 6));
    help_until(pe.aggregators, [&] {
      while (pe.receive_one(ledger)) {
      }
      return ledger.received() == 6;
    });
    ledger.expect_each_exactly_once();
  }
}

TEST(Aggregators, WithoutAggregationEachPackageLeavesByItself) {
  AggregatorSettings settings = patient(1);
  settings.aggregate = false;
  OnePe pe(settings, 8, 1024);
  Ledger ledger(OnePe::kSource, kPes);
  PackageQueue queue = pe.memory.queue();
  for (int i = 0; i < 4; ++i) publish(queue, queue.reserve(), kInc, 1, increments(ledger, 6));
  std::uint32_t frames = 0;
  help_until(pe.aggregators, [&] {  // nobody asks for a flush
    while (pe.receive_one(ledger)) ++frames;
    return ledger.received() == 24;
  });
  EXPECT_EQ(frames, 4 * kPes);
  ledger.expect_each_exactly_once();
}

TEST(Aggregators, AnExhaustedPoolHoldsThePackageUntilABufferIsRecycled) {
  AggregatorSettings settings = patient(1);
  settings.n_pes = 1;
  settings.buffers = 2;
  settings.buffer_bytes = 152;  // nine increments
  OnePe pe(settings, 2, 1024);
  Ledger ledger(OnePe::kSource, kPes);
  PackageQueue queue = pe.memory.queue();
  std::vector<std::uint64_t> words;
  for (int i = 0; i < 40; ++i) words.push_back(address_word(0, ledger.add(0, kInc)));
  publish(queue, queue.reserve(), kInc, 1, words);
  help_until(pe.aggregators, [&] { return pe.aggregators.was_blocked(); });
  const std::uint64_t epoch = pe.aggregators.request_flush();
  for (int i = 0; i < 100; ++i) pe.aggregators.help();
  EXPECT_EQ(pe.aggregators.messages(), 18u);
  EXPECT_EQ(pe.aggregators.packages(), 0u);
  EXPECT_FALSE(pe.aggregators.flushed(epoch));
  help_until(pe.aggregators, [&] {
    pe.receive_one(ledger);
    return pe.aggregators.flushed(epoch);
  });
  while (pe.receive_one(ledger)) {
  }
  EXPECT_EQ(pe.aggregators.messages(), 40u);
  ledger.expect_each_exactly_once();
}

TEST(Aggregators, TakeNothingOfADeviceWhileTheNetworkIsCongested) {
  AggregatorSettings settings = patient(2);
  settings.producers_on_device = true;
  OnePe pe(settings, 8, 1024);
  pe.sink.congested = true;
  Ledger ledger(OnePe::kSource, kPes);
  PackageQueue queue = pe.memory.queue();
  publish(queue, queue.reserve(), kInc, 1, increments(ledger, 7));
  const std::uint64_t epoch = pe.aggregators.request_flush();
  for (int i = 0; i < 100; ++i) {
    pe.aggregators.help();
    ASSERT_FALSE(pe.aggregators.flushed(epoch));
  }
  EXPECT_EQ(pe.aggregators.messages(), 0u);
  pe.sink.congested = false;
  help_until(pe.aggregators, [&] { return pe.aggregators.flushed(epoch); });
  while (pe.receive_one(ledger)) {
  }
  EXPECT_EQ(ledger.received(), 7u);
  ledger.expect_each_exactly_once();
}

std::chrono::nanoseconds process_time() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
}

// Not a synchronisation: the sleep is the interval over which running time is measured.
void expect_rest() {
  constexpr auto kInterval = 300ms;
  const auto before = process_time();
  std::this_thread::sleep_for(kInterval);
  EXPECT_LT(process_time() - before, kInterval / 5) << "of " << kInterval / 1ms << " ms";
}

TEST(Aggregators, RestWhileAFlushWaitsForARecycledBuffer) {
  AggregatorSettings settings = patient(2);
  settings.n_pes = 1;
  settings.buffers = 1;
  settings.buffer_bytes = 152;
  OnePe pe(settings, 8, 1024);
  Ledger ledger(OnePe::kSource, kPes);
  PackageQueue queue = pe.memory.queue();
  std::vector<std::uint64_t> words;
  for (int i = 0; i < 20; ++i) words.push_back(address_word(0, ledger.add(0, kInc)));
  publish(queue, queue.reserve(), kInc, 1, words);
  help_until(pe.aggregators, [&] { return pe.aggregators.was_blocked(); });
  const std::uint64_t epoch = pe.aggregators.request_flush();
  expect_rest();  // one has no buffer, the other nothing to do
  EXPECT_FALSE(pe.aggregators.flushed(epoch));
  help_until(pe.aggregators, [&] {
    pe.receive_one(ledger);
    return pe.aggregators.flushed(epoch);
  });
  while (pe.receive_one(ledger)) {
  }
  ledger.expect_each_exactly_once();
}

TEST(Aggregators, RestWhileAFlushWaitsForAPackage) {
  OnePe pe(patient(2), 8, 1024);
  Ledger ledger(OnePe::kSource, kPes);
  PackageQueue queue = pe.memory.queue();
  const std::uint64_t slow = queue.reserve();
  const std::uint64_t epoch = pe.aggregators.request_flush();
  expect_rest();
  publish(queue, slow, kInc, 1, increments(ledger, 3));
  help_until(pe.aggregators, [&] { return pe.aggregators.flushed(epoch); });
  while (pe.receive_one(ledger)) {
  }
  ledger.expect_each_exactly_once();
}

}  // namespace
}  // namespace esker
