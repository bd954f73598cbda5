// More active messages at a time than wait anywhere, and an answer to each.
#include <string>
#include <type_traits>
#include <vector>

#include "../device/gtest.hpp"
#include "pes.hpp"

namespace esker::testing {
namespace {

constexpr std::uint64_t kWords = std::uint64_t{1}
                                 << 18;  // over many ownership blocks: handlers run side by side

struct Flood {
  std::uint64_t lanes, asks_a_lane;
};

std::uint64_t sum_of(Runtime& rt, SymmetricArray<std::uint64_t> words) {
  std::uint64_t sum = 0;
  for (const std::uint64_t word : rt.heap().read(words)) sum += word;
  return sum;
}

/// A lane asks each PE in turn; `Item` is what the kernel takes.
template <class Item>
void ask_and_answer(Runtime& rt, Flood flood) {
  const auto asked = rt.heap().allocate<std::uint64_t>(kWords);
  const auto answered = rt.heap().allocate<std::uint64_t>(kWords);
  const auto answer = rt.register_handler<std::uint64_t, std::uint32_t>(
      "answer",
      [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & answers, const std::uint32_t&) { ++answers; });
  const auto ask = rt.register_handler<std::uint64_t, std::uint32_t>(
      "ask", [=] ESKER_LAMBDA(HandlerContext & context, std::uint64_t & asks, const std::uint32_t& word) {
        ++asks;
        shmem_am(context, answer, &answered[word], 0, context.source());
      });
  rt.launch(flood.lanes,
            [=] ESKER_LAMBDA(std::conditional_t<std::is_same_v<Item, GroupItem>, GroupItem&, Item> item) {
              for (std::uint64_t i = 0; i < flood.asks_a_lane; ++i) {
                const std::uint64_t number = item.global_id() * flood.asks_a_lane + i;
                const auto word = static_cast<std::uint32_t>(number * 0x9e3779b1u % kWords);
                shmem_am(item, ask, &asked[word], word, static_cast<std::uint32_t>(number % item.n_pes()));
              }
            });
  rt.barrier_all();
  EXPECT_EQ(sum_of(rt, asked), flood.lanes * flood.asks_a_lane);
  EXPECT_EQ(sum_of(rt, answered), flood.lanes * flood.asks_a_lane);
}

/// The same by requests: each lane counts at each PE in turn, and a handler keeps what it has found. All that
/// a word has held is found once.
template <class Item>
void ask_by_requests(Runtime& rt, Flood flood) {
  constexpr std::uint64_t kCounters = 1 << 10;
  const auto counters = rt.heap().allocate<std::uint64_t>(kCounters);
  const auto found = rt.heap().allocate<std::uint64_t>(kWords);
  const auto keep = rt.register_handler<std::uint64_t, std::uint64_t>(
      "keep",
      [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & sum, const std::uint64_t& value) { sum += value; });
  rt.launch(flood.lanes,
            [=] ESKER_LAMBDA(std::conditional_t<std::is_same_v<Item, GroupItem>, GroupItem&, Item> item) {
              for (std::uint64_t i = 0; i < flood.asks_a_lane; ++i) {
                const std::uint64_t number = item.global_id() * flood.asks_a_lane + i;
                const std::uint64_t word = number * 0x9e3779b1u;
                shmem_fetch_inc(item, then(keep, &found[word % kWords], {}), &counters[word % kCounters],
                                static_cast<std::uint32_t>(number % item.n_pes()));
              }
            });
  rt.barrier_all();
  std::uint64_t calls = 0, expected = 0;
  for (const std::uint64_t count : rt.heap().read(counters)) {
    calls += count;
    expected += count * (count - 1) / 2;  // 0, 1, ... below the count
  }
  std::uint64_t sums[] = {calls, expected, sum_of(rt, found)};
  rt.all_reduce(std::span<std::uint64_t>(sums), Reduction::kSum);
  EXPECT_EQ(sums[0], rt.n_pes() * flood.lanes * flood.asks_a_lane);
  EXPECT_EQ(sums[2], sums[1]);
}

// On a GPU 2^21 messages: 4 times what a mailbox and the queue of handlers' messages hold. A simulated one
// would take minutes.
constexpr std::uint64_t kLanes = kIsSlow  ? std::uint64_t{1} << 13
                                 : kOnGpu ? std::uint64_t{1} << 21
                                          : std::uint64_t{1} << 15;

std::vector<Way> ways() {
  std::vector<Way> all;
  for (const std::uint32_t n : {1u, 2u, 4u})
    all.push_back(way("many", n, [](Config& config) { config.heap_bytes = 64 << 20; }));
  return all;
}
class HandlerFlood : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, HandlerFlood, ::testing::ValuesIn(ways()));

TEST_P(HandlerFlood, EveryRequestOfFewLanesIsAnswered) {
  run_pes(GetParam(), [](Runtime& rt) { ask_and_answer<WorkItem>(rt, {kLanes / 128, 128}); });
}
TEST_P(HandlerFlood, EveryRequestOfFewGroupsIsAnswered) {
  run_pes(GetParam(), [](Runtime& rt) { ask_and_answer<GroupItem>(rt, {kLanes / 128, 128}); });
}

TEST_P(HandlerFlood, EveryFetchOfFewLanesIsAnswered) {
  run_pes(GetParam(), [](Runtime& rt) { ask_by_requests<WorkItem>(rt, {kLanes / 128, 128}); });
}
TEST_P(HandlerFlood, EveryFetchOfFewGroupsIsAnswered) {
  run_pes(GetParam(), [](Runtime& rt) { ask_by_requests<GroupItem>(rt, {kLanes / 128, 128}); });
}

/// Requests of lanes are waiting for each place on the way; answers have some for themselves.
TEST(HandlerFloodAlone, AnswersPassRequestsThatWaitForTheNetwork) {
  Way network = way("network", 2, [](Config& config) {
    config.heap_bytes = 64 << 20;
    config.node_buffer_bytes = 16 << 10;
    if (kOnGpu) config.peer_memory = PeerMemory::kOff;
  });
  run_pes(network, [](Runtime& rt) {
    ask_and_answer<WorkItem>(
        rt, {kOnGpu && !kSimulated ? 1u << 12 : 1u << 10, kOnGpu ? (kSimulated ? 64 : 128) : 16});
  });
}

TEST(HandlerFloodAlone, RepliesPassRequestsThatWaitForTheNetwork) {
  for (const std::uint32_t helpers : {0u, 2u}) {
    Way network = way("network", 2, [=](Config& config) {
      config.heap_bytes = 64 << 20;
      config.node_buffer_bytes = 16 << 10;
      config.apply_helpers = helpers;
      if (kOnGpu) config.peer_memory = PeerMemory::kOff;
    });
    run_pes(network, [](Runtime& rt) {
      ask_by_requests<WorkItem>(
          rt, {kOnGpu && !kSimulated ? 1u << 12 : 1u << 10, kOnGpu ? (kSimulated ? 64 : 128) : 16});
    });
    if (kOnGpu) break;  // where nothing is applied on the host
  }
}

/// By several PEs at a time too: all stand on one GPU.
TEST(HandlerFloodAlone, LanesThatFillTheGpuLeaveHandlersAPlace) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(way.name);
    run_pes(way, [](Runtime& rt) { ask_and_answer<WorkItem>(rt, {kLanes, 1}); });
  }
}
TEST(HandlerFloodAlone, GroupsThatFillTheGpuLeaveHandlersAPlace) {
  for (Way way : ways()) {
    if (way.n_pes > 1 && (!kOnGpu || kSimulated)) break;  // only on a GPU do PEs take each other's place
    for (const std::uint32_t group_lanes : {32u, 64u, 96u, 128u, 192u, 256u, 512u}) {
      if (kIsSlow && group_lanes != 32 && group_lanes != 96 && group_lanes != 512) continue;
      SCOPED_TRACE(way.name + ", groups of " + std::to_string(group_lanes));
      way.config.group_lanes = group_lanes;
      run_pes(way, [](Runtime& rt) { ask_and_answer<GroupItem>(rt, {kLanes, 1}); });
    }
  }
}

}  // namespace
}  // namespace esker::testing
