// Which of the host's threads run lanes.
#include <cstdint>
#include <mutex>
#include <set>
#include <thread>

#include "pes.hpp"

namespace esker::testing {
namespace {

/// Threads that have run a lane of `launches` launches of `groups` groups, by four lane threads.
std::set<std::thread::id> threads_of(std::uint64_t groups, int launches) {
  Config config = tiny_config();
  config.cpu_threads = 4;
  std::mutex mutex;
  std::set<std::thread::id> seen;
  Pes(1, config).run([&](Runtime& rt) {
    const std::thread::id caller = std::this_thread::get_id();
    std::uint64_t lanes = 0;
    for (int i = 0; i < launches; ++i) {
      rt.launch(groups * config.group_lanes, [&](Lane) {
        const std::lock_guard lock(mutex);
        seen.insert(std::this_thread::get_id());
        ++lanes;
      });
    }
    EXPECT_EQ(lanes, groups * config.group_lanes * static_cast<std::uint64_t>(launches));
    EXPECT_TRUE(groups > 1 || seen.contains(caller));
  });
  return seen;
}

TEST(LaneWorkers, LeaveASingleGroupToTheCaller) { EXPECT_EQ(threads_of(1, 2000).size(), 1u); }

TEST(LaneWorkers, ShareMoreGroupsAfterSingleOnes) {
  EXPECT_GT(threads_of(64, 500).size(), 1u);
  // In turn: who slept through single groups misses none of the next launch.
  Config config = tiny_config();
  config.cpu_threads = 3;
  Pes(2, config).run([&](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(2);
    for (std::uint64_t i = 0; i < 300; ++i) {
      const std::uint64_t groups = i % 2 == 0 ? 1 : 9;
      rt.launch(groups * config.group_lanes,
                [=](WorkItem item) { shmem_inc(item, &words[item.global_id() % 2], 1 - item.pe()); });
    }
    rt.barrier_all();
    for (const std::uint64_t word : rt.heap().read(words)) EXPECT_EQ(word, 150 * 10 * config.group_lanes / 2);
  });
}

}  // namespace
}  // namespace esker::testing
