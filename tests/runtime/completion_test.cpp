// quiet, barrier_all, and progress without anybody's help.
#include <atomic>
#include <chrono>
#include <latch>
#include <thread>

#include <gtest/gtest.h>

#include "pes.hpp"
#include "seed.hpp"

namespace esker::testing {
namespace {

/// Another PE's word: over loopback all heaps stand in one process.
std::uint64_t look(std::uint64_t* word) {
  return std::atomic_ref<std::uint64_t>(*word).load(std::memory_order_acquire);
}

/// Waits in the program's own code, outside Esker.
template <class Ready>
bool comes_true(Ready ready) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  while (!ready()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Nothing closes a buffer but a flush or a full one.
Config patient_config() {
  Config config = tiny_config();
  config.aggregation_timeout = std::chrono::seconds{60};
  config.aggregation_max_age = std::chrono::seconds{60};
  return config;
}

TEST(Quiet, AppliesAtAPeerWhoseThreadIsOutsideEsker) {
  constexpr std::uint64_t kWords = 500;
  std::uint64_t* peers = nullptr;
  std::latch told{1}, looked{1};
  run_pes(2, patient_config(), [&](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(kWords);
    if (rt.pe() == 1) {
      peers = words.data();
      told.count_down();
      looked.wait();
      return;
    }
    told.wait();
    rt.launch(kWords, [=](WorkItem item) { shmem_inc(item, &words[item.global_id()], 1); });
    rt.quiet();
    std::uint64_t missing = 0;
    for (std::uint64_t i = 0; i < kWords; ++i) missing += look(peers + i) == 1 ? 0 : 1;
    EXPECT_EQ(missing, 0u);
    looked.count_down();
  });
}

// What handlers have sent lies in open buffers of the network thread or of a helper when quiet comes.
TEST(Quiet, CoversWhatHandlersHereHaveSent) {
  constexpr std::uint64_t kRounds = 200;
  for (const std::uint32_t helpers : {0u, 1u, 3u}) {
    Config config = patient_config();
    config.apply_helpers = helpers;
    std::uint64_t* peers = nullptr;
    std::latch told{1}, looked{1};
    run_pes(2, config, [&](Runtime& rt) {
      const auto words = rt.heap().allocate<std::uint64_t>(2);
      const auto forward = rt.register_handler<std::uint64_t, std::uint32_t>(
          "forward", [=](HandlerContext& context, std::uint64_t& ran, const std::uint32_t& pe) {
            shmem_inc(context, &words[1], pe);
            std::atomic_ref<std::uint64_t>(ran).fetch_add(1, std::memory_order_release);
          });
      rt.barrier_all();
      if (rt.pe() == 1) {
        peers = words.data();
        told.count_down();
        looked.wait();
        return;
      }
      told.wait();
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        // More than fit in a buffer: some run without anybody's flush.
        const std::uint64_t before = look(words.data());
        rt.launch(100, [=](WorkItem item) { shmem_am(item, forward, &words[0], 1, 0); });
        ASSERT_TRUE(comes_true([&] { return look(words.data()) > before; }));
        const std::uint64_t ran = look(words.data());
        rt.quiet();
        EXPECT_GE(look(peers + 1), ran) << helpers << " helpers, round " << round;
      }
      looked.count_down();
    });
  }
}

TEST(Progress, MessagesAndRepliesMoveWhileBothProgramsAreOutsideEsker) {
  std::latch replied{1};
  run_pes(2, [&](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(2);
    const auto ask = rt.register_handler<std::uint64_t, std::uint32_t>(
        "ask", [=](HandlerContext& context, std::uint64_t& asked, const std::uint32_t&) {
          ++asked;
          shmem_put(context, &words[1], asked + 41, context.source());
        });
    if (rt.pe() == 1) {
      replied.wait();
      return;
    }
    rt.launch(1, [=](WorkItem item) { shmem_am(item, ask, &words[0], 0, 1); });
    EXPECT_TRUE(comes_true([&] { return look(&words[1]) == 42; }));
    replied.count_down();
  });
}

TEST(Put, ToThisPeIsAStoreDoneOnReturn) {
  run_pes(2, [](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(64);
    rt.launch(64, [=](WorkItem item) {
      const std::uint64_t id = item.global_id();
      shmem_put(item, &words[id], id + 7, item.pe());
      EXPECT_EQ(words[id], id + 7);
    });
  });
}

TEST(Barrier, OrdersRoundsOfMessages) {
  run_pes(3, [](Runtime& rt) {
    constexpr std::uint64_t kRounds = 40;
    const auto word = rt.heap().allocate<std::uint64_t>(1);
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      // Everybody must find exactly what everybody sent up to now.
      rt.launch(5, [=](WorkItem item) {
        for (std::uint32_t pe = 0; pe < item.n_pes(); ++pe) shmem_inc(item, word.data(), pe);
      });
      rt.barrier_all();
      ASSERT_EQ(word[0], round * 5 * rt.n_pes());
      rt.barrier_all();
    }
  });
}

TEST(Barrier, AfterUnevenWorkFindsEverything) {
  run_pes(4, [](Runtime& rt) {
    const auto word = rt.heap().allocate<std::uint64_t>(1);
    // PE p sends p * 400 messages, all to PE 3.
    rt.launch(rt.pe() * 400, [=](WorkItem item) { shmem_inc(item, word.data(), 3); });
    rt.barrier_all();
    EXPECT_EQ(word[0], rt.pe() == 3 ? 2400u : 0u);
  });
}

}  // namespace
}  // namespace esker::testing
