// Node buffers: every message comes out exactly once, full buffers are full, stale ones leave.
#include <esker/aggregator/node_buffers.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "collected.hpp"
#include "seed.hpp"

namespace esker {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kSource = 2;
constexpr std::uint32_t kMostPes = 6;
constexpr auto kNever = std::chrono::nanoseconds::max();
constexpr Command kInc = built_in(Operation::kInc, Operand::kUint64);
constexpr Command kPut = built_in(Operation::kPut, Operand::kBytes8);

/// One package's rows, with more columns than messages.
class TestPackage {
 public:
  TestPackage(Command command, std::uint32_t words, std::uint32_t count)
      : command_{command}, words_{words}, stride_{count + 3} {
    rows_.assign(std::size_t{stride_} * words, 0xdead);
  }

  void add(Ledger& ledger, std::uint32_t destination) {
    const std::uint64_t id = ledger.add(destination, command_);
    rows_[count_] = address_word(destination, address_of(command_, id));
    for (std::uint32_t r = 1; r < words_; ++r)
      rows_[std::size_t{r} * stride_ + count_] = row_of(command_, words_, id, r);
    ++count_;
  }
  PackageView view() const { return {command_.word(), words_, count_, stride_, rows_.data()}; }

 private:
  Command command_;
  std::uint32_t words_;
  std::uint32_t stride_;
  std::uint32_t count_ = 0;
  std::vector<std::uint64_t> rows_;
};

struct Bench {
  Bench(std::uint32_t buffer_bytes, std::uint32_t limit, OnExhausted on_exhausted,
        std::uint32_t n_pes = kMostPes)
      : ledger{kSource, kMostPes},
        pool{buffer_bytes, limit},
        buffers{kSource, n_pes, pool, on_exhausted, sink} {}

  void receive_all() {
    while (!sink.held.empty()) {
      ledger.receive(*sink.held.front());
      recycle(sink.held.front());
      sink.held.pop_front();
    }
  }
  void send(Command command, std::uint32_t words, std::uint32_t destination, std::uint32_t count = 1) {
    TestPackage package(command, words, count);
    for (std::uint32_t i = 0; i < count; ++i) package.add(ledger, destination);
    ASSERT_EQ(buffers.append(package.view(), 0), count);
  }

  Ledger ledger;
  BufferPool pool;
  HoldingSink sink;
  NodeBuffers buffers;
};

/// A random command of each kind, with 1 to 9 words.
Command random_command(std::mt19937_64& random, std::uint32_t& words) {
  const auto pick = draw(random, 18);
  if (pick < 9) {
    words = static_cast<std::uint32_t>(pick + 1);
    return active_message(static_cast<std::uint16_t>(words));
  }
  const Command commands[] = {kInc,
                              kPut,
                              built_in(Operation::kPut, Operand::kBytes16),
                              built_in(Operation::kGet, Operand::kBytes1),
                              built_in(Operation::kGet, Operand::kBytes8),
                              built_in(Operation::kGet, Operand::kBytes16),
                              built_in(Operation::kFetchInc, Operand::kUint32),
                              built_in(Operation::kFetchAdd, Operand::kDouble),
                              built_in(Operation::kCompareSwap, Operand::kBytes4)};
  const Command command = commands[pick - 9];
  words = message_words(command);
  return command;
}

void send_at_random(std::uint64_t seed, OnExhausted on_exhausted) {
  std::mt19937_64 random(seed);
  const auto n_pes = static_cast<std::uint32_t>(1 + draw(random, kMostPes));
  // From one message of nine words a buffer to several hundred of one.
  const std::uint32_t sizes[] = {152, 160, 200, 512, 1024, 4096};
  const std::uint32_t buffer_bytes = sizes[draw(random, 6)];
  const auto limit = n_pes + static_cast<std::uint32_t>(draw(random, 4));
  Bench bench(buffer_bytes, limit, on_exhausted, n_pes);
  std::uint32_t words = 0;
  Command command = random_command(random, words);
  for (int round = 0; round < 60; ++round) {
    if (draw(random, 3) == 0) command = random_command(random, words);
    const auto count = static_cast<std::uint32_t>(1 + draw(random, 64));
    TestPackage package(command, words, count);
    const bool one_destination = !is_request(command.operation) && draw(random, 4) == 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      package.add(bench.ledger,
                  one_destination ? n_pes - 1 : static_cast<std::uint32_t>(draw(random, n_pes)));
    }
    std::uint32_t taken = 0;
    const auto append = [&] {
      return one_destination ? bench.buffers.append_to_one(n_pes - 1, package.view(), taken)
                             : bench.buffers.append(package.view(), taken);
    };
    while ((taken = append()) < count) {
      ASSERT_EQ(on_exhausted, OnExhausted::kPushBack);
      ASSERT_FALSE(bench.sink.held.empty()) << "pushed back while no buffer is on its way";
      // As many as may be: the filler must cope with one.
      for (auto n = 1 + draw(random, bench.sink.held.size()); n > 0; --n) {
        bench.ledger.receive(*bench.sink.held.front());
        recycle(bench.sink.held.front());
        bench.sink.held.pop_front();
      }
    }
    if (draw(random, 8) == 0) bench.buffers.close();
    if (draw(random, 8) == 0) bench.buffers.close_stale({false, 1ns * round}, 3ns, kNever);
    if (draw(random, 8) == 0) bench.receive_all();
    if (testing::Test::HasFatalFailure()) return;
  }
  bench.buffers.close();
  EXPECT_TRUE(bench.buffers.empty());
  bench.receive_all();
  bench.ledger.expect_each_exactly_once();
}

TEST(NodeBuffers, EveryMessageComesOutOnceWhenThePoolPushesBack) {
  for (std::uint64_t i = 0; i < 200 && !HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message() << "round " << i << " of seed " << test_seed());
    send_at_random(test_seed() + i, OnExhausted::kPushBack);
  }
}

TEST(NodeBuffers, EveryMessageComesOutOnceWhenBuffersGrow) {
  for (std::uint64_t i = 0; i < 200 && !HasFailure(); ++i) {
    SCOPED_TRACE(testing::Message() << "round " << i << " of seed " << test_seed());
    send_at_random(test_seed() + i, OnExhausted::kGrow);
  }
}

TEST(NodeBuffers, AFullBufferHasNoRoomForAnotherMessage) {
  for (const std::uint32_t capacity : {152u, 1024u, 1032u, 65536u}) {
    for (std::uint32_t words = 1; words <= kMaxMessageWords; ++words) {
      Bench bench(capacity, 8, OnExhausted::kGrow);
      bench.send(active_message(static_cast<std::uint16_t>(words)), words, 1, 3 * capacity / (8 * words));
      ASSERT_GE(bench.sink.held.size(), 2u);  // closed because they were full
      for (const Buffer* buffer : bench.sink.held) {
        EXPECT_GT(buffer->used, capacity - 8 * words) << words << " words in " << capacity << " bytes";
      }
    }
  }
}

TEST(NodeBuffers, AChangeOfCommandClosesABufferOnlyWhenTheNewRunDoesNotFit) {
  constexpr std::uint32_t kCapacity = 1024;
  Bench bench(kCapacity, 8, OnExhausted::kPushBack);
  for (int i = 0; i < 200; ++i) bench.send(i % 2 == 0 ? kInc : kPut, i % 2 == 0 ? 1 : 2, 1);
  ASSERT_GE(bench.sink.held.size(), 2u);
  for (const Buffer* buffer : bench.sink.held) {
    EXPECT_GT(buffer->used, kCapacity - sizeof(wire::RunHeader) - 16);
  }
}

TEST(NodeBuffers, OnlyBuffersOutsideThePoolCountAsGrown) {
  constexpr std::uint32_t kCapacity = 152;  // nine increments
  Bench bench(kCapacity, 2, OnExhausted::kGrow);
  bench.send(kInc, 1, 0, 2 * 9);
  EXPECT_EQ(bench.buffers.grown_bytes(), 0u);
  bench.send(kInc, 1, 0);
  EXPECT_EQ(bench.buffers.grown_bytes(), kCapacity);
  bench.receive_all();
  bench.send(kInc, 1, 1);  // the pool has buffers again
  EXPECT_EQ(bench.buffers.grown_bytes(), kCapacity);
  EXPECT_EQ(bench.buffers.open_buffers(), 2u);
}

TEST(NodeBuffers, APushedBackPackageGoesOnWhereItStopped) {
  Bench bench(152, 1, OnExhausted::kPushBack, 1);
  TestPackage package(kInc, 1, 30);
  for (int i = 0; i < 30; ++i) package.add(bench.ledger, 0);
  EXPECT_EQ(bench.buffers.append(package.view(), 0), 9u);
  EXPECT_EQ(bench.buffers.append(package.view(), 9), 9u);  // asking again moves nothing
  EXPECT_FALSE(bench.pool.had_one());
  bench.receive_all();
  EXPECT_TRUE(bench.pool.had_one());
  EXPECT_EQ(bench.buffers.append(package.view(), 9), 18u);
}

TEST(NodeBuffers, ABufferIsStaleWhenTheTimeOutHasPassedSinceItWasSeenUnchanged) {
  Bench bench(1024, 8, OnExhausted::kPushBack);
  bench.send(kInc, 1, 0);
  EXPECT_FALSE(bench.buffers.close_stale({false, 100us}, 10us, kNever));  // first seen
  EXPECT_FALSE(bench.buffers.close_stale({false, 109us}, 10us, kNever));
  bench.send(kInc, 1, 0);
  EXPECT_FALSE(bench.buffers.close_stale({false, 111us}, 10us, kNever));  // news
  EXPECT_FALSE(bench.buffers.close_stale({false, 120us}, 10us, kNever));
  EXPECT_TRUE(bench.buffers.close_stale({false, 121us}, 10us, kNever));
  ASSERT_EQ(bench.sink.held.size(), 1u);
  EXPECT_EQ(bench.sink.held.front()->messages, 2u);
  EXPECT_FALSE(bench.buffers.close_stale({false, 1s}, 10us, kNever));  // nothing is open
}

TEST(NodeBuffers, OnlyTheDestinationWithoutNewsIsStale) {
  Bench bench(1024, 8, OnExhausted::kPushBack);
  bench.send(kInc, 1, 0);
  bench.send(kInc, 1, 1);
  EXPECT_FALSE(bench.buffers.close_stale({false, 0us}, 10us, kNever));
  bench.send(kInc, 1, 1);
  EXPECT_TRUE(bench.buffers.close_stale({false, 10us}, 10us, kNever));
  ASSERT_EQ(bench.sink.held.size(), 1u);
  EXPECT_EQ(bench.sink.held.front()->destination, 0u);
  EXPECT_EQ(bench.buffers.open_buffers(), 1u);
}

TEST(NodeBuffers, ThoseOfOtherDestinationsStayOpen) {
  Bench bench(1024, 8, OnExhausted::kGrow);
  for (const std::uint32_t pe : {0u, 1u, 3u}) bench.send(kInc, 1, pe);
  EXPECT_FALSE(bench.buffers.close_where([](std::uint32_t pe) { return pe == 2; }));
  EXPECT_TRUE(bench.buffers.close_where([](std::uint32_t pe) { return pe != 1; }));
  ASSERT_EQ(bench.sink.held.size(), 2u);
  EXPECT_EQ(bench.sink.held[0]->destination, 0u);
  EXPECT_EQ(bench.sink.held[1]->destination, 3u);
  EXPECT_EQ(bench.buffers.open_buffers(), 1u);
  bench.buffers.close();
  EXPECT_EQ(bench.sink.held.back()->destination, 1u);
  EXPECT_TRUE(bench.buffers.empty());
}

TEST(NodeBuffers, AChangeOfCommandElsewhereDoesNotKeepABufferForEver) {
  Bench bench(1024, 8, OnExhausted::kPushBack);
  bench.send(kPut, 2, 0, 3);
  EXPECT_FALSE(bench.buffers.close_stale({false, 0us}, 10us, kNever));
  std::chrono::microseconds now{0};
  bool closed = false;
  for (int i = 0; i < 30 && !closed; ++i) {
    bench.send(i % 2 == 0 ? kInc : kPut, i % 2 == 0 ? 1 : 2, 1);
    now += 1us;
    closed = bench.buffers.close_stale({false, now}, 10us, kNever);
  }
  ASSERT_TRUE(closed);
  EXPECT_EQ(bench.sink.held.front()->destination, 0u);
}

TEST(NodeBuffers, TheTimeOutStartsAgainWhenTheClockChanges) {
  Bench bench(1024, 8, OnExhausted::kPushBack);
  bench.send(kInc, 1, 0);
  EXPECT_FALSE(bench.buffers.close_stale({false, 5us}, 10us, kNever));
  EXPECT_FALSE(bench.buffers.close_stale({true, 900us}, 10us, kNever));  // not 895 us later: another clock
  EXPECT_FALSE(bench.buffers.close_stale({true, 909us}, 10us, kNever));
  EXPECT_TRUE(bench.buffers.close_stale({true, 910us}, 10us, kNever));
}

TEST(NodeBuffers, TheBoundOnAgeCountsFromTheFirstMessageWhateverTheIdleClockSays) {
  Bench bench(1024, 8, OnExhausted::kPushBack);
  bench.send(kInc, 1, 0);
  const auto opened_by = NodeBuffers::Clock::now();
  EXPECT_FALSE(bench.buffers.close_stale({false, 0us}, 1h, 1h));
  bench.send(kInc, 1, 0);  // news keep it from the time-out, not from its age
  EXPECT_TRUE(bench.buffers.close_stale({false, 0us}, 1h, NodeBuffers::Clock::now() - opened_by));
  bench.send(kInc, 1, 0);
  EXPECT_FALSE(bench.buffers.close_stale({false, 0us}, 1h, 1h));  // a new buffer is young again
}

TEST(NodeBuffers, ABufferReusedAtTheSameAddressIsNotTakenForTheOldOne) {
  Bench bench(1024, 1, OnExhausted::kPushBack, 1);
  bench.send(kInc, 1, 0);
  EXPECT_FALSE(bench.buffers.close_stale({false, 0us}, 10us, kNever));
  bench.buffers.close();
  bench.receive_all();
  bench.send(kInc, 1, 0);  // the same buffer, filled as far
  EXPECT_FALSE(bench.buffers.close_stale({false, 10us}, 10us, kNever));
  EXPECT_TRUE(bench.buffers.close_stale({false, 20us}, 10us, kNever));
}

TEST(NodeBuffers, RequestsArePackedWhereTheirOffsetsFitHalfAWord) {
  const Command get = built_in(Operation::kGet, Operand::kBytes8);
  Bench bench(4096, 4, OnExhausted::kPushBack, 1);
  bench.send(get, 2, 0, 50);
  bench.send(get, 2, 0, kRarely);  // of one the reply's offset does not fit
  bench.buffers.close();
  bench.receive_all();
  bench.ledger.expect_each_exactly_once();
  EXPECT_EQ(bench.ledger.packed(), 50u);
}

// Packed they are half as long as their replies.
TEST(NodeBuffers, AFrameTakesNoMoreRequestsThanItsRepliesFitAFrame) {
  constexpr std::uint32_t kBytes = 64 + 16 + 50 * 16;
  const Command get = built_in(Operation::kGet, Operand::kBytes8);
  Bench bench(kBytes, 8, OnExhausted::kPushBack, 1);
  bench.ledger.add(0, get);  // message 0, which is never sent
  bench.send(get, 2, 0, 100);
  bench.buffers.close();
  ASSERT_EQ(bench.sink.held.size(), 2u);
  EXPECT_EQ(bench.sink.held[0]->messages, 50u);
  EXPECT_EQ(bench.sink.held[1]->messages, 50u);
  bench.receive_all();
  EXPECT_EQ(bench.ledger.packed(), 100u);
}

TEST(BufferPool, BuffersStandSideBySideInTheMemoryThatItIsGiven) {
  constexpr std::uint32_t kBytes = 256, kBuffers = 3;
  struct alignas(kLineBytes) Memory {
    std::byte bytes[kBuffers * kBytes];
  };
  const auto memory = std::make_shared<Memory>();
  std::weak_ptr<Memory> seen = memory;
  std::shared_ptr<std::byte> kept;
  {
    BufferPool pool(kBytes, kBuffers, {memory, memory->bytes});
    for (std::uint32_t i = 0; i < kBuffers; ++i) {
      Buffer* const buffer = pool.try_acquire();
      ASSERT_NE(buffer, nullptr);
      EXPECT_EQ(buffer->bytes.get(), memory->bytes + i * kBytes);
      kept = buffer->bytes;
    }
    EXPECT_EQ(pool.try_acquire(), nullptr);
  }
  EXPECT_EQ(kept.get(), memory->bytes + 2 * kBytes);
  EXPECT_EQ(seen.use_count(), 2) << "a buffer's bytes keep the memory, whose pool has gone";
}

}  // namespace
}  // namespace esker
