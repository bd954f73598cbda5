// What a run keeps of itself when it is watched: every task once, in spans and in levels.
#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include <cstdint>
#include <string>

#include "../device/gtest.hpp"

namespace esker::testing {
namespace {

using tasks::ForkJoin;
using tasks::Report;

struct Odd;
/// Two types, which spawn each other.
struct Even {
  using Spawns = tasks::Types<Odd>;
  static constexpr int kMaxSpawns = 2;
  int n;
  ESKER_HD void operator()(auto& task) const;
};
struct Odd {
  using Spawns = tasks::Types<Even>;
  static constexpr int kMaxSpawns = 2;
  int n;
  ESKER_HD void operator()(auto& task) const {
    if (n == 0) return task.give(1);
    task.spawn(Even{n - 1}, Even{n - 1}).then([](auto& then, long a, long b) { then.give(a + b); });
  }
};
ESKER_HD void Even::operator()(auto& task) const {
  if (n == 0) return task.give(1);
  task.spawn(Odd{n - 1}, Odd{n - 1}).then([](auto& then, long a, long b) { then.give(a + b); });
}

constexpr int kDepth = 11;
constexpr std::uint64_t kTasks = (1u << (kDepth + 1)) - 1;

Report report_of(bool watch, bool time_tasks = false) {
  tasks::Options options;
  options.watch = watch;
  options.time_tasks = time_tasks;
  ForkJoin<Even> run(Device::open(), options);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run.run(Even{kDepth}), 1 << kDepth);
  return run.report();
}

TEST(WatchedRun, CountsEachTaskOnce) {
  const Report report = report_of(true);
  EXPECT_EQ(report.tasks, kTasks);
  std::uint64_t tasks[2] = {}, batches = 0, full = 0, in_spans = 0;
  for (const tasks::LevelCounts& counts : report.watched.levels) {
    ASSERT_LT(counts.channel, 2u);
    tasks[counts.channel] += counts.tasks;
    batches += counts.batches;
    full += counts.full_batches;
  }
  // Depths take turns, so Even has the depths 0, 2, 4, ...
  std::uint64_t even = 0;
  for (int depth = 0; depth <= kDepth; depth += 2) even += std::uint64_t{1} << depth;
  EXPECT_EQ(tasks[0], even);
  EXPECT_EQ(tasks[1], kTasks - even);
  EXPECT_EQ(batches, report.batches);
  EXPECT_EQ(full, report.full_batches);
  for (const tasks::Span& span : report.watched.spans) {
    EXPECT_LE(span.began_ns, span.ended_ns);
    EXPECT_LT(span.domain, report.domains);
    in_spans += span.tasks;
  }
  EXPECT_EQ(in_spans, kTasks);
  EXPECT_EQ(report.watched.spans_dropped, 0u);
  EXPECT_EQ(report.watched.given.empty(), report.given == 0);
}

TEST(WatchedRun, IsATrace) {
  const Report report = report_of(true);
  const std::string text = tasks::trace_json(report.watched);
  EXPECT_EQ(text.find("{\"otherData\""), 0u);
  std::size_t spans = 0;
  for (std::size_t at = 0; (at = text.find("\"ph\":\"X\"", at)) != std::string::npos; ++at) ++spans;
  EXPECT_EQ(spans, report.watched.spans.size());
}

TEST(WatchedRun, KeepsNothingUnasked) {
  const Report report = report_of(false);
  EXPECT_TRUE(report.watched.levels.empty());
  EXPECT_TRUE(report.watched.spans.empty());
}

TEST(Report, HasTheTimeWithoutWork) {
  const Report report = report_of(false);
  EXPECT_GT(report.present.count(), 0);
  EXPECT_LE(report.idle.count(), report.present.count());
  EXPECT_EQ(report.in_tasks.count(), 0);
}

TEST(Report, HasTheTimeInTasksIfAsked) {
  const Report report = report_of(false, true);
  EXPECT_GT(report.in_tasks.count(), 0);
  // Two clocks may differ a little.
  EXPECT_LE((report.in_tasks + report.idle).count(), report.present.count() * 21 / 20);
  EXPECT_TRUE(report.watched.levels.empty());
}

}  // namespace
}  // namespace esker::testing
