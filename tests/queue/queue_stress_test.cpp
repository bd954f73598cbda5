// Threads push through small rings for many rounds, and each message is counted: a sum could hide one
// lost and one doubled message.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <esker/queue/mpmc_queue.hpp>
#include <esker/queue/package_memory.hpp>
#include <esker/queue/package_queue.hpp>
#include <esker/queue/spsc_queue.hpp>

namespace esker {
namespace {

// ESKER_TEST_SEED repeats a run's choices.
std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* given = std::getenv("ESKER_TEST_SEED");
    const std::uint64_t chosen = given ? std::stoull(given) : std::random_device{}();
    std::cout << "ESKER_TEST_SEED=" << chosen << '\n';
    return chosen;
  }();
  return value;
}

// Gives up the core now and then, so that the threads meet in different states.
class Jitter {
 public:
  explicit Jitter(std::uint64_t stream) : random_{seed() * 1000 + stream} {}
  std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
  void maybe_yield() {
    if (below(16) == 0) std::this_thread::yield();
  }

 private:
  std::mt19937_64 random_;
};

// How often each message arrived.
class Arrivals {
 public:
  explicit Arrivals(std::uint64_t messages) : seen_(messages) {}
  void count(std::uint64_t message) {
    if (message >= seen_.size()) {
      strangers_.fetch_add_relaxed(1);
    } else {
      seen_[message].fetch_add_relaxed(1);
    }
  }
  void expect_each_once() {
    EXPECT_EQ(strangers_.load_relaxed(), 0u);
    for (std::size_t m = 0; m < seen_.size(); ++m) {
      ASSERT_EQ(seen_[m].load_relaxed(), 1u) << "message " << m << " of " << seen_.size();
    }
  }

 private:
  std::vector<SystemAtomic<std::uint32_t>> seen_;
  SystemAtomic<std::uint32_t> strangers_;
};

struct Message {  // three words: a torn one does not check
  std::uint64_t id = 0, twice = 0, inverse = 0;
  explicit Message(std::uint64_t value = 0) : id{value}, twice{2 * value}, inverse{~value} {}
  bool whole() const { return twice == 2 * id && inverse == ~id; }
};

class SpscStress : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Capacity, SpscStress, testing::Values(1, 2, 8, 64));

TEST_P(SpscStress, EveryMessageArrivesOnceWholeAndInOrder) {
  constexpr std::uint64_t kMessages = 40'000;
  SpscQueue<Message> queue(GetParam());
  seed();
  std::jthread producer([&] {
    Jitter jitter(0);
    for (std::uint64_t i = 0; i < kMessages; ++i, jitter.maybe_yield()) {
      while (!queue.try_push(Message(i))) std::this_thread::yield();
    }
  });
  Jitter jitter(1);
  Message message;
  for (std::uint64_t i = 0; i < kMessages; ++i, jitter.maybe_yield()) {
    while (!queue.try_pop(message)) std::this_thread::yield();
    ASSERT_TRUE(message.whole());
    ASSERT_EQ(message.id, i);
  }
  EXPECT_FALSE(queue.try_pop(message));
}

struct Shape {
  std::uint32_t producers, consumers, slots;
};
std::string shape_name(const testing::TestParamInfo<Shape>& info) {
  return std::to_string(info.param.producers) + "Producers" + std::to_string(info.param.consumers) +
         "Consumers" + std::to_string(info.param.slots) + "Slots";
}

class MpmcStress : public testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, MpmcStress,
                         testing::Values(Shape{1, 1, 1}, Shape{3, 1, 4}, Shape{1, 3, 2}, Shape{3, 3, 2},
                                         Shape{4, 4, 16}),
                         shape_name);

TEST_P(MpmcStress, EveryMessageArrivesOnceWholeAndInItsProducersOrder) {
  constexpr std::uint64_t kEach = 40'000;
  const auto [producers, consumers, slots] = GetParam();
  const std::uint64_t total = producers * kEach;
  MpmcQueue<Message> queue(slots);
  Arrivals arrivals(total);
  SystemAtomic<std::uint64_t> popped(0), faults(0);
  seed();
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t p = 0; p < producers; ++p) {
      threads.emplace_back([&, p] {
        Jitter jitter(p);
        for (std::uint64_t i = 0; i < kEach; ++i, jitter.maybe_yield()) {
          while (!queue.try_push(Message(p * kEach + i))) std::this_thread::yield();
        }
      });
    }
    for (std::uint32_t c = 0; c < consumers; ++c) {
      threads.emplace_back([&, c, n_producers = producers] {
        Jitter jitter(100 + c);
        std::vector<std::uint64_t> next(n_producers, 0);  // a producer's messages reach one consumer in order
        Message message;
        while (popped.load_relaxed() < total) {
          if (!queue.try_pop(message)) {
            std::this_thread::yield();
            continue;
          }
          popped.fetch_add_relaxed(1);
          arrivals.count(message.id);
          const std::uint64_t from = message.id / kEach;
          if (!message.whole() || from >= n_producers || message.id < next[from]) {
            faults.fetch_add_relaxed(1);
          } else {
            next[from] = message.id + 1;
          }
          jitter.maybe_yield();
        }
      });
    }
  }
  EXPECT_EQ(faults.load_relaxed(), 0u);
  EXPECT_TRUE(queue.was_empty());
  arrivals.expect_each_once();
}

class PackageStress : public testing::TestWithParam<Shape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, PackageStress,
                         testing::Values(Shape{1, 1, 1}, Shape{3, 1, 4}, Shape{1, 3, 2}, Shape{3, 3, 2},
                                         Shape{4, 4, 16}),
                         shape_name);

// Message m of a package with w words is the words m, m + kStep, m + 2 kStep, ...
constexpr std::uint64_t kStep = 1ull << 40;

TEST_P(PackageStress, EveryMessageOfEveryPackageArrivesOnceAndWhole) {
  constexpr std::uint64_t kEach = 40'000;
  constexpr std::uint32_t kPayload = 512;
  const auto [producers, consumers, slots] = GetParam();
  const std::uint64_t total = producers * kEach;
  PackageMemory memory(slots, kPayload);
  Arrivals arrivals(total);
  SystemAtomic<std::uint64_t> producing(producers), torn(0);
  seed();
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t p = 0; p < producers; ++p) {
      threads.emplace_back([&, p, queue = memory.queue()]() mutable {
        Jitter jitter(p);
        std::uint64_t next = p * kEach;
        const std::uint64_t end = next + kEach;
        while (next < end) {
          std::uint32_t packages = jitter.below(4);  // with one slot: more tickets than slots
          std::uint64_t first = 0;
          if (packages > 0) {
            first = queue.reserve(packages);
          } else {
            packages = 1;
            while (!queue.try_reserve(first)) std::this_thread::yield();
          }
          for (std::uint64_t t = first; t < first + packages; ++t) {
            const std::uint32_t words = 1 + jitter.below(8);
            const auto count = static_cast<std::uint32_t>(
                std::min<std::uint64_t>(jitter.below(queue.columns(words) + 1), end - next));
            while (!queue.was_empty(t)) std::this_thread::yield();
            for (std::uint32_t r = 0; r < words; ++r) {
              for (std::uint32_t lane = 0; lane < count; ++lane) {
                queue.row(t, words, r)[lane] = next + lane + r * kStep;
              }
            }
            queue.publish(t, p, words, count);
            next += count;
          }
          jitter.maybe_yield();
        }
        producing.fetch_add_acq_rel(~std::uint64_t{0});
      });
    }
    for (std::uint32_t c = 0; c < consumers; ++c) {
      threads.emplace_back([&, c, queue = memory.queue()]() mutable {
        Jitter jitter(100 + c);
        std::uint64_t ticket = 0;
        // Until the last package, which may be an empty one behind the last message.
        while (producing.load_acquire() > 0 || queue.was_occupied() > 0) {
          if (!queue.try_peek(ticket)) {
            std::this_thread::yield();
            continue;
          }
          const auto& header = queue.header(ticket);
          for (std::uint32_t lane = 0; lane < header.count; ++lane) {
            const std::uint64_t message = queue.row(ticket, header.words, 0)[lane];
            bool whole = message / kEach == header.command;
            for (std::uint32_t r = 1; r < header.words; ++r) {
              whole &= queue.row(ticket, header.words, r)[lane] == message + r * kStep;
            }
            if (!whole) torn.fetch_add_relaxed(1);
            arrivals.count(message);
          }
          queue.release(ticket);
          jitter.maybe_yield();
        }
      });
    }
  }
  EXPECT_EQ(torn.load_relaxed(), 0u);
  arrivals.expect_each_once();
}

}  // namespace
}  // namespace esker
