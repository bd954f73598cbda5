// Random settings, two to four at a time, at their extremes: whatever they are, a small mixed job ends, and
// waits for no time-out. ESKER_TEST_RUNS says how many; ESKER_TEST_SEED repeats them, and ESKER_TEST_FIRST
// begins at one.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pes.hpp"
#include "seed.hpp"

namespace esker::testing {
namespace {

constexpr std::uint32_t kRuns = kIsSlow ? 12 : 60;
// The time-outs below are a minute: a job that waits for one hangs for longer than this, and is ended. What a
// run takes says nothing: it may have a tenth of a core for a hundred threads.
constexpr std::uint32_t kHangSeconds = 30;

struct Choice {
  const char* setting;
  std::vector<const char*> values;
};
const std::vector<Choice> kChoices = {
    {"package_bytes", {"1KiB", "1152", "64KiB"}},
    {"package_slots", {"1", "2", "4", "128"}},
    {"node_buffer_bytes", {"1KiB", "1088", "4KiB", "64KiB"}},
    {"buffers_per_destination", {"2", "64"}},
    {"aggregate", {"false"}},
    {"aggregators", {"1", "2", "4"}},
    {"apply_helpers", {"1", "3"}},
    {"aggregation_timeout", {"0us", "1us", "60s"}},
    {"aggregation_max_age", {"1us", "60s"}},
    {"pending_messages", {"1", "2", "7", "50", "1000"}},
    {"cpu_threads", {"2", "4"}},
    {"group_lanes", {"1", "7", "64"}},
    {"wave_lanes", {"1", "5"}},
    {"group_execution", {"threads"}},
};

std::uint32_t from_environment(const char* name, std::uint32_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? static_cast<std::uint32_t>(std::stoul(text)) : otherwise;
}

struct Hops {
  std::uint32_t left;
};

struct Found {
  std::uint64_t value;
  std::uint64_t left;
};

/// Lanes in a loop and in groups that increment, put, get, and call a handler whose messages are as many
/// again, or fetch for one that fetches again.
void run_mixed_job(Runtime& rt) {
  constexpr std::uint64_t kLanes = 400;
  constexpr std::uint64_t kGroupLanes = 150;
  const std::uint32_t n = rt.n_pes();
  const auto words = rt.heap().allocate<std::uint64_t>(64);
  const auto counts = rt.heap().allocate<std::uint64_t>(5);
  const auto constant = rt.heap().allocate<std::uint64_t>(1);
  constant[0] = 77;
  rt.barrier_all();
  const auto pass_on = rt.register_handler<std::uint64_t, Hops>(
      "pass_on", [=](HandlerContext& context, std::uint64_t& calls, const Hops& hops, auto self) {
        ++calls;
        shmem_inc(context, &counts[1], context.source());
        if (hops.left > 0) shmem_am(context, self, &counts[0], {hops.left - 1}, (context.pe() + 1) % n);
      });
  const auto results = rt.heap().allocate<std::uint64_t>(kLanes + kGroupLanes);
  const auto fetch_on = rt.register_handler<std::uint64_t, Found>(
      "fetch_on", [=](HandlerContext& context, std::uint64_t& calls, const Found& found, auto self) {
        ++calls;
        if (found.left > 0)
          shmem_fetch_inc(context, then(self, &counts[3], {0, found.left - 1}), &counts[4],
                          (context.pe() + 1) % n);
      });
  const auto hit = [=](auto& item) {
    const auto id = static_cast<std::uint32_t>(item.global_id());
    shmem_inc(item, &counts[2], id % n);
    if (id % 4 == 0) shmem_put(item, &words[id % 64], std::uint64_t{id % 64}, (id + 1) % n);
    if (id % 3 == 0) shmem_am(item, pass_on, &counts[0], {id % 2}, (id + 1) % n);
    if (id % 5 == 0) shmem_fetch_inc(item, then(fetch_on, &counts[3], {0, id % 2}), &counts[4], id % n);
    if (id % 7 == 0) shmem_get(item, &results[id], &constant[0], (id + 1) % n);
  };
  for (int round = 0; round < 2; ++round) {
    rt.launch(kLanes, [=](WorkItem item) { hit(item); });
    if (round == 0) {
      rt.quiet();
      for (std::uint64_t id = 0; id < kLanes; ++id) ASSERT_EQ(results[id], id % 7 == 0 ? 77u : 0u) << id;
    }
    rt.launch(kGroupLanes, [=](GroupItem& item) { hit(item); });
  }
  rt.barrier_all();
  std::uint64_t calls = 0;
  for (const std::uint64_t lanes : {kLanes, kGroupLanes}) {
    for (std::uint64_t id = 0; id < lanes; id += 3) calls += 2 * (1 + id % 2);
  }
  std::uint64_t fetches = 0;
  for (const std::uint64_t lanes : {kLanes, kGroupLanes}) {
    for (std::uint64_t id = 0; id < lanes; id += 5) fetches += 2 * (1 + id % 2);
  }
  std::uint64_t sums[5] = {counts[0], counts[1], counts[2], counts[3], counts[4]};
  rt.all_reduce(std::span<std::uint64_t>(sums), Reduction::kSum);
  EXPECT_EQ(sums[0], n * calls);
  EXPECT_EQ(sums[1], n * calls);
  EXPECT_EQ(sums[2], n * 2 * (kLanes + kGroupLanes));
  EXPECT_EQ(sums[3], n * fetches);
  EXPECT_EQ(sums[4], n * fetches);
  for (std::uint64_t i = 0; i < 64; ++i) EXPECT_TRUE(words[i] == i || words[i] == 0) << i;
}

TEST(AnySettings, LetAJobEndWithoutATimeOut) {
  const std::uint32_t first = from_environment("ESKER_TEST_FIRST", 0);
  const std::uint32_t runs = from_environment("ESKER_TEST_RUNS", kRuns);
  for (std::uint32_t run = first; run < first + runs && !HasFailure(); ++run) {
    std::mt19937_64 random(mix(seed() + run));
    const auto n_pes = static_cast<std::uint32_t>(1 + random() % 3);
    std::vector<Choice> drawn = kChoices;
    std::shuffle(drawn.begin(), drawn.end(), random);
    if (run % 2 == 0) {  // the one that makes lanes wait for what others hold
      std::iter_swap(drawn.begin(), std::find_if(drawn.begin(), drawn.end(), [](const Choice& one) {
                       return one.setting == std::string("pending_messages");
                     }));
    }
    drawn.resize(2 + random() % 3);
    ConfigSources sources;
    std::string told = "run " + std::to_string(run) + ": " + std::to_string(n_pes) + " PEs";
    for (const auto& [setting, values] : drawn) {
      const char* const value = values[random() % values.size()];
      sources.arguments.emplace_back(setting, value);
      told += std::string(", ") + setting + " " + value;
    }
    std::cout << told << std::endl;  // beforehand: a hang ends the process
    Config config = load_config(sources);
    config.heap_bytes = 2 << 20;
    config.huge_pages = false;
    config.startup = StartupPrint::kQuiet;
    config.hang_seconds = kHangSeconds;
    config.hang_file = "unexpected-hang";
    const auto drew = [&](const char* name) {
      return std::any_of(drawn.begin(), drawn.end(),
                         [&](const Choice& one) { return one.setting == std::string(name); });
    };
    if (!drew("cpu_threads")) config.cpu_threads = 1;
    if (!drew("group_lanes")) config.group_lanes = 32;
    run_pes(n_pes, config, run_mixed_job);
  }
}

}  // namespace
}  // namespace esker::testing
