// The loopback transport: PEs are threads.
#include <gtest/gtest.h>

#include <atomic>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include <esker/device/error.hpp>
#include <esker/net/loopback/transport.hpp>

#include "transport_contract.hpp"

namespace esker::testing {
namespace {

constexpr std::size_t kInboxFrames = 64;  // what a loopback PE's inbox holds

/// Every PE's body on a thread of its own; transports outlive all bodies.
void run_pes(std::uint32_t n, const std::function<void(Transport&)>& body) {
  loopback::World world(n);
  std::vector<std::unique_ptr<Transport>> transports;
  for (std::uint32_t pe = 0; pe < n; ++pe) transports.push_back(world.connect(pe, kLimits));
  std::vector<std::jthread> threads;
  for (const auto& transport : transports) {
    threads.emplace_back([&body, &t = *transport] {
      try {
        body(t);
        t.close(true);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "PE " << t.pe() << ": " << error.what();
      }
    });
  }
}

class Loopback : public ::testing::TestWithParam<std::uint32_t> {};

TEST_P(Loopback, FramesArriveWholeAndOnceBetweenAllPairs) {
  run_pes(GetParam(), [stream = seed()](Transport& t) { check_exchange(t, stream); });
}

TEST_P(Loopback, GathersReturnEverybodysBlocksOneAfterTheOther) {
  run_pes(GetParam(), [stream = seed()](Transport& t) { check_gathers(t, stream); });
}

TEST_P(Loopback, ExchangesBringEachByteToItsPlace) {
  run_pes(GetParam(), [stream = seed()](Transport& t) { check_exchanges(t, stream); });
}
TEST_P(Loopback, ExchangesAndFramesDoNotHoldEachOtherUp) {
  run_pes(GetParam(), [stream = seed()](Transport& t) { check_exchange_beside_frames(t, stream); });
}
TEST_P(Loopback, GathersAndFramesDoNotHoldEachOtherUp) {
  run_pes(GetParam(), [stream = seed()](Transport& t) { check_gather_beside_frames(t, stream); });
}

TEST_P(Loopback, FindsNobodyDeadInAHealthyJob) {
  std::atomic<std::uint32_t> seen{0};
  run_pes(GetParam(), [&](Transport& t) {
    EXPECT_EQ(t.n_pes(), GetParam());
    EXPECT_EQ(t.pes_on_host(), GetParam());
    EXPECT_EQ(t.name(), "loopback");
    EXPECT_EQ(t.find_dead_peer(), "");
    seen |= 1u << t.pe();
    gather(t, {});
    t.close(true);
    EXPECT_EQ(t.find_dead_peer(), "");
  });
  EXPECT_EQ(seen, (1u << GetParam()) - 1);
}

INSTANTIATE_TEST_SUITE_P(Pes, Loopback, ::testing::Values(1, 2, 3, 5));

TEST(LoopbackPair, FullInboxPushesBackUntilItsOwnerReceives) {
  run_pes(2, [stream = seed()](Transport& t) { check_push_back(t, stream, kInboxFrames); });
}

TEST(LoopbackPair, HoldsNoMoreFramesThanItsLimitAndLeavesThemAlone) {
  run_pes(2, [stream = seed()](Transport& t) { check_held_frames(t, stream); });
}

TEST(LoopbackPair, TrySendSaysNotNowOnceTheInboxIsFull) {
  loopback::World world(2);
  const auto sender = world.connect(0, kLimits);
  const auto receiver = world.connect(1, kLimits);
  const std::vector<std::byte> frame(100);
  std::size_t taken = 0;
  while (taken < 1000 && sender->try_send(1, frame, nullptr)) ++taken;
  EXPECT_EQ(taken, kInboxFrames);
  ASSERT_TRUE(receiver->try_receive());
  EXPECT_TRUE(sender->try_send(1, frame, nullptr));
  EXPECT_FALSE(sender->try_send(1, frame, nullptr));
}

TEST(LoopbackPair, FrameBeyondTheLimitIsAnErrorWithBothSizes) {
  loopback::World world(1);
  const auto transport = world.connect(0, kLimits);
  const std::vector<std::byte> frame(kLimits.frame_bytes + 1);
  try {
    transport->try_send(0, frame, nullptr);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kNetwork);
    EXPECT_STREQ(error.what(), "loopback: a frame of 1001 bytes is longer than 1000");
  }
  EXPECT_FALSE(transport->try_receive());
}

TEST(LoopbackPair, PeThatLeavesWithoutItsPeersIsFoundByThem) {
  loopback::World world(3);
  const auto stays = world.connect(0, kLimits);
  const auto leaves = world.connect(1, kLimits);
  EXPECT_EQ(stays->find_dead_peer(), "");
  leaves->close(false);
  EXPECT_EQ(stays->find_dead_peer(), "PE 1 has left the job");
  EXPECT_EQ(leaves->find_dead_peer(), "");
}

TEST(LoopbackTamper, LosesAndChangesWhatItIsToldTo) {
  loopback::World world(2);
  world.set_tamper([](std::uint32_t from, std::uint32_t to, std::vector<std::byte>& frame) {
    EXPECT_EQ(from, 0u);
    EXPECT_EQ(to, 1u);
    if (frame[0] == std::byte{1}) return loopback::Fate::kLose;
    frame.resize(3);
    return loopback::Fate::kDeliver;
  });
  const auto sender = world.connect(0, kLimits);
  const auto receiver = world.connect(1, kLimits);
  std::vector<std::byte> lost(10, std::byte{1});
  std::vector<std::byte> cut(10, std::byte{2});
  ASSERT_TRUE(sender->try_send(1, lost, &lost));
  ASSERT_TRUE(sender->try_send(1, cut, &cut));
  std::vector<void*> tokens;
  sender->poll_sent(tokens);
  EXPECT_EQ(tokens, (std::vector<void*>{&lost, &cut}));
  const auto frame = receiver->try_receive();
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->bytes.size(), 3u);
  EXPECT_EQ(frame->bytes[0], std::byte{2});
  EXPECT_FALSE(receiver->try_receive());
}

}  // namespace
}  // namespace esker::testing
