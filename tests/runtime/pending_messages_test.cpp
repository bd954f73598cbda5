// Config::pending_messages. For the CPU alone: lanes on a GPU do not bound what is pending.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <esker/aggregator/wire.hpp>
#include <esker/device/election/per_lane.hpp>
#include <esker/device/election/predicated.hpp>

#include "pes.hpp"

namespace esker::testing {
namespace {

Config bounded_config(std::uint64_t pending_messages) {
  Config config = tiny_config();
  config.pending_messages = pending_messages;
  config.package_slots = 64;
  config.package_bytes = 8 * 1024;
  config.node_buffer_bytes = 64 * 1024;
  return config;
}

// One PE: what is published and not applied is pending. Lanes look before each of their messages.
TEST(PendingMessages, StayWithinTheirBound) {
  for (const std::uint64_t bound : {64u, 1000u}) {
    run_pes(1, bounded_config(bound), [=](Runtime& rt) {
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

// What the program itself has sent, and is gone, gives lanes no more room.
TEST(PendingMessages, StayWithinTheirBoundAfterMessagesOfTheProgram) {
  constexpr std::uint64_t kBound = 200, kOfProgram = 5000;
  run_pes(1, bounded_config(kBound), [=](Runtime& rt) {
    const auto words = rt.heap().allocate<std::uint64_t>(100);
    const auto bytes = rt.register_bytes_handler<std::uint64_t>(
        "add",
        [](HandlerContext&, std::uint64_t& sum, std::span<const std::byte> all) { sum += all.size(); });
    for (std::uint64_t i = 0; i < kOfProgram; ++i) rt.inc(&words[i % 100], 0);
    for (std::uint64_t i = 0; i < kOfProgram; ++i)
      rt.call_bytes(bytes, &words[i % 100], std::array<std::byte, 1>{}, 0);
    rt.quiet();
    const Statistics before = rt.statistics();
    std::uint64_t most = 0;
    rt.launch(20'000, [&, words](WorkItem item) {
      shmem_inc(item, &words[item.global_id() % 100], 0);
      const Statistics s = rt.statistics();
      const std::uint64_t published = s.messages_published - before.messages_published;
      most = std::max(most, published - std::min(published, s.messages_applied - before.messages_applied));
    });
    rt.barrier_all();
    EXPECT_LE(most, kBound);
    for (const std::uint64_t word : words) EXPECT_EQ(word, 200u + 2 * kOfProgram / 100);
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

// Nobody closes a buffer for want of time: what waiting lanes wait for, they must have sent on, whoever holds
// it.
TEST(PendingMessages, BoundWithPatientBuffersLetsLanesGoOn) {
  for (const std::uint64_t bound : {1u, 8u, 40u}) {
    for (const std::uint32_t helpers : {0u, 2u}) {
      Config config = tiny_config();
      config.aggregation_timeout = config.aggregation_max_age = std::chrono::minutes{1};
      config.node_buffer_bytes = 64 * 1024;
      config.package_slots = 64;
      config.pending_messages = bound;
      config.apply_helpers = helpers;
      config.cpu_threads = 2;
      config.hang_seconds = 10;
      run_pes(2, config, [](Runtime& rt) {
        const auto words = rt.heap().allocate<std::uint64_t>(2);
        const auto echo = rt.register_handler<std::uint64_t, std::uint32_t>(
            "echo", [=](HandlerContext& context, std::uint64_t& count, const std::uint32_t&) {
              ++count;
              for (int i = 0; i < 3; ++i) shmem_inc(context, &words[1], context.source());
            });
        const auto call = [=](auto& item) { shmem_am(item, echo, &words[0], 0, 1 - item.pe()); };
        constexpr std::uint64_t kLanes = kIsSlow ? 300 : 1000;
        rt.launch(kLanes, [=](WorkItem item) { call(item); });
        rt.launch(kLanes, [=](GroupItem& item) { call(item); });
        rt.barrier_all();
        EXPECT_EQ(words[0], 2 * kLanes);
        EXPECT_EQ(words[1], 6 * kLanes);
      });
    }
  }
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
      constexpr std::uint64_t kLanes = kIsSlow ? 256 : 1024;
      rt.launch(kLanes, [=](GroupItem& item) { hit(item); });
      rt.launch(kLanes, [=](GroupItem& item) { hit(item, PerLane{}); });
      rt.launch(kLanes, [=](GroupItem& item) { hit(item, Predicated{}); });
      rt.launch(kLanes, [=](WorkItem item) { hit(item); });
      rt.barrier_all();
      for (const std::uint64_t word : words) EXPECT_EQ(word, 4 * kLanes / 64);
    });
  }
}

// The same of messages with bytes.
TEST(PendingMessages, BoundWithGroupsThatSendBytesLetsLanesGoOn) {
  for (const std::uint64_t bound : {1u, 8u, 40u}) {
    Config config = tiny_config();
    config.pending_messages = bound;
    config.cpu_threads = 2;
    config.hang_seconds = 10;
    run_pes(2, config, [](Runtime& rt) {
      const auto words = rt.heap().allocate<std::uint64_t>(64);
      const auto count = rt.register_bytes_handler<std::uint64_t>(
          "count", [](HandlerContext&, std::uint64_t& word, std::span<const std::byte>) { ++word; });
      constexpr std::uint64_t kLanes = kIsSlow ? 256 : 1024;
      rt.launch(kLanes, [=](GroupItem& item) {
        const std::uint64_t at = item.global_id() % 64;
        shmem_inc(item, &words[at], 1 - item.pe(), PerLane{});
        shmem_am_bytes(item, count, &words[at], {}, 1 - item.pe());
      });
      rt.barrier_all();
      for (const std::uint64_t word : words) EXPECT_EQ(word, 2 * kLanes / 64);
    });
  }
}

}  // namespace
}  // namespace esker::testing
