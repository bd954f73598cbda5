// Mailboxes between GPUs, with host threads in the place of waves.
#include <esker/queue/mailbox.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <vector>

namespace esker::testing {
namespace {

/// A mailbox with its memory, all zero.
class MailboxMemory {
 public:
  Mailbox box() const { return {storage_.get(), senders_.get(), receivers_.get()}; }

 private:
  struct Free {
    void operator()(std::byte* at) const { ::operator delete[](at, std::align_val_t{kLineBytes}); }
  };
  static std::byte* zeroed() {
    auto* const at =
        static_cast<std::byte*>(::operator new[](Mailbox::kStorageBytes, std::align_val_t{kLineBytes}));
    std::memset(at, 0, Mailbox::kStorageBytes);
    return at;
  }
  std::unique_ptr<std::byte, Free> storage_{zeroed()};
  std::unique_ptr<Mailbox::Turn[]> senders_{std::make_unique<Mailbox::Turn[]>(Mailbox::kSlots)};
  std::unique_ptr<Mailbox::Turn[]> receivers_{std::make_unique<Mailbox::Turn[]>(Mailbox::kSlots)};
};

TEST(Mailbox, ASlotGoesBackAndForth) {
  const MailboxMemory memory;
  const Mailbox box = memory.box();
  std::uint64_t last = 0;
  for (std::uint32_t round = 0; round < 3; ++round) {
    std::uint64_t sent = 0;
    std::uint64_t taken = 0;
    EXPECT_TRUE(box.was_empty(7));
    EXPECT_FALSE(box.was_full(7));
    EXPECT_FALSE(box.try_take(7, 0, taken)) << "nothing is there";
    ASSERT_TRUE(box.try_claim(7, sent));
    EXPECT_GT(sent, last) << "turns grow";
    EXPECT_FALSE(box.try_claim(7, taken)) << "it is claimed";
    EXPECT_FALSE(box.was_full(7)) << "it is not published";
    box.payload(7)[Mailbox::columns(1) - 1] = 40 + round;
    box.publish(7, sent, 0, {5, 1, 1});
    EXPECT_TRUE(box.was_full(7));
    EXPECT_FALSE(box.was_empty(7));
    ASSERT_TRUE(box.try_take(7, 0, taken));
    EXPECT_FALSE(box.was_full(7));
    EXPECT_EQ(box.header(7).command, 5u);
    EXPECT_EQ(box.payload(7)[Mailbox::columns(1) - 1], 40u + round);
    EXPECT_FALSE(box.was_empty(7)) << "it is not released";
    fence_system();
    box.release(7, taken);
    last = sent;
  }
}

TEST(Mailbox, APackageOfAKindIsForThatKindAlone) {
  const MailboxMemory memory;
  const Mailbox box = memory.box();
  std::uint64_t turn = 0;
  ASSERT_TRUE(box.try_claim(0, turn));
  EXPECT_EQ(box.kind_if_full(0), Mailbox::kNoKind) << "it is not published";
  box.publish(0, turn, 3, {1, 1, 1});
  EXPECT_TRUE(box.was_full(0));
  EXPECT_EQ(box.kind_if_full(0), 3u);
  EXPECT_FALSE(box.try_take(0, 0, turn)) << "who takes built-in operations alone";
  EXPECT_FALSE(box.try_take(0, 2, turn)) << "another handler";
  ASSERT_TRUE(box.try_take(0, 3, turn));
  EXPECT_EQ(box.kind_if_full(0), Mailbox::kNoKind) << "it is taken";
  fence_system();
  box.release(0, turn);
  EXPECT_TRUE(box.was_empty(0));
}

// A receiver reads the number of messages in between, and reserves space for what their handlers send.
TEST(Mailbox, WhatWasSeenIsTakenAndNothingThatCameSince) {
  const MailboxMemory memory;
  const Mailbox box = memory.box();
  std::uint64_t turn = 0;
  const auto send = [&](std::uint32_t count) {
    ASSERT_TRUE(box.try_claim(0, turn));
    box.publish(0, turn, 3, {1, 1, count});
  };
  send(1);
  std::uint64_t seen = 0;
  EXPECT_FALSE(box.sees(0, 2, seen)) << "another kind";
  ASSERT_TRUE(box.sees(0, 3, seen));
  EXPECT_EQ(box.header(0).count, 1u);
  std::uint64_t others = 0;
  ASSERT_TRUE(box.try_take(0, 3, others)) << "by another lane";
  EXPECT_FALSE(box.try_take_seen(0, seen, turn)) << "taken";
  fence_system();
  box.release(0, others);
  send(100);
  EXPECT_FALSE(box.try_take_seen(0, seen, turn)) << "a package of 100 messages, by whoever has room for one";
  ASSERT_TRUE(box.sees(0, 3, seen));
  EXPECT_EQ(box.header(0).count, 100u);
  EXPECT_TRUE(box.try_take_seen(0, seen, turn));
}

TEST(Mailbox, ColumnsOfAnyWidthFit) {
  for (std::uint32_t words = 1; words <= 9; ++words) {
    EXPECT_GT(Mailbox::columns(words), 0u);
    EXPECT_LE(Mailbox::columns(words) * words, Mailbox::kPayloadWords);
  }
}

// Each package is taken once, whole, by a thread of its kind.
TEST(Mailbox, ThreadsLoseNothingAndSeeWholePackages) {
  constexpr std::uint64_t kPackages = 20000;  // of each sender
  constexpr std::uint32_t kSenders = 2;
  constexpr std::uint32_t kWords = 16;
  constexpr std::uint32_t kInUse = 8;  // few slots, so that they are used again and again
  const MailboxMemory memory;
  std::vector<std::atomic<std::uint32_t>> seen(kPackages * kSenders);
  std::atomic<std::uint64_t> left{kPackages * kSenders};
  std::atomic<std::uint64_t> torn{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t s = 0; s < kSenders; ++s) {
      threads.emplace_back([&, s] {
        const Mailbox box = memory.box();
        for (std::uint64_t p = 0; p < kPackages; ++p) {
          const std::uint64_t id = s * kPackages + p;
          std::uint64_t turn = 0;
          std::uint32_t slot = s;
          while (!box.try_claim(slot % kInUse, turn)) {
            if (++slot % kInUse == s) std::this_thread::yield();
          }
          slot %= kInUse;
          for (std::uint32_t w = 0; w < kWords; ++w) box.payload(slot)[w] = id + w;
          box.publish(slot, turn, id % 2 == 0 ? 0 : 1, {static_cast<std::uint32_t>(id), 1, kWords});
        }
      });
    }
    for (std::uint32_t kind = 1; kind <= 2; ++kind) {  // the second takes kind 0 alone
      threads.emplace_back([&, kind] {
        const Mailbox box = memory.box();
        while (left.load(std::memory_order_relaxed) > 0) {
          bool moved = false;
          for (std::uint32_t slot = 0; slot < kInUse; ++slot) {
            std::uint64_t turn = 0;
            if (!box.was_full(slot) || !box.try_take(slot, kind, turn)) continue;
            const Mailbox::Header header = box.header(slot);
            bool whole = header.count == kWords && (header.command % 2 == 0 || kind == 1);
            for (std::uint32_t w = 0; w < kWords; ++w)
              whole = whole && box.payload(slot)[w] == std::uint64_t{header.command} + w;
            if (!whole) torn.fetch_add(1);
            seen[header.command].fetch_add(1);
            fence_system();
            box.release(slot, turn);
            left.fetch_sub(1);
            moved = true;
          }
          if (!moved) std::this_thread::yield();
        }
      });
    }
  }
  EXPECT_EQ(torn, 0u);
  for (std::size_t id = 0; id < seen.size(); ++id) ASSERT_EQ(seen[id], 1u) << "package " << id;
}

}  // namespace
}  // namespace esker::testing
