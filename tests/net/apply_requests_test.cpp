// Applying requests: what they do to the heap, and the replies that they send, against a reference; and
// results that are wrong.
#include <esker/net/apply.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "../slow.hpp"
#include "apply_bench.hpp"

namespace esker::testing {
namespace {

/// A message: its command, and its words.
struct Message {
  std::uint32_t command;
  std::vector<std::uint64_t> words;
  auto operator<=>(const Message&) const = default;
};

/// Targets lie below, results above, so that slices may come in any order.
constexpr std::uint64_t kResults = 3 * kOwnershipBytes;

using Rows = std::vector<std::vector<std::uint64_t>>;

/// Random requests. Of compare and swap half expect what may be there.
Rows random_requests(std::mt19937_64& random, Command command, std::uint32_t carried, std::size_t count) {
  const std::uint32_t bytes = operand_bytes(command.operand);
  Rows rows(message_words(command) + carried);
  const std::size_t reply = message_words(command) - 1;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t pick = random() % (kResults / bytes);
    rows[0].push_back((random() % 2 == 0 ? pick % 3 : pick) * bytes);
    for (std::size_t r = 1; r < rows.size(); ++r) rows[r].push_back(random_word(random, command.operand));
    if (command.operation == Operation::kCompareSwap && random() % 2 == 0) rows[1].back() = 0;
    rows[reply].back() = kResults + random() % ((kHeapBytes - kResults) / 16) * 16;
  }
  return rows;
}

/// The same requests, without a handler, as they mostly travel.
Rows packed(Command command, Rows rows) {
  const std::uint32_t shift = operand_shift(command.operand);
  for (std::size_t i = 0; i < rows[0].size(); ++i)
    rows[0][i] = packed_addresses(rows[0][i], rows.back()[i], shift);
  rows.pop_back();
  return rows;
}

class ApplyRequests : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  /// Handler h has messages of h words, and a target of 8 bytes.
  ApplyRequests() {
    for (std::uint32_t words = 1; words <= kMaxMessageWords; ++words)
      handlers.add({fmt::format("of {} words", words), words, 8, 8, [](HostCall&, void*, const void*) {}});
  }
  static FrameBuilder messages_of(std::uint32_t pe) { return FrameBuilder(wire::Kind::kMessages, pe, kMe); }
  static std::map<std::uint32_t, std::vector<Message>> read(const HoldingSink& sink) {
    std::map<std::uint32_t, std::vector<Message>> all;
    for (const Buffer* buffer : sink.held) {
      wire::RunReader reader(buffer->bytes.get());
      wire::Run run;
      while (reader.next(run)) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
          Message message{run.command.word(), {}};
          for (std::uint32_t r = 0; r < run.words; ++r) message.words.push_back(run.row(r)[i]);
          all[buffer->destination].push_back(message);
        }
      }
    }
    return all;
  }

  /// The replies to a run from another PE, or with a handler.
  static std::vector<Message> reply_reference(Heap& heap, Command command, const Rows& rows) {
    const std::size_t reply = message_words(command) - 1;
    std::vector<Message> replies;
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
      std::vector<std::uint64_t> operands;
      for (std::size_t r = 1; r < reply; ++r) operands.push_back(rows[r][i]);
      const std::vector<std::byte> old = answer_one(command, heap.base() + rows[0][i], operands);
      // The arguments as the asking PE has them, with the value at their start.
      std::vector<std::uint64_t> words{rows[reply][i]};
      for (std::size_t word = 0; word < old.size() / 8; ++word) words.push_back(0);
      for (std::size_t r = reply + 1; r < rows.size(); ++r) words.push_back(rows[r][i]);
      if (words.size() == 1) words.push_back(0);
      std::memcpy(words.data() + 1, old.data(), old.size());
      const Operand bytes = old.size() == 1   ? Operand::kBytes1
                            : old.size() == 2 ? Operand::kBytes2
                            : old.size() == 4 ? Operand::kBytes4
                            : old.size() == 8 ? Operand::kBytes8
                                              : Operand::kBytes16;
      const Command answer{Operation::kReply, command.handler == 0 ? bytes : Operand::kNone, command.handler};
      replies.push_back({answer.word(), words});
    }
    return replies;
  }

  HandlerTable handlers;
};

TEST_P(ApplyRequests, AnswerOthersWithWhatTheTargetHeld) {
  std::mt19937_64 random(seed());
  ASSERT_EQ(request_commands().size(), 5u + 4u + 6u + 3u * 4u + 2u + 2u);
  for (Command command : request_commands()) {
    for (command.handler = 0; command.handler <= kMaxMessageWords; command.handler += kIsSlow ? 3 : 1) {
      const std::uint32_t bytes = operand_bytes(command.operand);
      const std::uint32_t argument_bytes = 8 * (command.handler - (command.handler > 0 ? 1u : 0u));
      if (command.handler > 0 && (argument_bytes == 0 || argument_bytes < bytes)) continue;
      const std::uint32_t carried = command.handler == 0 ? 0 : (argument_bytes - bytes + 7) / 8;
      if (message_words(command) + carried > kMaxMessageWords) continue;
      SCOPED_TRACE(fmt::format("command {:#x}", command.word()));
      Heap heap;
      if (command.operation != Operation::kCompareSwap) heap.fill(random, command.operand);
      Heap expected = heap;
      FrameBuilder builder = messages_of(kSender);
      std::vector<Message> replies;
      // Shorter and longer than a block of replies, and of the loops.
      for (const std::size_t n : {std::size_t{0}, std::size_t{1}, std::size_t{256}, std::size_t{1500}}) {
        const Rows rows = random_requests(random, command, carried, n);
        builder.run(command, command.handler == 0 && random() % 2 == 0 ? packed(command, rows) : rows);
        const auto more = reply_reference(expected, command, rows);
        replies.insert(replies.end(), more.begin(), more.end());
      }
      const auto frame = builder.bytes();
      ASSERT_EQ(wire::find_defect(frame, {kPes, kMe, &handlers}), "");
      Appliers appliers(handlers, GetParam());
      for (const std::string& error : appliers.apply(frame, heap.view())) ASSERT_EQ(error, "");
      EXPECT_TRUE(heap == expected);
      EXPECT_EQ(appliers.applied(), replies.size());
      EXPECT_EQ(appliers.sent(), replies.size());
      EXPECT_EQ(appliers.close_and_count(), replies.size());
      auto found = read(appliers.sink());
      if (GetParam() > 1) {  // in the order of their requests a slice at a time
        std::sort(found[kSender].begin(), found[kSender].end());
        std::sort(replies.begin(), replies.end());
      }
      ASSERT_EQ(found.size(), 1u);
      ASSERT_TRUE(found[kSender] == replies);
      for (const Buffer* buffer : appliers.sink().held) {
        ASSERT_EQ(wire::find_defect({buffer->bytes.get(), buffer->used}, {kPes, kSender, &handlers}), "");
      }
    }
  }
}

TEST_P(ApplyRequests, OfThisPeItselfStoreTheirResults) {
  std::mt19937_64 random(seed() + 1);
  for (const Command command : request_commands()) {
    SCOPED_TRACE(fmt::format("command {:#x}", command.word()));
    Heap heap;
    if (command.operation != Operation::kCompareSwap) heap.fill(random, command.operand);
    Heap before = heap, expected = heap;
    Rows rows = random_requests(random, command, 0, (kHeapBytes - kResults) / 16);
    for (std::size_t i = 0; i < rows[0].size(); ++i) rows.back()[i] = kResults + 16 * i;  // one each
    for (std::size_t i = 0; i < rows[0].size(); ++i) {
      std::vector<std::uint64_t> operands;
      for (std::size_t r = 1; r + 1 < rows.size(); ++r) operands.push_back(rows[r][i]);
      const auto old = answer_one(command, expected.base() + rows[0][i], operands);
      std::memcpy(expected.base() + rows.back()[i], old.data(), old.size());
    }
    Appliers appliers(handlers, GetParam());
    const auto frame = messages_of(kMe).run(command, rows).bytes();
    for (const std::string& error : appliers.apply(frame, heap.view())) ASSERT_EQ(error, "");
    EXPECT_EQ(appliers.applied(), rows[0].size());
    if (GetParam() == 1) {
      EXPECT_EQ(appliers.answered(), rows[0].size());
      EXPECT_EQ(appliers.sent(), 0u);
    } else {  // a result's block may be another slice's, in which it applies something, or runs a handler
      for (std::uint64_t at = kResults; at < kHeapBytes; ++at) ASSERT_EQ(heap.base()[at], before.base()[at]);
      EXPECT_EQ(appliers.answered(), 0u);
      EXPECT_EQ(appliers.sent(), rows[0].size());
      Appliers next(handlers, GetParam());
      appliers.close_and_count();
      for (const Buffer* buffer : appliers.sink().held) {
        const std::vector<std::byte> reply(buffer->bytes.get(), buffer->bytes.get() + buffer->used);
        for (const std::string& error : next.apply(reply, heap.view())) ASSERT_EQ(error, "");
      }
      EXPECT_EQ(next.answered(), rows[0].size());
    }
    EXPECT_TRUE(heap == expected);
  }
}

TEST_P(ApplyRequests, OfThisPeItselfCallTheirHandlersByAMessage) {
  Heap heap;
  Appliers appliers(handlers, GetParam());
  const Command command{Operation::kFetchInc, Operand::kInt32, 3};
  const Rows rows{{4, 4}, {kResults, kResults + 8}, {~std::uint64_t{0}, 0}, {7, 9}};
  for (const std::string& error : appliers.apply(messages_of(kMe).run(command, rows).bytes(), heap.view()))
    EXPECT_EQ(error, "");
  EXPECT_EQ(appliers.answered(), 0u);
  EXPECT_EQ(appliers.close_and_count(), 2u);
  const std::uint32_t call = Command{Operation::kReply, Operand::kNone, 3}.word();
  // Beside a value of 4 bytes the arguments' other 4 are as they were sent.
  EXPECT_EQ(read(appliers.sink()).at(kMe),
            (std::vector<Message>{{call, {kResults, 0xffffffff00000000, 7}}, {call, {kResults + 8, 1, 9}}}));
}

TEST_P(ApplyRequests, RepliesAreStoresAndCallsThatCountAsAnswers) {
  Heap heap, expected;
  Appliers appliers(handlers, GetParam());
  const Rows halves{{16, 4096}, {1, 3}, {2, 4}};
  for (std::size_t i = 0; i < 2; ++i) {
    std::memcpy(expected.base() + halves[0][i], &halves[1][i], 8);
    std::memcpy(expected.base() + halves[0][i] + 8, &halves[2][i], 8);
  }
  expected.base()[77] = std::byte{0xaa};
  const auto frame = messages_of(kSender)
                         .run(built_in(Operation::kReply, Operand::kBytes16), halves)
                         .run(built_in(Operation::kReply, Operand::kBytes1), {{77}, {0x55aa}})
                         .run(built_in(Operation::kPut, Operand::kBytes1), {{77}, {0xaa}})
                         .run({Operation::kReply, Operand::kNone, 2}, {{8}, {1}})
                         .run(active_message(2), {{8}, {1}})
                         .bytes();
  for (const std::string& error : appliers.apply(frame, heap.view())) EXPECT_EQ(error, "");
  EXPECT_TRUE(heap == expected);
  EXPECT_EQ(appliers.answered(), 4u);
  EXPECT_EQ(appliers.applied(), 6u);
}

// A word of a request says where its reply goes, as an address there: its upper bits would be a PE.
TEST_P(ApplyRequests, ABadResultIsAnErrorThatNamesItAndAppliesNothing) {
  std::mt19937_64 random(seed() + 2);
  for (const Command plain : request_commands()) {
    for (const std::uint16_t handler : {std::uint16_t{0}, std::uint16_t{4}}) {
      const Command command{plain.operation, plain.operand, handler};
      const std::uint32_t carried = handler == 0 ? 0 : carried_words(command.operand, 4);
      const std::uint32_t bytes = handler == 0 ? operand_bytes(command.operand) : 8;
      std::vector<std::uint64_t> bad{kHeapBytes, std::uint64_t{1} << 48, std::uint64_t{3} << 48,
                                     std::uint64_t{1} << 63, ~std::uint64_t{0} - bytes + 1};
      if (bytes > 1) bad.push_back(kResults + 1);
      for (const std::uint64_t result : bad) {
        for (const std::uint32_t pe : {kSender, kMe}) {
          Heap heap;
          heap.fill(random, command.operand);
          const Heap untouched = heap;
          Rows rows = random_requests(random, command, carried, 300);
          rows[message_words(command) - 1][299] = result;
          Appliers appliers(handlers, GetParam());
          const std::string found =
              fmt::format("network: a buffer from PE {}: {} of {} bytes at heap offset {:#x}, which is {} ",
                          pe, handler == 0 ? "an operation" : "handler 'of 4 words': a target", bytes, result,
                          result % bytes != 0 ? "misaligned" : "outside");
          for (const auto& error : appliers.apply(messages_of(pe).run(command, rows).bytes(), heap.view()))
            ASSERT_EQ(error.rfind(found, 0), 0u) << "expected " << found << "\nfound " << error;
          ASSERT_TRUE(heap == untouched) << found;
          ASSERT_EQ(appliers.applied() + appliers.answered() + appliers.close_and_count(), 0u) << found;
        }
      }
    }
  }
}

TEST_P(ApplyRequests, ABadTargetIsAnErrorWhosePeGetsNoReply) {
  std::mt19937_64 random(seed() + 3);
  for (const Command command : request_commands()) {
    for (const std::uint64_t target : {kHeapBytes, std::uint64_t{1} << 48, ~std::uint64_t{15}}) {
      Heap heap;
      const Heap untouched = heap;
      Rows rows = random_requests(random, command, 0, 700);
      rows[0][699] = target;
      Appliers appliers(handlers, GetParam());
      for (const auto& error : appliers.apply(messages_of(kSender).run(command, rows).bytes(), heap.view()))
        ASSERT_NE(error.find(fmt::format("heap offset {:#x}, which is outside", target)), std::string::npos)
            << error;
      ASSERT_TRUE(heap == untouched);
      ASSERT_EQ(appliers.close_and_count(), 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Slices, ApplyRequests, ::testing::Values(1, 2, 3));

/// What an applier has counted when a buffer leaves: the reply to what is in it may come at once.
class CountingSink final : public BufferSink {
 public:
  void submit(Buffer* buffer) override {
    left += buffer->messages;
    EXPECT_GE(applier->asked(), left);
    recycle(buffer);
  }
  const Applier* applier = nullptr;
  std::uint64_t left = 0;
};

TEST(ApplyHandlersThatAsk, CountARequestBeforeItCanLeave) {
  HandlerTable handlers;
  handlers.add({"asks", 2, 8, 8, [](HostCall& call, void*, const void*) {
                  HandlerContext context(call);
                  for (std::uint64_t k = 0; k < 1000; ++k) {
                    esker::detail::SenderAccess::post(context, built_in(Operation::kGet, Operand::kBytes8),
                                                      {address_word(kSender, 8 * k), 8});
                  }
                }});
  Heap heap;
  CountingSink sink;
  BufferPool pool(1024, 2);
  NodeBuffers outbox(kMe, kPes, pool, OnExhausted::kGrow, sink);
  Applier applier(handlers, 0, 1);
  sink.applier = &applier;
  HostCall call{heap.view(), kMe, kPes, &outbox};
  const auto frame = messages().run(active_message(1), {{0, 8}, {1, 1}}).bytes();
  applier.apply(header_of(frame), frame.data(), call);
  EXPECT_GT(sink.left, 1000u);
  outbox.close();
  EXPECT_EQ(applier.asked(), 2000u);
  EXPECT_EQ(applier.sent_by_handlers(), 2000u);
  EXPECT_EQ(sink.left, 2000u);
}

}  // namespace
}  // namespace esker::testing
