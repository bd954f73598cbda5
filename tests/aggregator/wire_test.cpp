// The wire format: what a receiver refuses, why, and that it never reads outside a frame.
#include <esker/aggregator/wire.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "frames.hpp"
#include "seed.hpp"

namespace esker {
namespace {

using wire::Kind;

constexpr std::uint32_t kPes = 4;
constexpr std::uint32_t kReceiver = 1;
constexpr std::uint32_t kSource = 2;
constexpr std::size_t kFirstRun = 64;
constexpr Command kPut = built_in(Operation::kPut, Operand::kBytes8);
constexpr Command kInc = built_in(Operation::kInc, Operand::kUint64);

using Frame = std::vector<std::byte>;

std::string defect(const Frame& frame) {
  const OneHandlerAWordCount handlers;
  return wire::find_defect(frame, {kPes, kReceiver, &handlers});
}

/// Two puts, three increments and an active message: the second run starts at byte 112.
Frame good_frame() {
  return FrameBuilder(Kind::kMessages, kSource, kReceiver)
      .run(kPut, {{0x1000, 0x4008}, {5, 42}})
      .run(kInc, {{8, 16, 24}})
      .run(active_message(3), {{64}, {7}, {9}})
      .bytes();
}
constexpr std::size_t kSecondRun = 112;

/// A get of two words, one of 16 bytes for a handler of 4 words, and replies to such.
Frame request_frame() {
  return FrameBuilder(Kind::kMessages, kSource, kReceiver)
      .run(built_in(Operation::kGet, Operand::kBytes8), {{64, 72}, {8, 16}})
      .run({Operation::kGet, Operand::kBytes16, 4}, {{64}, {8}, {7}})
      .run({Operation::kCompareSwap, Operand::kBytes4, 3}, {{64}, {1}, {2}, {8}, {7}, {9}})
      .run(built_in(Operation::kReply, Operand::kBytes16), {{16}, {1}, {2}})
      .run({Operation::kReply, Operand::kNone, 4}, {{16}, {1}, {2}, {7}})
      .bytes();
}

Frame failure_frame() {
  return FrameBuilder(Kind::kFailure, kSource, kReceiver).value(3).text("out of cheese").bytes();
}

struct Damage {
  const char* name;
  std::function<Frame()> frame;
  const char* message;
};
std::ostream& operator<<(std::ostream& out, const Damage& damage) { return out << damage.name; }

Damage field(const char* name, std::size_t at, auto value, const char* message) {
  const auto make = [at, value] {
    Frame frame = good_frame();
    overwrite(frame, at, value);
    return frame;
  };
  return {name, make, message};
}
Damage control_field(const char* name, std::size_t at, std::uint32_t value, const char* message) {
  const auto make = [at, value] {
    Frame frame = failure_frame();
    overwrite(frame, at, value);
    return frame;
  };
  return {name, make, message};
}
Damage run(const char* name, Command command, std::uint32_t words, const char* message) {
  const auto make = [command, words] {
    return FrameBuilder(Kind::kMessages, kSource, kReceiver)
        .run(command, std::vector<std::vector<std::uint64_t>>(words, {8}))
        .bytes();
  };
  return {name, make, message};
}

std::vector<Damage> damages() {
  const auto empty = [] { return Frame{}; };
  const auto stub = [] { return Frame(63); };
  const auto torn = [] {
    Frame frame = good_frame();
    return Frame(frame.begin(), frame.end() - 8);
  };
  const auto trailing = [] {
    Frame frame = good_frame();
    frame.resize(frame.size() + 8);
    overwrite(frame, 24, static_cast<std::uint32_t>(frame.size()));
    return frame;
  };
  return {
      {"Empty", empty, "0 bytes are shorter than a header of 64"},
      {"ShorterThanAHeader", stub, "63 bytes are shorter than a header of 64"},
      field("Magic", 0, std::uint32_t{0x12345678}, "magic 0x12345678 is not 0x524b5345"),
      field("Version", 4, std::uint16_t{1}, "version 1 is not 5: the PEs run different builds"),
      {"Torn", torn, "184 bytes arrived of a frame of 192"},
      field("Bytes", 24, std::uint32_t{216}, "192 bytes arrived of a frame of 216"),
      field("Source", 8, kPes, "source PE 4 is not below 4"),
      field("Destination", 12, std::uint32_t{3}, "it is for PE 3, not for PE 1"),
      field("Reserved", 48, std::uint64_t{1}, "reserved fields are not zero"),
      field("LastReserved", 63, std::uint8_t{1}, "reserved fields are not zero"),
      field("Kind", 6, std::uint16_t{15}, "unknown kind 15"),
      field("KindZero", 6, std::uint16_t{0}, "unknown kind 0"),
      field("TextBesideRuns", 36, std::uint32_t{8}, "8 bytes of text in a frame of kind 1"),
      field("TooManyRuns", 32, std::uint32_t{4}, "run 3 of 4 starts at byte 192 of 192"),
      field("TooFewRuns", 32, std::uint32_t{2}, "the runs end at byte 152 of 192"),
      field("Messages", 28, std::uint32_t{7}, "the runs hold 6 messages, the header says 7"),
      {"BytesBehindTheLastRun", trailing, "the runs end at byte 192 of 200"},
      field("Command", kFirstRun, std::uint32_t{0}, "run 0 has the unknown command 0x00000000"),
      field("CommandOfTheSecondRun", kSecondRun, std::uint32_t{0x90a},
            "run 1 has the unknown command 0x0000090a"),
      run("PutOfANumber", built_in(Operation::kPut, Operand::kInt64), 2,
          "run 0 has the unknown command 0x00000801"),
      run("AndOfADouble", built_in(Operation::kAnd, Operand::kDouble), 2,
          "run 0 has the unknown command 0x00000b06"),
      run("IncOfAFloat", built_in(Operation::kInc, Operand::kFloat), 1,
          "run 0 has the unknown command 0x00000a02"),
      run("PutWithAHandler", {Operation::kPut, Operand::kBytes8, 1}, 2,
          "run 0 has the unknown command 0x00010401"),
      run("UnknownHandler", active_message(10), 9, "run 0 has the unknown command 0x000a0009"),
      run("HandlerZero", active_message(0), 1, "run 0 has the unknown command 0x00000009"),
      run("HandlerWithAnOperand", {Operation::kActiveMessage, Operand::kBytes8, 2}, 2,
          "run 0 has the unknown command 0x00020409"),
      run("GetOfANumber", built_in(Operation::kGet, Operand::kUint64), 2,
          "run 0 has the unknown command 0x0000090a"),
      run("FetchIncOfADouble", built_in(Operation::kFetchInc, Operand::kDouble), 2,
          "run 0 has the unknown command 0x00000b0b"),
      run("SwapOfTwoBytes", built_in(Operation::kSwap, Operand::kBytes2), 3,
          "run 0 has the unknown command 0x00000210"),
      run("CompareSwapOfANumber", built_in(Operation::kCompareSwap, Operand::kInt64), 4,
          "run 0 has the unknown command 0x00000811"),
      run("OperationBehindTheLast", {static_cast<Operation>(21), Operand::kBytes8, 0}, 2,
          "run 0 has the unknown command 0x00000415"),
      run("RequestForAnUnknownHandler", {Operation::kGet, Operand::kBytes8, 10}, 9,
          "run 0 has the unknown command 0x000a040a"),
      run("RequestWhoseHandlerTakesNoArgument", {Operation::kGet, Operand::kBytes1, 1}, 2,
          "run 0 has the unknown command 0x0001010a"),
      run("RequestWhoseValueIsLongerThanTheArguments", {Operation::kGet, Operand::kBytes16, 2}, 2,
          "run 0 has the unknown command 0x0002050a"),
      run("RequestThatHasNoRoomForTheArguments", {Operation::kCompareSwap, Operand::kBytes8, 8}, 9,
          "run 0 has the unknown command 0x00080411"),
      run("WordsOfARequestWithAHandler", {Operation::kGet, Operand::kBytes8, 4}, 5,
          "run 0 of command 0x0004040a has 5 words a message, not 4"),
      run("WordsOfARequest", built_in(Operation::kFetchAdd, Operand::kDouble), 4,
          "run 0 of command 0x00000b0c has 4 words a message, not 3"),
      run("WordsOfAPackedRequest", built_in(Operation::kCompareSwap, Operand::kBytes8), 2,
          "run 0 of command 0x00000411 has 2 words a message, not 4"),
      run("ReplyOfANumber", built_in(Operation::kReply, Operand::kInt32), 2,
          "run 0 has the unknown command 0x00000612"),
      run("ReplyToAnUnknownHandler", {Operation::kReply, Operand::kNone, 10}, 9,
          "run 0 has the unknown command 0x000a0012"),
      run("ReplyWithHandlerAndOperand", {Operation::kReply, Operand::kBytes8, 2}, 2,
          "run 0 has the unknown command 0x00020412"),
      run("ReplyWithNeither", built_in(Operation::kReply, Operand::kNone), 1,
          "run 0 has the unknown command 0x00000012"),
      run("WordsOfAReply", built_in(Operation::kReply, Operand::kBytes16), 2,
          "run 0 of command 0x00000512 has 2 words a message, not 3"),
      run("WordsOfAPut", kPut, 3, "run 0 of command 0x00000401 has 3 words a message, not 2"),
      run("WordsOfAHandler", active_message(3), 2,
          "run 0 of command 0x00030009 has 2 words a message, not 3"),
      field("Words", kSecondRun + 4, std::uint32_t{0},
            "run 1 of command 0x00000902 has 0 words a message, not 1"),
      field("ReservedOfARun", kSecondRun + 12, std::uint32_t{9}, "run 1 has 9 in its reserved field"),
      field("CountBeyondTheFrame", kFirstRun + 8, std::uint32_t{100},
            "run 0 has 100 messages of 16 bytes, but 112 bytes are left"),
      field("LargestCount", kFirstRun + 8, ~std::uint32_t{0},
            "run 0 has 4294967295 messages of 16 bytes, but 112 bytes are left"),
      field("LastRunTooLong", 152 + 8, std::uint32_t{3},
            "run 2 has 3 messages of 24 bytes, but 24 bytes are left"),
      control_field("ControlFrameWithRuns", 32, 1,
                    "a control frame of 77 bytes with 1 runs, 0 messages and 13 bytes of text"),
      control_field("ControlFrameWithMessages", 28, 2,
                    "a control frame of 77 bytes with 0 runs, 2 messages and 13 bytes of text"),
      control_field("TextTooLong", 36, 14,
                    "a control frame of 77 bytes with 0 runs, 0 messages and 14 bytes of text"),
      control_field("TextTooShort", 36, 0,
                    "a control frame of 77 bytes with 0 runs, 0 messages and 0 bytes of text"),
  };
}

class FindDefect : public testing::TestWithParam<Damage> {};

TEST_P(FindDefect, NamesTheDamageWithItsValues) { EXPECT_EQ(defect(GetParam().frame()), GetParam().message); }

INSTANTIATE_TEST_SUITE_P(Wire, FindDefect, testing::ValuesIn(damages()),
                         [](const auto& tested) { return std::string{tested.param.name}; });

TEST(Wire, GoodFramesOfEveryKindPass) {
  EXPECT_EQ(defect(good_frame()), "");
  EXPECT_EQ(defect(request_frame()), "");
  EXPECT_EQ(defect(failure_frame()), "");
  EXPECT_EQ(defect(FrameBuilder(Kind::kStatusReply, kSource, kReceiver).value(121).text("waits").bytes()),
            "");
  EXPECT_EQ(defect(FrameBuilder(Kind::kMessages, kSource, kReceiver).bytes()), "");
  for (const Kind kind : {Kind::kQuietRequest, Kind::kQuietReply, Kind::kHangReport, Kind::kDrainRequest,
                          Kind::kDirectQuietRequest, Kind::kDirectQuietReply, Kind::kStatusRequest,
                          Kind::kStatusReply, Kind::kFailure, Kind::kLetter}) {
    EXPECT_EQ(defect(FrameBuilder(kind, kSource, kReceiver).value(~0ull).bytes()), "");
  }
}

TEST(Wire, OnlyAFailureAStatusAndALetterHaveText) {
  EXPECT_EQ(defect(FrameBuilder(Kind::kLetter, kSource, kReceiver).value(7).text("bytes").bytes()), "");
  for (const Kind kind : {Kind::kQuietRequest, Kind::kQuietReply, Kind::kHangReport, Kind::kDrainRequest,
                          Kind::kDirectQuietRequest, Kind::kDirectQuietReply, Kind::kStatusRequest}) {
    EXPECT_EQ(defect(FrameBuilder(kind, kSource, kReceiver).text("hm").bytes()),
              "2 bytes of text in a frame of kind " + std::to_string(static_cast<int>(kind)));
  }
}

/// Words of a message as docs/reference/wire_format.md has them, handler h being of h words; 0: refused.
std::uint32_t words_on_page(std::uint32_t operation, std::uint32_t operand, std::uint32_t handler) {
  const bool is_bytes = operand >= 1 && operand <= 5, is_word = operand == 3 || operand == 4;
  const bool is_integer = operand >= 6 && operand <= 9, is_number = operand >= 6 && operand <= 11;
  const std::uint32_t handler_words = handler <= 9 ? handler : 0;
  constexpr std::uint32_t kBytes[] = {0, 1, 2, 4, 8, 16, 4, 4, 8, 8, 4, 8};
  const auto plain = [&](bool holds, std::uint32_t words) { return holds && handler == 0 ? words : 0; };
  const auto request = [&](bool holds, std::uint32_t words) -> std::uint32_t {
    if (!holds || handler == 0) return holds ? words : 0;
    const std::uint32_t argument_bytes = handler_words == 0 ? 0 : 8 * (handler_words - 1);
    if (argument_bytes < kBytes[operand] || argument_bytes == 0) return 0;
    words += (argument_bytes - kBytes[operand] + 7) / 8;  // all but the words that the value fills
    return words <= 9 ? words : 0;
  };
  switch (operation) {
    case 1:
      return plain(is_bytes, operand == 5 ? 3 : 2);
    case 2:
      return plain(is_integer, 1);
    case 3:
    case 4:
    case 5:
      return plain(is_number, 2);
    case 6:
    case 7:
    case 8:
      return plain(is_integer, 2);
    case 9:
      return operand == 0 ? handler_words : 0;
    case 10:
      return request(is_bytes, 2);
    case 11:
      return request(is_integer, 2);
    case 12:
      return request(is_number, 3);
    case 13:
    case 14:
    case 15:
      return request(is_integer, 3);
    case 16:
      return request(is_word, 3);
    case 17:
      return request(is_word, 4);
    case 18:
      return handler != 0 ? (operand == 0 ? handler_words : 0) : plain(is_bytes, operand == 5 ? 3 : 2);
    case 19:
    case 20:
      return plain(is_bytes, operand == 5 ? 5 : 4);
    default:
      return 0;
  }
}

TEST(Wire, EveryCommandWordIsEitherKnownWithItsWordsOrRefused) {
  std::uint32_t known = 0;
  for (std::uint32_t operation = 0; operation < 32; ++operation) {
    for (std::uint32_t bits = 0; bits < 16 * 16; ++bits) {
      const std::uint32_t operand = bits & 15, handler = bits >> 4;
      const Command command = Command::from_word(operation | operand << 8 | handler << 16);
      const std::uint32_t legal = words_on_page(operation, operand, handler);
      for (std::uint32_t words = 1; words <= kMaxMessageWords; ++words) {
        const Frame frame = FrameBuilder(Kind::kMessages, kSource, kReceiver)
                                .run(command, std::vector<std::vector<std::uint64_t>>(words, {8}))
                                .bytes();
        const bool may_be_packed = operation >= 10 && operation <= 17 && handler == 0;
        ASSERT_EQ(defect(frame).empty(),
                  legal != 0 && (words == legal || (may_be_packed && words + 1 == legal)))
            << "command " << command.word() << ", " << words;
      }
      known += legal != 0 ? 1 : 0;
    }
  }
  // Puts of 5 sizes, without a signal and with two kinds; inc, and, or, xor of 4 integers; add, min, max of 6
  // numbers; 9 handlers.
  const std::uint32_t one_way = 3 * 5 + 4 * 4 + 3 * 6 + 9;
  // Requests without a handler; replies of 5 sizes, and to 9 handlers.
  const std::uint32_t requests = 5 + 4 + 6 + 3 * 4 + 2 + 2, replies = 5 + 9;
  // Handlers of 2 to 9 words, whose arguments fit beside the operands: get of 1, 2, 4, of 8 and of 16 bytes;
  // fetches of an integer without a value; of a number; and, or, xor; swap; compare and swap.
  const std::uint32_t with_handlers =
      (3 * 7 + 8 + 7) + (2 * 7 + 2 * 8) + (3 * 6 + 3 * 7) + 3 * (2 * 6 + 2 * 7) + (6 + 7) + (5 + 6);
  EXPECT_EQ(known, one_way + requests + replies + with_handlers);
}

TEST(Wire, EveryTruncationIsRefused) {
  for (const Frame& good : {good_frame(), request_frame(), failure_frame()}) {
    for (std::size_t length = 0; length < good.size(); ++length) {
      Frame frame(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_NE(defect(frame), "") << length << " of " << good.size() << " bytes";
      if (length < sizeof(wire::FrameHeader)) continue;
      overwrite(frame, 24, static_cast<std::uint32_t>(length));  // a sender that believes in it
      EXPECT_NE(defect(frame), "") << length << " of " << good.size() << " bytes, and the header agrees";
    }
  }
}

TEST(Wire, RunReaderReturnsWhatWasWritten) {
  const Frame frame = good_frame();
  wire::RunReader reader(frame.data());
  wire::Run run;
  ASSERT_TRUE(reader.next(run));
  EXPECT_EQ(run.command.word(), kPut.word());
  ASSERT_EQ(run.words, 2u);
  ASSERT_EQ(run.count, 2u);
  EXPECT_EQ(run.address[0], 0x1000u);
  EXPECT_EQ(run.address[1], 0x4008u);
  EXPECT_EQ(run.row(1)[0], 5u);
  EXPECT_EQ(run.row(1)[1], 42u);
  ASSERT_TRUE(reader.next(run));
  EXPECT_EQ(run.command.word(), kInc.word());
  ASSERT_EQ(run.words, 1u);
  ASSERT_EQ(run.count, 3u);
  EXPECT_EQ(run.address[2], 24u);
  ASSERT_TRUE(reader.next(run));
  EXPECT_EQ(run.command.handler, 3u);
  ASSERT_EQ(run.words, 3u);
  ASSERT_EQ(run.count, 1u);
  EXPECT_EQ(run.row(1)[0], 7u);
  EXPECT_EQ(run.row(2)[0], 9u);
  EXPECT_FALSE(reader.next(run));
}

// Whatever passes must be safe to read: its runs lie in the frame and hold what the header says.
TEST(Wire, FlippedBitsAreRefusedOrLeaveASoundFrame) {
  std::mt19937_64 random(test_seed());
  std::uint32_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    Frame frame = round % 4 == 0 ? failure_frame() : round % 4 == 1 ? request_frame() : good_frame();
    const std::uint64_t flips = 1 + draw(random, 8);
    // Half of them in the headers, where they matter.
    const std::size_t within = round % 2 == 0 ? frame.size() : kFirstRun + sizeof(wire::RunHeader);
    for (std::uint64_t i = 0; i < flips; ++i) {
      const auto bit = draw(random, within * 8);
      frame[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    }
    if (!defect(frame).empty()) {
      ++refused;
      continue;
    }
    wire::FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    if (header.kind != Kind::kMessages) continue;
    wire::RunReader reader(frame.data());
    wire::Run run;
    std::uint64_t messages = 0;
    std::uint32_t runs = 0;
    while (reader.next(run)) {
      ++runs;
      messages += run.count;
      const auto* const end = reinterpret_cast<const std::byte*>(run.row(run.words));
      ASSERT_LE(end, frame.data() + frame.size()) << "round " << round << " of seed " << test_seed();
    }
    EXPECT_EQ(runs, header.runs);
    EXPECT_EQ(messages, header.messages);
  }
  EXPECT_GT(refused, 10000u);
}

}  // namespace
}  // namespace esker
