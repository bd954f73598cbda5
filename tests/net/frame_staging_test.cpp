// Frames cut into chunks for the waves of a GPU.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <esker/device/error.hpp>
#include <esker/net/gpu/engine/frame_staging.hpp>

#include "../aggregator/frames.hpp"

namespace esker::gpu {
namespace {

constexpr std::uint32_t kPe = 3, kSource = 5;

/// A staged frame.
class Staged {
 public:
  explicit Staged(const FrameBuilder& frame, std::uint32_t frame_bytes = 0) {
    const std::vector<std::byte> bytes = frame.bytes();
    wire::FrameHeader header;
    std::memcpy(&header, bytes.data(), sizeof header);
    layout_ = FrameLayout::of(frame_bytes == 0 ? header.bytes : frame_bytes);
    words_.resize(layout_.slot_bytes / 8);
    std::memcpy(slot() + layout_.frame_at, bytes.data(), bytes.size());
    replies_.resize(layout_.frame_bytes / 8);
    chunks_ = cut_frame(header, bytes.data(), layout_, slot(), kPe, replies());
    EXPECT_LE(chunks_ * sizeof(Chunk), layout_.frame_at) << "the table fits in front of the frame";
    EXPECT_EQ(std::memcmp(slot() + layout_.frame_at, bytes.data(), bytes.size()), 0);
  }

  std::uint32_t chunks() const { return chunks_; }
  /// The frame of its replies.
  const std::byte* replies() const { return reinterpret_cast<const std::byte*>(replies_.data()); }
  const FrameLayout& layout() const { return layout_; }
  /// As lanes read it: the table ends at the frame, and starts with the last chunk.
  Chunk chunk(std::uint32_t i) const {
    return reinterpret_cast<const Chunk*>(slot() + layout_.frame_at)[-1 - static_cast<std::ptrdiff_t>(i)];
  }
  std::uint64_t word(const Chunk& chunk, std::uint32_t r, std::uint32_t i) const {
    return reinterpret_cast<const std::uint64_t*>(slot() + chunk.at)[r * chunk.stride + i];
  }

 private:
  std::byte* replies() { return reinterpret_cast<std::byte*>(replies_.data()); }
  std::byte* slot() { return reinterpret_cast<std::byte*>(words_.data()); }
  const std::byte* slot() const { return reinterpret_cast<const std::byte*>(words_.data()); }

  FrameLayout layout_;
  std::vector<std::uint64_t> words_;
  std::uint32_t chunks_ = 0;
  std::vector<std::uint64_t> replies_;
};

FrameBuilder messages() { return {wire::Kind::kMessages, kSource, 0}; }

std::vector<std::uint64_t> numbers(std::uint32_t count, std::uint64_t first) {
  std::vector<std::uint64_t> all(count);
  std::iota(all.begin(), all.end(), first);
  return all;
}

TEST(FrameStaging, ARunIsCutIntoChunksThatHoldEachMessageOnce) {
  for (const std::uint32_t count : {1u, kChunkMessages - 1, kChunkMessages, kChunkMessages + 1,
                                    3 * kChunkMessages, 3 * kChunkMessages + 17}) {
    const Command put = built_in(Operation::kPut, Operand::kBytes8);
    const Staged staged(messages().run(put, {numbers(count, 1000), numbers(count, 5'000'000)}));
    ASSERT_EQ(staged.chunks(), (count + kChunkMessages - 1) / kChunkMessages);
    std::uint32_t seen = 0;
    for (std::uint32_t c = 0; c < staged.chunks(); ++c) {
      const Chunk chunk = staged.chunk(c);
      EXPECT_EQ(chunk.command, put.word());
      EXPECT_EQ(chunk.words, 2u);
      EXPECT_EQ(chunk.stride, count);
      EXPECT_EQ(chunk.source, kSource);
      ASSERT_GE(chunk.count, 1u);
      ASSERT_LE(chunk.count, kChunkMessages);
      for (std::uint32_t i = 0; i < chunk.count; ++i, ++seen) {
        EXPECT_EQ(staged.word(chunk, 0, i), 1000u + seen);
        EXPECT_EQ(staged.word(chunk, 1, i), 5'000'000u + seen);
      }
    }
    EXPECT_EQ(seen, count);
  }
}

TEST(FrameStaging, EachRunHasChunksOfItsOwn) {
  const Command increment = built_in(Operation::kInc, Operand::kUint64);
  const Command call = active_message(3);
  const Staged staged(messages()
                          .run(increment, {numbers(kChunkMessages + 1, 0)})
                          .run(call, {{8}, {80}, {800}})
                          .run(increment, {{16, 24}}));
  ASSERT_EQ(staged.chunks(), 4u);
  EXPECT_EQ(staged.chunk(0).count, kChunkMessages);
  EXPECT_EQ(staged.chunk(1).count, 1u);
  EXPECT_EQ(staged.word(staged.chunk(1), 0, 0), kChunkMessages);
  EXPECT_EQ(staged.chunk(2).command, call.word());
  EXPECT_EQ(staged.word(staged.chunk(2), 2, 0), 800u);
  EXPECT_EQ(staged.chunk(3).count, 2u);
  EXPECT_EQ(staged.word(staged.chunk(3), 0, 1), 24u);
}

// Those of 16 bytes, and those with a handler, are longer than their requests.
TEST(FrameStaging, RepliesAreAFrameWhoseMessagesLanesWrite) {
  constexpr std::uint32_t kCount = 3 * kChunkMessages + 5;
  const auto rows = [](std::uint32_t words) {
    return std::vector<std::vector<std::uint64_t>>(words, numbers(kCount, 8));
  };
  const Command get{Operation::kGet, Operand::kBytes16, 0},
      swap{Operation::kCompareSwap, Operand::kBytes4, 7};
  const Command increment = built_in(Operation::kInc, Operand::kUint64);
  const Staged staged(messages().run(get, rows(2)).run(increment, rows(1)).run(swap, rows(9)));
  wire::FrameHeader header;
  std::memcpy(&header, staged.replies(), sizeof header);
  EXPECT_EQ(header.kind, wire::Kind::kMessages);
  EXPECT_EQ(header.source, kPe);
  EXPECT_EQ(header.destination, kSource);
  EXPECT_EQ(header.messages, 2 * kCount);
  ASSERT_EQ(header.runs, 2u);
  EXPECT_EQ(header.bytes, sizeof header + 2 * sizeof(wire::RunHeader) + kCount * (3 + 6) * 8);
  EXPECT_LE(header.bytes, staged.layout().frame_bytes);
  wire::RunReader reader(staged.replies());
  wire::Run first{}, second{}, none{};
  ASSERT_TRUE(reader.next(first) && reader.next(second) && !reader.next(none));
  EXPECT_EQ(first.command.word(), reply_to(get).word());
  EXPECT_EQ(second.command.word(), reply_to(swap).word());
  EXPECT_EQ(first.words, 3u);
  EXPECT_EQ(second.words, 6u);
  std::uint32_t seen[2] = {0, 0};
  for (std::uint32_t c = 0; c < staged.chunks(); ++c) {
    const Chunk chunk = staged.chunk(c);
    if (chunk.command == increment.word()) {
      EXPECT_EQ(chunk.replies, nullptr);
      continue;
    }
    const bool is_second = chunk.command == swap.word();
    EXPECT_EQ(chunk.replies, (is_second ? second : first).address + seen[is_second]);
    seen[is_second] += chunk.count;
  }
  EXPECT_EQ(seen[0], kCount);
  EXPECT_EQ(seen[1], kCount);
}

// No sender packs so many; lanes would write behind the buffer.
TEST(FrameStaging, RequestsWhoseRepliesAreLongerThanAFrameAreRefused) {
  const Command get{Operation::kGet, Operand::kBytes16, 0};
  try {
    const Staged staged(messages().run(get, {numbers(100, 16), numbers(100, 16)}));
    FAIL() << "taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kNetwork);
    EXPECT_NE(std::string(error.what()).find("from PE 5 with requests whose replies are longer"),
              std::string::npos)
        << error.what();
  }
}

TEST(FrameStaging, WithoutRequestsThereAreNoReplies) {
  const Staged staged(messages().run(built_in(Operation::kInc, Operand::kUint64), {{8, 16}}));
  wire::FrameHeader header;
  std::memcpy(&header, staged.replies(), sizeof header);
  EXPECT_EQ(header.runs, 0u);
}

TEST(FrameStaging, AFrameWithoutRunsHasNoChunks) { EXPECT_EQ(Staged(messages()).chunks(), 0u); }

// As many chunks as a frame of its size can have: Staged checks that the table holds them.
TEST(FrameStaging, AFrameOfTheSmallestRunsFits) {
  constexpr std::uint32_t kFrameBytes = 4096;
  constexpr std::size_t kRunBytes = sizeof(wire::RunHeader) + sizeof(std::uint64_t);
  constexpr std::size_t kRuns = (kFrameBytes - sizeof(wire::FrameHeader)) / kRunBytes;
  FrameBuilder frame = messages();
  for (std::size_t i = 0; i < kRuns; ++i)
    frame.run(built_in(Operation::kInc, i % 2 == 0 ? Operand::kUint64 : Operand::kUint32), {{i * 8}});
  const Staged staged(frame, kFrameBytes);
  ASSERT_EQ(staged.chunks(), kRuns);
  EXPECT_EQ(staged.word(staged.chunk(kRuns - 1), 0, 0), (kRuns - 1) * 8);
}

TEST(FrameTurn, TheCursorKeepsItsParts) {
  const std::uint64_t cursor = FrameTurn::pack(FrameTurn::kGenerations - 1, (1u << 20) - 1);
  EXPECT_EQ(FrameTurn::generation(cursor), FrameTurn::kGenerations - 1);
  EXPECT_EQ(FrameTurn::chunks(cursor), (1u << 20) - 1);
  EXPECT_EQ(FrameTurn::next(cursor), 0u);
  EXPECT_EQ(FrameTurn::next(cursor + 5), 5u) << "a lane takes a chunk by adding 1";
}

}  // namespace
}  // namespace esker::gpu
