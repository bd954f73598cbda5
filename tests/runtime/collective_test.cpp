// Collective calls, bounds and counters over loopback.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/aggregator/wire.hpp>

#include "../device/gtest.hpp"
#include "pes.hpp"
#include "seed.hpp"

namespace esker::testing {
namespace {

void expect_contract_error(std::uint32_t n, const Pes::Body& body, const std::vector<std::string>& parts) {
  for (const auto& failure : Pes(n).run_and_catch(body)) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind, Error::Kind::kContract) << failure->message;
    for (const std::string& part : parts) {
      EXPECT_NE(failure->message.find(part), std::string::npos) << failure->message;
    }
  }
}

TEST(Collectives, InAnotherOrderAreAnErrorEverywhereThatNamesTheCalls) {
  expect_contract_error(2,
                        [](Runtime& rt) {
                          if (rt.pe() == 0)
                            rt.barrier_all();
                          else
                            rt.heap().allocate<std::uint64_t>(1);
                        },
                        {"barrier_all", "heap().allocate", "PE 0", "PE 1"});
  expect_contract_error(3,
                        [](Runtime& rt) {
                          std::uint64_t one[1] = {1};
                          if (rt.pe() == 2)
                            rt.barrier_all();
                          else
                            rt.all_reduce(std::span<std::uint64_t>(one), Reduction::kSum);
                        },
                        {"barrier_all", "all_reduce"});
}

void send_and_disagree(Runtime& rt) {
  const auto words = rt.heap().allocate<std::uint64_t>(100);
  rt.launch(3000, [=] ESKER_LAMBDA(WorkItem item) {
    shmem_inc(item, &words[item.global_id() % 100], 1 - item.pe());
  });
  if (rt.pe() == 0)
    rt.heap().free(words);
  else
    rt.barrier_all();
}
TEST(Collectives, AfterMessagesInAnotherOrderAreAnErrorToo) {
  expect_contract_error(2, send_and_disagree, {"heap().free", "barrier_all"});
}

TEST(AllReduce, ReducesElementByElement) {
  run_pes(4, [](Runtime& rt) {
    constexpr std::size_t kValues = 15;  // more than one gather carries
    std::vector<std::uint64_t> sum(kValues), most(kValues);
    std::vector<double> least(kValues), real_sum(kValues);
    for (std::size_t i = 0; i < kValues; ++i) {
      sum[i] = rt.pe() + i;
      most[i] = mix(rt.pe() * kValues + i);
      least[i] = -1.5 * rt.pe() * static_cast<double>(i);
      real_sum[i] = 0.25 * rt.pe();
    }
    rt.all_reduce(std::span<std::uint64_t>(sum), Reduction::kSum);
    rt.all_reduce(std::span<std::uint64_t>(most), Reduction::kMax);
    rt.all_reduce(std::span<double>(least), Reduction::kMin);
    rt.all_reduce(std::span<double>(real_sum), Reduction::kSum);
    for (std::size_t i = 0; i < kValues; ++i) {
      EXPECT_EQ(sum[i], 6 + 4 * i);
      std::uint64_t greatest = 0;
      for (std::uint64_t pe = 0; pe < 4; ++pe) greatest = std::max(greatest, mix(pe * kValues + i));
      EXPECT_EQ(most[i], greatest);
      EXPECT_EQ(least[i], -4.5 * static_cast<double>(i));
      EXPECT_EQ(real_sum[i], 1.5);
    }
    rt.all_reduce(std::span<std::uint64_t>{}, Reduction::kSum);
  });
}

/// PE 1 of 3 makes another call than the others.
template <class Other>
void expect_reductions_to_differ(Other other, const std::string& what) {
  expect_contract_error(
      3,
      [=](Runtime& rt) {
        std::vector<std::uint64_t> values(7, rt.pe());
        try {
          if (rt.pe() == 1)
            other(rt);
          else
            rt.all_reduce(std::span<std::uint64_t>(values), Reduction::kSum);
        } catch (const Error&) {
          EXPECT_EQ(values, std::vector<std::uint64_t>(7, rt.pe()));
          throw;
        }
      },
      {"all_reduce: PE 1 asks for " + what, "PE 0 for the sum of 7 64-bit unsigned integers"});
}
TEST(AllReduce, OfOtherValuesOnSomePesIsAnErrorEverywhereThatNamesThem) {
  const auto integers = [](std::size_t n, Reduction reduction) {
    return [=](Runtime& rt) {
      std::vector<std::uint64_t> values(n, 5);
      rt.all_reduce(std::span<std::uint64_t>(values), reduction);
    };
  };
  // The same number of gathers, more, and none at all.
  expect_reductions_to_differ(integers(8, Reduction::kSum), "the sum of 8 64-bit unsigned integers");
  expect_reductions_to_differ(integers(2, Reduction::kSum), "the sum of 2 64-bit unsigned integers");
  expect_reductions_to_differ(integers(40, Reduction::kSum), "the sum of 40 64-bit unsigned integers");
  expect_reductions_to_differ(integers(0, Reduction::kSum), "the sum of 0 64-bit unsigned integers");
  expect_reductions_to_differ(integers(7, Reduction::kMax), "the maximum of 7 64-bit unsigned integers");
  const auto doubles = [](Runtime& rt) {
    std::vector<double> values(7, 5);
    rt.all_reduce(std::span<double>(values), Reduction::kSum);
  };
  expect_reductions_to_differ(doubles, "the sum of 7 doubles");
}

void count_traffic(Runtime& rt) {
  const auto words = rt.heap().allocate<std::uint64_t>(64);
  const auto forward = rt.register_handler<std::uint64_t, std::uint32_t>(
      "forward", [] ESKER_LAMBDA(HandlerContext & context, std::uint64_t & word, const std::uint32_t&) {
        shmem_inc(context, &word, (context.pe() + 1) % context.n_pes());
      });
  rt.launch(600, [=] ESKER_LAMBDA(WorkItem item) {  // 200 to each PE, half of them travel on
    const std::uint64_t id = item.global_id();
    const auto pe = static_cast<std::uint32_t>(id % 3);
    if (id < 300)
      shmem_am(item, forward, &words[id % 64], 0, pe);
    else
      shmem_inc(item, &words[id % 64], pe);
  });
  rt.barrier_all();
  const Statistics s = rt.statistics();
  const Config& c = rt.config();
  const bool goes_direct = kReachesPeersHeaps && c.heap != HeapKind::kHost &&
                           c.peer_memory != PeerMemory::kOff && c.direct_messages > 0;
  EXPECT_EQ(s.messages_published, 600u);
  EXPECT_EQ(s.messages_by_handlers, 300u);  // 100 from each PE arrive here
  EXPECT_EQ(s.messages_local, 200u);        // a handler's messages all leave
  EXPECT_EQ(s.messages_remote, 400u + 300u);
  EXPECT_EQ(s.messages_applied, 900u);
  // 200 of lanes' increments, all of handlers'.
  EXPECT_EQ(s.messages_direct, goes_direct ? 200u + 300u : 0u);
  EXPECT_GE(s.packages, 2u);
  EXPECT_GE(s.bytes_sent, (700u - s.messages_direct) * 8);
  if (!kOnGpu) {                    // where packages stand in for buffers between GPUs
    EXPECT_GE(s.buffers_sent, 7u);  // 1 KiB holds 120 increments at most
    EXPECT_GE(s.bytes_sent, s.buffers_sent * sizeof(wire::FrameHeader) + 700 * 8);
    EXPECT_LE(s.bytes_sent, s.buffers_sent * 1024);
  }
  EXPECT_GT(rt.declared_memory_bytes(), 0u);
  EXPECT_EQ(rt.transport_name(), "loopback");
}
TEST(Statistics, AddUp) {
  for (const HeapKind heap : {HeapKind::kAuto, HeapKind::kHost}) {
    for (const PeerMemory peers : {PeerMemory::kAuto, PeerMemory::kOff}) {
      for (const std::uint32_t direct : {0u, 1u}) {
        Config config = tiny_config();
        config.heap = heap;
        config.peer_memory = peers;
        config.direct_messages = direct;
        run_pes(3, config, count_traffic);
      }
    }
  }
}

/// One PE that stands for eight.
Config projection() {
  Config config = tiny_config();
  config.project_pes = 8;
  return config;
}

void send_to_destinations(Runtime& rt) {
  EXPECT_EQ(rt.n_pes(), 1u);
  const auto words = rt.heap().allocate<std::uint64_t>(8);
  const auto seen = rt.heap().allocate<std::uint32_t>(1);
  rt.launch(4000, [=] ESKER_LAMBDA(WorkItem item) {
    if (item.global_id() == 0) seen[0] = item.n_pes();
    const auto pe = static_cast<std::uint32_t>(item.global_id() % 8);
    shmem_inc(item, &words[pe], pe);
  });
  rt.quiet();
  EXPECT_EQ(rt.heap().read(seen)[0], 8u);
  for (const std::uint64_t word : rt.heap().read(words)) EXPECT_EQ(word, 500u);
  const Statistics s = rt.statistics();
  EXPECT_EQ(s.messages_local, 500u);
  EXPECT_EQ(s.messages_remote, 3500u);
  EXPECT_GT(s.buffers_sent, 0u);
  rt.barrier_all();
}
TEST(Projection, DeliversEveryMessageToTheOnePe) { run_pes(1, projection(), send_to_destinations); }

void forward_to_destinations(Runtime& rt) {
  const auto words = rt.heap().allocate<std::uint64_t>(3);
  const auto forward = rt.register_handler<std::uint64_t, std::uint32_t>(
      "forward",
      [=] ESKER_LAMBDA(HandlerContext & context, std::uint64_t & count, const std::uint32_t& next) {
        ++count;
        words[2] = context.n_pes();
        shmem_inc(context, &words[1], next);
      });
  rt.launch(400, [=] ESKER_LAMBDA(WorkItem item) {
    const auto pe = static_cast<std::uint32_t>(item.global_id() % 8);
    shmem_am(item, forward, &words[0], (pe + 3) % 8, pe);
  });
  rt.barrier_all();
  EXPECT_EQ(rt.heap().read(words), (std::vector<std::uint64_t>{400, 400, 8}));
}
TEST(Projection, LetsHandlersSendToEveryDestination) { run_pes(1, projection(), forward_to_destinations); }

void ask_destinations(Runtime& rt) {
  constexpr std::uint64_t kLanes = 400;
  const auto counter = rt.heap().allocate<std::uint64_t>(1);
  const auto results = rt.heap().allocate<std::uint64_t>(kLanes);
  const auto kept = rt.heap().allocate<std::uint64_t>(kLanes);
  const auto keep = rt.register_handler<std::uint64_t, std::uint64_t>(
      "keep",
      [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & at, const std::uint64_t& value) { at = value + 1; });
  rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
    const auto pe = static_cast<std::uint32_t>(item.global_id() % 8);
    shmem_fetch_inc(item, &results[item.global_id()], counter.data(), pe);
    shmem_fetch_inc(item, then(keep, &kept[item.global_id()], {}), counter.data(), pe);
  });
  rt.quiet();
  std::vector<std::uint64_t> all = rt.heap().read(results);
  for (const std::uint64_t value : rt.heap().read(kept)) all.push_back(value - 1);
  std::sort(all.begin(), all.end());
  for (std::uint64_t k = 0; k < all.size(); ++k) ASSERT_EQ(all[k], k);
  rt.barrier_all();
}
TEST(Projection, AnswersTheRequestsForEveryDestination) { run_pes(1, projection(), ask_destinations); }

}  // namespace
}  // namespace esker::testing
