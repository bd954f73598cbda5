// Sleepers wake, in this process and in another one, and no ring is lost.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <thread>

#include <esker/queue/doorbell.hpp>

namespace esker {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A word that each side waits for, and where.
struct Place {
  alignas(64) Doorbell bell;
  alignas(64) std::atomic<std::uint64_t> word{0};

  void set(std::uint64_t value) {
    word.store(value, std::memory_order_seq_cst);
    bell.ring_after_store();
  }
  /// False: a sleep of `at_most` has passed without a ring.
  bool wait_for(std::uint64_t value, seconds at_most) {
    while (word.load(std::memory_order_seq_cst) < value) {
      const auto began = Clock::now();
      bell.wait(at_most, [&] { return word.load(std::memory_order_seq_cst) >= value; });
      if (Clock::now() - began >= at_most) return false;
    }
    return true;
  }
};

/// A T in memory that children share.
template <class T>
class Shared {
 public:
  Shared() : at_{mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)} {
    if (at_ == MAP_FAILED) throw std::runtime_error("mmap");
    new (at_) T{};
  }
  ~Shared() { munmap(at_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T* operator->() { return static_cast<T*>(at_); }

 private:
  void* const at_;
};

/// A process that runs `function`, whose result is whether all went well.
template <class Function>
pid_t start(Function function) {
  const pid_t child = fork();
  if (child == 0) _exit(function() ? 0 : 1);
  if (child < 0) throw std::runtime_error("fork");
  return child;
}
int status_of(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST(Doorbell, DoesNotSleepWhenWhatItWaitsForIsThere) {
  Doorbell bell;
  int asked = 0;
  const auto began = Clock::now();
  bell.wait(seconds{20}, [&] { return ++asked > 0; });
  EXPECT_EQ(asked, 1);
  EXPECT_LT(Clock::now() - began, seconds{10});
}

TEST(Doorbell, SleepsNoLongerThanItMay) {
  Doorbell bell;
  const auto began = Clock::now();
  bell.wait(milliseconds{30}, [] { return false; });
  EXPECT_GE(Clock::now() - began, milliseconds{29});
  EXPECT_LT(Clock::now() - began, seconds{10});
}

TEST(Doorbell, RingWakesEverySleeper) {
  Doorbell bell;
  std::atomic<bool> is_there{false};
  std::atomic<int> woken{0};
  const auto began = Clock::now();
  {
    const auto sleep = [&] {
      while (!is_there.load()) bell.wait(seconds{20}, [&] { return is_there.load(); });
      ++woken;
    };
    std::jthread one(sleep), two(sleep);
    is_there.store(true);
    bell.ring();
  }
  EXPECT_EQ(woken, 2);
  EXPECT_LT(Clock::now() - began, seconds{10});
}

// The two meet, then one sleeps and the other one rings, some nanoseconds apart. What weaker orders may do is
// the business of scripts/model/doorbell.pml.
TEST(Doorbell, LosesNoRingWhileItsSleeperLiesDown) {
  constexpr std::uint64_t kRounds = 50'000;
  Place place;
  alignas(64) std::atomic<std::uint64_t> met{0};
  std::atomic<bool> has_lost{false};
  const auto play = [&](std::uint64_t random, const auto& turn) {
    for (std::uint64_t round = 1; round <= kRounds && !has_lost; ++round) {
      met.fetch_add(1);
      for (int i = 0; met < 2 * round && !has_lost; ++i) {
        if (i > 2000) std::this_thread::yield();  // there is one core
      }
      random = random * 6364136223846793005 + 1442695040888963407;
      for (std::uint64_t i = random >> 57; i > 0; --i) std::atomic_signal_fence(std::memory_order_seq_cst);
      turn(round);
    }
  };
  {
    std::jthread ringer([&] { play(1, [&](std::uint64_t round) { place.set(round); }); });
    std::jthread sleeper([&] {
      play(2, [&](std::uint64_t round) {
        if (!place.wait_for(round, seconds{20})) has_lost = true;
      });
    });
  }
  EXPECT_FALSE(has_lost);
}

TEST(Doorbell, WakesASleeperOfAnotherProcess) {
  Shared<Place> place, back;
  const pid_t child = start([&] {
    for (std::uint64_t round = 1; round <= 1000; ++round) {
      if (!place->wait_for(round, seconds{20})) return false;
      back->set(round);
    }
    return true;
  });
  for (std::uint64_t round = 1; round <= 1000; ++round) {
    place->set(round);
    ASSERT_TRUE(back->wait_for(round, seconds{20})) << round;
  }
  EXPECT_EQ(status_of(child), 0);
}

TEST(Doorbell, OneThatIsKilledAsleepHoldsUpNobody) {
  Shared<Place> place, said;
  const pid_t killed = start([&] {
    said->set(1);
    return place->wait_for(1, seconds{20});
  });
  ASSERT_TRUE(said->wait_for(1, seconds{20}));
  kill(killed, SIGKILL);
  EXPECT_TRUE(WIFSIGNALED(status_of(killed)));
  const pid_t other = start([&] { return place->wait_for(1, seconds{20}); });
  place->set(1);
  EXPECT_EQ(status_of(other), 0);
}

}  // namespace
}  // namespace esker
