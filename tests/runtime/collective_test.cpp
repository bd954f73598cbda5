// Collective calls, bounds and counters over loopback.
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <esker/aggregator/wire.hpp>
#include <esker/device/election/per_lane.hpp>
#include <esker/device/election/predicated.hpp>

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

TEST(Collectives, AfterMessagesInAnotherOrderAreAnErrorToo) {
  expect_contract_error(2,
                        [](Runtime& rt) {
                          const auto words = rt.heap().allocate<std::uint64_t>(100);
                          rt.launch(3000, [=](WorkItem item) {
                            shmem_inc(item, &words[item.global_id() % 100], 1 - item.pe());
                          });
                          if (rt.pe() == 0)
                            rt.heap().free(words);
                          else
                            rt.barrier_all();
                        },
                        {"heap().free", "barrier_all"});
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

TEST(Statistics, AddUp) {
  run_pes(3, [](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(64);
    const auto forward = rt.register_handler<std::uint64_t, std::uint32_t>(
        "forward", [](HandlerContext& context, std::uint64_t& word, const std::uint32_t&) {
          shmem_inc(context, &word, (context.pe() + 1) % context.n_pes());
        });
    rt.launch(600, [=](WorkItem item) {  // 200 to each PE, half of them travel on
      const std::uint64_t id = item.global_id();
      const auto pe = static_cast<std::uint32_t>(id % 3);
      if (id < 300)
        shmem_am(item, forward, &words[id % 64], 0, pe);
      else
        shmem_inc(item, &words[id % 64], pe);
    });
    rt.barrier_all();
    const Statistics s = rt.statistics();
    EXPECT_EQ(s.messages_published, 600u);
    EXPECT_EQ(s.messages_by_handlers, 300u);  // 100 from each PE arrive here
    EXPECT_EQ(s.messages_local, 200u);        // a handler's messages all leave
    EXPECT_EQ(s.messages_remote, 400u + 300u);
    EXPECT_EQ(s.messages_applied, 900u);
    EXPECT_GE(s.packages, 2u);
    EXPECT_GE(s.buffers_sent, 7u);  // 1 KiB holds 120 increments at most
    EXPECT_GE(s.bytes_sent, s.buffers_sent * sizeof(wire::FrameHeader) + 700 * 8);
    EXPECT_LE(s.bytes_sent, s.buffers_sent * 1024);
    EXPECT_GT(rt.declared_memory_bytes(), 0u);
    EXPECT_EQ(rt.transport_name(), "loopback");
  });
}

// One PE: what is published and not applied is pending. Lanes look before each of their messages.
TEST(PendingMessages, StayWithinTheirBound) {
  for (const std::uint64_t bound : {64u, 1000u}) {
    Config config = tiny_config();
    config.pending_messages = bound;
    config.package_slots = 64;
    config.package_bytes = 8 * 1024;
    config.node_buffer_bytes = 64 * 1024;
    run_pes(1, config, [=](Runtime& rt) {
      const auto words = rt.heap().allocate<std::uint64_t>(100);
      std::uint64_t most = 0;
      rt.launch(20'000, [&, words](WorkItem item) {
        shmem_inc(item, &words[item.global_id() % 100], 0);
        const Statistics s = rt.statistics();
        most = std::max(most, s.messages_published - std::min(s.messages_published, s.messages_applied));
      });
      rt.barrier_all();
      EXPECT_LE(most, bound);
      EXPECT_GT(most, 0u);
      for (const std::uint64_t word : words) EXPECT_EQ(word, 200u);
    });
  }
}

// The frames that PE 0 has handed to the network count as sent no earlier than here.
TEST(PendingMessages, StayWithinTheirBoundTowardsPeers) {
  constexpr std::uint64_t kBound = 200;
  Config config = tiny_config();
  config.pending_messages = kBound;
  config.package_slots = 64;
  config.node_buffer_bytes = 64 * 1024;
  Pes pes(2, config);
  std::atomic<std::uint64_t> handed_over{0};
  pes.world().set_tamper([&](std::uint32_t from, std::uint32_t, std::vector<std::byte>& frame) {
    wire::FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    if (from == 0) handed_over += header.messages;
    return loopback::Fate::kDeliver;
  });
  pes.run([&](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(100);
    if (rt.pe() == 0) {
      std::uint64_t most = 0;
      rt.launch(20'000, [&, words](WorkItem item) {
        shmem_inc(item, &words[item.global_id() % 100], 1);
        const std::uint64_t published = rt.statistics().messages_published;
        most = std::max(most, published - std::min(published, handed_over.load()));
      });
      EXPECT_LE(most, kBound);
    }
    rt.barrier_all();
    for (const std::uint64_t word : words) EXPECT_EQ(word, rt.pe() == 1 ? 200u : 0u);
  });
}

// Handlers send without being bounded; lanes must go on nevertheless.
TEST(PendingMessages, BoundWithHandlersThatSendLetsLanesGoOn) {
  Config config = tiny_config();
  config.pending_messages = 100;
  run_pes(2, config, [](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(2);
    const auto echo = rt.register_handler<std::uint64_t, std::uint32_t>(
        "echo", [=](HandlerContext& context, std::uint64_t& count, const std::uint32_t&) {
          ++count;
          for (int i = 0; i < 3; ++i) shmem_inc(context, &words[1], context.source());
        });
    rt.launch(3000, [=](WorkItem item) { shmem_am(item, echo, &words[0], 0, 1 - item.pe()); });
    rt.barrier_all();
    EXPECT_EQ(words[0], 3000u);
    EXPECT_EQ(words[1], 9000u);
  });
}

// Siblings on one thread wait for room while one of them holds a ticket: the holder must be able to run.
TEST(PendingMessages, BoundWithGroupsAndFewSlotsLetsLanesGoOn) {
  for (const std::uint64_t bound : {1u, 8u, 40u}) {
    Config config = tiny_config();
    config.pending_messages = bound;
    config.cpu_threads = 2;
    run_pes(2, config, [](Runtime& rt) {
      const auto words = rt.heap().allocate<std::uint64_t>(64);
      const auto hit = [=](auto& item, auto... election) {
        shmem_inc(item, &words[item.global_id() % 64], 1 - item.pe(), election...);
      };
      rt.launch(1024, [=](GroupItem& item) { hit(item); });
      rt.launch(1024, [=](GroupItem& item) { hit(item, PerLane{}); });
      rt.launch(1024, [=](GroupItem& item) { hit(item, Predicated{}); });
      rt.launch(1024, [=](WorkItem item) { hit(item); });
      rt.barrier_all();
      for (const std::uint64_t word : words) EXPECT_EQ(word, 64u);
    });
  }
}

TEST(Projection, DeliversEveryMessageToTheOnePe) {
  Config config = tiny_config();
  config.project_pes = 8;
  run_pes(1, config, [](Runtime& rt) {
    EXPECT_EQ(rt.n_pes(), 1u);
    const auto words = rt.heap().allocate<std::uint64_t>(8);
    rt.launch(4000, [=](WorkItem item) {
      ASSERT_EQ(item.n_pes(), 8u);
      const auto pe = static_cast<std::uint32_t>(item.global_id() % 8);
      shmem_inc(item, &words[pe], pe);
    });
    rt.quiet();
    for (const std::uint64_t word : words) EXPECT_EQ(word, 500u);
    const Statistics s = rt.statistics();
    EXPECT_EQ(s.messages_local, 500u);
    EXPECT_EQ(s.messages_remote, 3500u);
    EXPECT_GT(s.buffers_sent, 0u);
    rt.barrier_all();
  });
}

TEST(Projection, LetsHandlersSendToEveryDestination) {
  Config config = tiny_config();
  config.project_pes = 8;
  run_pes(1, config, [](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(2);
    const auto forward = rt.register_handler<std::uint64_t, std::uint32_t>(
        "forward", [=](HandlerContext& context, std::uint64_t& count, const std::uint32_t& next) {
          ++count;
          EXPECT_EQ(context.n_pes(), 8u);
          shmem_inc(context, &words[1], next);
        });
    rt.launch(400, [=](WorkItem item) {
      const auto pe = static_cast<std::uint32_t>(item.global_id() % 8);
      shmem_am(item, forward, &words[0], (pe + 3) % 8, pe);
    });
    rt.barrier_all();
    EXPECT_EQ(words[0], 400u);
    EXPECT_EQ(words[1], 400u);
  });
}

}  // namespace
}  // namespace esker::testing
