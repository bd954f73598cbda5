// quiet, barrier_all, and progress without anybody's help.
#include <atomic>
#include <barrier>
#include <chrono>
#include <latch>
#include <memory>
#include <thread>

#include "../device/gtest.hpp"
#include "pes.hpp"
#include "seed.hpp"

namespace esker::testing {
namespace {

/// This PE's word, while messages and handlers change it. No call that moves anything.
std::uint64_t look(Runtime& rt, SymmetricArray<std::uint64_t> words, std::uint64_t index) {
  if (rt.heap().on_host())
    return std::atomic_ref<std::uint64_t>(words[index]).load(std::memory_order_acquire);
  std::uint64_t word[1];
  rt.heap().read(words, index, std::span<std::uint64_t>(word));
  return word[0];
}

/// What the host of a CPU, and ThreadSanitizer, need said of a counter that look() looks at.
struct Counter {
  std::uint64_t& word;
  ESKER_HD void count() const {
#if defined(ESKER_ON_CUDA) || defined(ESKER_ON_HIP)
    ++word;  // alone on its ownership block
#else
    std::atomic_ref<std::uint64_t>(word).fetch_add(1, std::memory_order_release);
#endif
  }
};

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
void be_patient(Config& config) {
  config.aggregation_timeout = std::chrono::seconds{60};
  config.aggregation_max_age = std::chrono::seconds{60};
}

/// Two PEs, patient. On the CPU with helpers, on a GPU with the heap and the path to the peer in each place.
std::vector<Way> pairs() {
  std::vector<Way> all;
  if (kOnGpu) {
    all = gpu_ways();
    std::erase_if(all, [](const Way& way) { return way.n_pes != 2; });
    all.push_back(way("heap on the host", 2, [](Config& config) { config.heap = HeapKind::kHost; }));
  } else {
    for (const std::uint32_t helpers : {0u, 1u, 3u}) {
      all.push_back(way(std::to_string(helpers) + " helpers", 2,
                        [=](Config& config) { config.apply_helpers = helpers; }));
    }
  }
  for (Way& way : all) be_patient(way.config);
  return all;
}

class Pair : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, Pair, ::testing::ValuesIn(pairs()));

/// PE 1 looks at its own memory, and is outside Esker until then.
void apply_at_idle_peer(Runtime& rt, std::latch& quiet) {
  constexpr std::uint64_t kWords = 500;
  const auto words = rt.heap().allocate<std::uint64_t>(kWords);
  if (rt.pe() == 0) {
    rt.launch(kWords, [=] ESKER_LAMBDA(WorkItem item) { shmem_inc(item, &words[item.global_id()], 1); });
    rt.quiet();
    quiet.count_down();
    return;
  }
  quiet.wait();
  std::uint64_t missing = 0;
  for (const std::uint64_t word : rt.heap().read(words)) missing += word == 1 ? 0 : 1;
  EXPECT_EQ(missing, 0u);
}
TEST_P(Pair, QuietAppliesAtAPeerWhoseThreadIsOutsideEsker) {
  std::latch quiet{1};
  run_pes(GetParam(), [&](Runtime& rt) { apply_at_idle_peer(rt, quiet); });
}

/// What the two PEs of a test say to each other beside Esker.
struct Aside {
  std::barrier<> both{2};
  std::uint64_t ran = 0;  // PE 0 writes it before they meet
};

// What handlers have sent lies in open buffers of the network thread, or of a helper, when quiet comes.
void quiet_with_handlers(Runtime& rt, Aside& aside) {
  constexpr std::uint64_t kRounds = kSimulated ? 15 : kOnGpu ? 50 : 200;
  const auto words = rt.heap().allocate<std::uint64_t>(2);
  const auto forward = rt.register_handler<std::uint64_t, std::uint32_t>(
      "forward", [=] ESKER_LAMBDA(HandlerContext & context, std::uint64_t & ran, const std::uint32_t& pe) {
        shmem_inc(context, &words[1], pe);
        Counter{ran}.count();
      });
  rt.barrier_all();
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    if (rt.pe() == 0) {
      // More than fit in a buffer: some run without anybody's flush.
      const std::uint64_t before = look(rt, words, 0);
      rt.launch(100, [=] ESKER_LAMBDA(WorkItem item) { shmem_am(item, forward, &words[0], 1, 0); });
      EXPECT_TRUE(comes_true([&] { return look(rt, words, 0) > before; }));
      aside.ran = look(rt, words, 0);
      rt.quiet();
    }
    aside.both.arrive_and_wait();
    if (rt.pe() == 1) {
      EXPECT_GE(look(rt, words, 1), aside.ran) << "round " << round;
    }
    aside.both.arrive_and_wait();
  }
}
TEST_P(Pair, QuietCoversWhatHandlersHereHaveSent) {
  Aside aside;
  run_pes(GetParam(), [&](Runtime& rt) { quiet_with_handlers(rt, aside); });
}

void ask_and_wait(Runtime& rt, std::latch& replied) {
  const auto words = rt.heap().allocate<std::uint64_t>(2);
  const auto ask = rt.register_handler<std::uint64_t, std::uint32_t>(
      "ask", [=] ESKER_LAMBDA(HandlerContext & context, std::uint64_t & asked, const std::uint32_t&) {
        ++asked;
        shmem_put(context, &words[1], asked + 41, context.source());
      });
  if (rt.pe() == 1) {
    replied.wait();
    return;
  }
  rt.launch(1, [=] ESKER_LAMBDA(WorkItem item) { shmem_am(item, ask, &words[0], 0, 1); });
  EXPECT_TRUE(comes_true([&] { return look(rt, words, 1) == 42; }));
  replied.count_down();
}
TEST_P(Pair, MessagesAndRepliesMoveWhileBothProgramsAreOutsideEsker) {
  Way impatient = GetParam();
  impatient.config.aggregation_timeout = Config{}.aggregation_timeout;
  impatient.config.aggregation_max_age = Config{}.aggregation_max_age;
  std::latch replied{1};
  run_pes(impatient, [&](Runtime& rt) { ask_and_wait(rt, replied); });
}

void put_here(Runtime& rt) {
  const auto words = rt.heap().allocate<std::uint64_t>(64);
  const auto seen = rt.heap().allocate<std::uint64_t>(64);
  rt.launch(64, [=] ESKER_LAMBDA(WorkItem item) {
    const std::uint64_t id = item.global_id();
    shmem_put(item, &words[id], id + 7, item.pe());
    seen[id] = words[id];
  });
  const std::vector<std::uint64_t> got = rt.heap().read(seen);
  for (std::uint64_t id = 0; id < 64; ++id) EXPECT_EQ(got[id], id + 7);
}
TEST(Put, ToThisPeIsAStoreDoneOnReturn) { run_pes(2, put_here); }

void rounds_of_messages(Runtime& rt) {
  constexpr std::uint64_t kRounds = kIsSlow ? 12 : 40;
  const auto word = rt.heap().allocate<std::uint64_t>(1);
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    // Everybody must find exactly what everybody sent up to now.
    rt.launch(5, [=] ESKER_LAMBDA(WorkItem item) {
      for (std::uint32_t pe = 0; pe < item.n_pes(); ++pe) shmem_inc(item, word.data(), pe);
    });
    rt.barrier_all();
    ASSERT_EQ(rt.heap().read(word)[0], round * 5 * rt.n_pes());
    rt.barrier_all();
  }
}

void uneven_work(Runtime& rt) {
  const auto word = rt.heap().allocate<std::uint64_t>(1);
  // PE p sends p * 400 messages, all to the last PE.
  rt.launch(rt.pe() * 400,
            [=] ESKER_LAMBDA(WorkItem item) { shmem_inc(item, word.data(), item.n_pes() - 1); });
  rt.barrier_all();
  const std::uint64_t all = rt.n_pes() * (rt.n_pes() - 1) / 2 * 400;
  EXPECT_EQ(rt.heap().read(word)[0], rt.pe() + 1 == rt.n_pes() ? all : 0u);
}

class Barrier : public ::testing::TestWithParam<Way> {};
TEST_P(Barrier, OrdersRoundsOfMessages) { run_pes(GetParam(), rounds_of_messages); }
TEST_P(Barrier, AfterUnevenWorkFindsEverything) { run_pes(GetParam(), uneven_work); }

#if !defined(ESKER_DEVICE_COMPILER)

/// PE 3 counts itself out before its handler runs. The handler's message to PE 0 is counted in, since that PE
/// comes late; those to PEs 1 and 2 are slow. So the sums of sent and applied are equal too early.
TEST(Barrier, IsNotFooledByEqualSumsOfDifferentMoments) {
  static constexpr std::chrono::milliseconds kMoment{30};
  Pes pes(5);
  pes.world().set_tamper([slow = std::make_shared<std::atomic<bool>>(true)](
                             std::uint32_t from, std::uint32_t to, std::vector<std::byte>& /*frame*/) {
    // PE 1 cannot receive meanwhile, PE 2 could.
    if (from == 3 && to == 1 && slow->exchange(false)) std::this_thread::sleep_for(10 * kMoment);
    return loopback::Fate::kDeliver;
  });
  pes.run([&](Runtime& rt) {
    const auto word = rt.heap().allocate<std::uint64_t>(1);
    const auto split = rt.register_handler<std::uint64_t, std::uint64_t>(
        "split", [=](HandlerContext& context, std::uint64_t&, const std::uint64_t& value) {
          for (std::uint32_t pe = 0; pe < 3; ++pe) shmem_add(context, word.data(), value, pe);
        });
    rt.barrier_all();
    if (rt.pe() == 4) {
      std::this_thread::sleep_for(kMoment);
      rt.launch(1, [=](WorkItem item) { shmem_am(item, split, word.data(), std::uint64_t{5}, 3); });
    }
    if (rt.pe() == 0) std::this_thread::sleep_for(3 * kMoment);
    rt.barrier_all();
    EXPECT_EQ(word[0], rt.pe() < 3 ? 5u : 0u) << "on PE " << rt.pe();
  });
}

#endif

std::vector<Way> several() {
  const auto as_it_is = [](Config&) {};
  return kOnGpu ? gpu_ways() : std::vector<Way>{way("tiny", 3, as_it_is), way("tiny", 4, as_it_is)};
}
INSTANTIATE_TEST_SUITE_P(Ways, Barrier, ::testing::ValuesIn(several()));

}  // namespace
}  // namespace esker::testing
