// Runs in which nothing moves: the report says which domain is in a task, who asks, and whose stack waits.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>

#include <esker/tasks.hpp>

namespace esker::testing {
namespace {

// Decisions at random, so that small trees change hands.
struct Random {
  static constexpr std::uint32_t kBatch = 2;
  static constexpr std::uint32_t kHotSegments = 4;
  static constexpr bool kRandom = true;
};

// One leaf does not return until the run is over.
struct Stays {
  static constexpr int kMaxSpawns = 2;
  int n;
  bool leads_there;
  void operator()(auto& task) const {
    if (n == 0) {
      while (leads_there && !task.stop_requested()) {
      }
      return task.give(1);
    }
    task.spawn(Stays{n - 1, false}, Stays{n - 1, leads_there}).then([](auto& then, long a, long b) {
      then.give(a + b);
    });
  }
};

TEST(TaskHang, NamesWhoDoesWhatAndWaitsForWhom) {
  const std::uint32_t domains = std::min(4u, Device::open("cpu").properties().processors);
  std::string headline = "tasks on cpu: nothing has moved for 20 ms: 1 of ";
  headline += std::to_string(domains);
  headline += " domains work, ";
  headline += std::to_string(domains - 1);
  headline += " ask for work";
  bool has_seen_a_stack = domains == 1;
  for (int i = 0; i < 2 || (i < 100 && !has_seen_a_stack); ++i) {
    std::mutex mutex;
    std::string heard;
    tasks::Options options;
    options.domains = domains;
    options.hang_after = std::chrono::milliseconds{20};
    // On a busy machine threads may stand still for so long: the run ends with the report that is waited for.
    options.on_hang = [&, stop = options.stop](const std::string& report) {
      if (report.find(headline) == std::string::npos) return;
      const std::lock_guard lock(mutex);
      heard = report;
      stop.request_stop();
    };
    tasks::ForkJoin<Stays, Random> run(Device::open("cpu"), options);
    try {
      (void)run.run(Stays{8, true});
      ADD_FAILURE() << "it ended";
    } catch (const tasks::TaskError& error) {
      EXPECT_EQ(error.reason(), tasks::TaskError::Reason::kStopped);
    }
    const std::lock_guard lock(mutex);
    EXPECT_NE(heard.find("in a batch of tasks of type 0 that has not returned"), std::string::npos) << heard;
    has_seen_a_stack =
        has_seen_a_stack ||
        heard.find(" has left waits for 1 bundles of tasks; its results ") != std::string::npos;
  }
  EXPECT_TRUE(has_seen_a_stack);
}

TEST(TaskHang, SaysNothingOfRunsThatMove) {
  tasks::Options options;
  options.hang_after = std::chrono::seconds{20};
  int reports = 0;
  options.on_hang = [&](const std::string&) { ++reports; };
  tasks::ForkJoin<Stays, Random> run(Device::open("cpu"), options);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(run.run(Stays{10, false}), 1024);
  EXPECT_EQ(reports, 0);
}

}  // namespace
}  // namespace esker::testing
