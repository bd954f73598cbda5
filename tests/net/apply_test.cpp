// Applying frames: every command against a reference, and addresses that are wrong.
#include <esker/net/apply.hpp>

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "../slow.hpp"
#include "apply_bench.hpp"

namespace esker::testing {
namespace {

class Apply : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  HandlerTable handlers;
};

TEST_P(Apply, MatchesALaneByLaneReferenceForEveryOperationAndOperand) {
  std::mt19937_64 random(seed());
  const std::vector<Command> commands = built_in_commands();
  ASSERT_EQ(commands.size(), 5u + 4u * 4u + 3u * 6u);
  for (const Command command : commands) {
    Heap heap;
    heap.fill(random, command.operand);
    Heap expected = heap;
    FrameBuilder builder = messages();
    std::uint64_t count = 0;
    // Shorter and longer than what the loops look ahead and than a block of them.
    for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{23}, std::size_t{2500}}) {
      const auto rows = random_rows(random, command, n);
      builder.run(command, rows);
      apply_reference(expected, command, rows);
      count += n;
    }
    Appliers appliers(handlers, GetParam());
    for (const std::string& error : appliers.apply(builder.bytes(), heap.view())) EXPECT_EQ(error, "");
    EXPECT_TRUE(heap == expected) << "command " << fmt::format("{:#x}", command.word());
    EXPECT_EQ(appliers.applied(), count);
  }
}

TEST_P(Apply, TakesRunsOfDifferentCommandsInTheirOrder) {
  std::mt19937_64 random(seed() + 1);
  const std::vector<Command> commands = built_in_commands();
  Heap heap;
  Heap expected;
  FrameBuilder builder = messages();
  for (int run = 0; run < 300; ++run) {
    Command command = commands[random() % commands.size()];
    if (is_floating(command.operand)) continue;  // sums of random bits need not be the same twice
    const auto rows = random_rows(random, command, random() % 30);
    builder.run(command, rows);
    apply_reference(expected, command, rows);
  }
  Appliers appliers(handlers, GetParam());
  appliers.apply(builder.bytes(), heap.view());
  EXPECT_TRUE(heap == expected);
}

TEST_P(Apply, EachSliceAppliesItsBlocksOnly) {
  std::vector<std::uint64_t> everywhere;
  for (std::uint64_t at = 0; at < kHeapBytes; at += 8) everywhere.push_back(at);
  const auto frame = messages().run(built_in(Operation::kInc, Operand::kUint64), {everywhere}).bytes();
  for (std::uint32_t slice = 0; slice < GetParam(); ++slice) {
    Heap heap;
    BufferPool pool(4096, 2);
    HoldingSink sink;
    NodeBuffers outbox(kMe, kPes, pool, OnExhausted::kGrow, sink);
    HostCall call{heap.view(), kMe, kPes, &outbox};
    Applier(handlers, slice, GetParam()).apply(header_of(frame), frame.data(), call);
    for (const std::uint64_t at : everywhere) {
      std::uint64_t word = 0;
      std::memcpy(&word, heap.base() + at, 8);
      ASSERT_EQ(word, at / kOwnershipBytes % GetParam() == slice ? 1u : 0u)
          << "slice " << slice << ", " << at;
    }
  }
}

TEST_P(Apply, BadAddressIsAnErrorNamingItThatLeavesTheHeapToTheRunsBefore) {
  std::mt19937_64 random(seed() + 2);
  for (const Command command : built_in_commands()) {
    const std::uint64_t bytes = operand_bytes(command.operand);
    std::vector<std::uint64_t> bad{kHeapBytes,
                                   kHeapBytes + kOwnershipBytes,
                                   std::uint64_t{1} << 48,
                                   std::uint64_t{1} << 63,
                                   ~std::uint64_t{7},  // 2^64 - 8
                                   ~std::uint64_t{0} - bytes + 1,
                                   ~std::uint64_t{0}};
    if (bytes > 1) bad.insert(bad.end(), {1, bytes + bytes / 2, kHeapBytes - bytes + 1});
    for (std::size_t i = 0; i < bad.size(); ++i) {
      const std::uint64_t offset = bad[i];
      for (const std::size_t position : {std::size_t{0}, std::size_t{1000}, std::size_t{1499}}) {
        if (kIsSlow && position != (i % 3 == 0 ? 0u : i % 3 == 1 ? 1000u : 1499u)) continue;
        Heap heap;
        heap.fill(random, command.operand);
        Heap expected = heap;
        const auto before = random_rows(random, command, 100);
        auto rows = random_rows(random, command, 1500);
        rows[0][position] = offset;
        apply_reference(expected, command, before);
        const auto frame = messages().run(command, before).run(command, rows).run(command, before).bytes();
        Appliers appliers(handlers, GetParam());
        const std::string found = fmt::format(
            "network: a buffer from PE 2: an operation of {} bytes at heap offset {:#x}, which is {} ", bytes,
            offset, offset % bytes != 0 ? "misaligned" : "outside");
        for (const std::string& error : appliers.apply(frame, heap.view())) {
          ASSERT_EQ(error.rfind(found, 0), 0u) << "expected " << found << "\nfound " << error;
        }
        ASSERT_TRUE(heap == expected) << found << " at position " << position;
        ASSERT_EQ(appliers.applied(), 100u);
      }
    }
  }
}

TEST_P(Apply, RefusesEverythingWhereTheHeapIsSmallerThanTheOperand) {
  for (const Command command : built_in_commands()) {
    const std::uint64_t bytes = operand_bytes(command.operand);
    for (const std::uint64_t heap_bytes : {std::uint64_t{0}, bytes - 1}) {
      Heap heap(heap_bytes);
      const Heap untouched = heap;
      const std::vector<std::vector<std::uint64_t>> rows(message_words(command), {0});
      Appliers appliers(handlers, GetParam());
      for (const std::string& error : appliers.apply(messages().run(command, rows).bytes(), heap.view())) {
        EXPECT_NE(error, "") << bytes << " bytes in a heap of " << heap_bytes;
      }
      EXPECT_TRUE(heap == untouched);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Slices, Apply, ::testing::Values(1, 2, 3, 7));

/// Handler 1 adds its argument to a word, and tells PE argument % kPes; handler 2 throws on odd arguments.
class ApplyHandlers : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  ApplyHandlers() {
    table.add({"add_and_tell", 2, 8, 8, [this](HostCall& call, void* target, const void* arguments) {
                 HandlerContext context(call);
                 std::uint64_t argument = 0;
                 std::memcpy(&argument, arguments, sizeof argument);
                 EXPECT_EQ(context.source(), kSender);
                 EXPECT_EQ(context.pe(), kMe);
                 EXPECT_EQ(context.handler(), 1);
                 *static_cast<std::uint64_t*>(target) += argument;
                 esker::detail::SenderAccess::post(
                     context, built_in(Operation::kInc, Operand::kUint64),
                     {address_word(static_cast<std::uint32_t>(argument % kPes), 8)});
                 ++calls;
               }});
    table.add({"fragile", 2, 8, 8, [this](HostCall&, void*, const void* arguments) {
                 std::uint64_t argument = 0;
                 std::memcpy(&argument, arguments, sizeof argument);
                 if (argument % 2 == 1) throw std::runtime_error("odd");
                 ++calls;
               }});
  }
  HandlerTable table;
  std::uint64_t calls = 0;
};

TEST_P(ApplyHandlers, AreCalledOnceAMessageWithItsTargetAndArguments) {
  std::mt19937_64 random(seed() + 3);
  Heap heap;
  Heap expected;
  const Command add = built_in(Operation::kAdd, Operand::kUint64);  // the same effect, and the same words
  const auto rows = random_rows(random, add, 2500);
  apply_reference(expected, add, rows);
  Appliers appliers(table, GetParam());
  for (const std::string& error :
       appliers.apply(messages().run(active_message(1), rows).bytes(), heap.view())) {
    EXPECT_EQ(error, "");
  }
  EXPECT_TRUE(heap == expected);
  EXPECT_EQ(calls, 2500u);
  EXPECT_EQ(appliers.applied(), 2500u);
  EXPECT_EQ(appliers.sent(), 2500u);
  EXPECT_EQ(appliers.close_and_count(), 2500u);
  for (std::uint32_t slice = 0; slice < GetParam(); ++slice)
    EXPECT_EQ(appliers[slice].was_running(), nullptr);
}

TEST_P(ApplyHandlers, AreNotCalledForABadTargetNorAfterIt) {
  for (const std::uint64_t offset :
       {kHeapBytes, kHeapBytes - 4, std::uint64_t{12}, std::uint64_t{1} << 63, ~std::uint64_t{7}}) {
    Heap heap;
    Heap expected;
    // The same ownership block, so that one slice has all three.
    const std::uint64_t near = offset / kOwnershipBytes * kOwnershipBytes;
    const bool can_be_near = near < kHeapBytes - kOwnershipBytes;
    const std::uint64_t good = can_be_near ? near : 0;
    const auto frame = messages().run(active_message(1), {{good, offset, good}, {1, 2, 4}}).bytes();
    Appliers appliers(table, GetParam());
    std::string all;
    for (const std::string& error : appliers.apply(frame, heap.view())) all += error;
    EXPECT_EQ(all.rfind(fmt::format("network: a buffer from PE 2: handler 'add_and_tell': a target of 8 "
                                    "bytes at heap offset {:#x}, which is {} ",
                                    offset, offset % 8 != 0 ? "misaligned" : "outside"),
                        0),
              0u)
        << all;
    std::uint64_t word = 0;
    std::memcpy(&word, heap.base() + good, 8);
    EXPECT_LE(word, can_be_near ? 1u : 5u) << "the message behind the bad one was handled";
    std::memset(heap.base() + good, 0, 8);
    EXPECT_TRUE(heap == expected) << "something else was touched";
  }
}

TEST_P(ApplyHandlers, ThatThrowAreAnErrorNamingHandlerPeAndSource) {
  Heap heap;
  Appliers appliers(table, GetParam());
  const auto frame = messages().run(active_message(2), {{0, 8, 16, 24}, {2, 4, 5, 6}}).bytes();
  const auto errors = appliers.apply(frame, heap.view());
  EXPECT_EQ(errors[0], "handler: handler 'fragile' threw on PE 1 for a message of PE 2: odd");
  for (std::size_t i = 1; i < errors.size(); ++i) EXPECT_EQ(errors[i], "");
  EXPECT_EQ(calls, 2u);
}

INSTANTIATE_TEST_SUITE_P(Slices, ApplyHandlers, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace esker::testing
