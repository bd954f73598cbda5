// What comes out of node buffers, message by message, against what went in.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include <esker/aggregator/node_buffers.hpp>

#include "frames.hpp"

namespace esker {

/// The value in row `r` of message `id`; row 0 is the address.
constexpr std::uint64_t value_of_row(std::uint64_t id, std::uint32_t r) {
  return (id * 0x9e3779b97f4a7c15 + r) ^ std::uint64_t{r} << 56;
}

/// Of a request without a handler: where its reply goes. Of one in `kRarely` it does not fit half a word.
constexpr std::uint64_t kRarely = 101;
constexpr std::uint64_t reply_to_of(Command command, std::uint64_t id) {
  const std::uint64_t unit = value_of_row(id, 0) >> (id % kRarely == 0 ? 20 : 32);
  return (unit << operand_shift(command.operand)) & kOffsetMask;
}
/// The id itself, or that many operands of a request.
constexpr std::uint64_t address_of(Command command, std::uint64_t id) {
  return is_request(command.operation) ? id << operand_shift(command.operand) : id;
}
/// Row r > 0 of a message of that many words.
constexpr std::uint64_t row_of(Command command, std::uint32_t words, std::uint64_t id, std::uint32_t r) {
  return is_request(command.operation) && r == words - 1 ? reply_to_of(command, id) : value_of_row(id, r);
}

/// Keeps submitted buffers until the test, which plays the network's owner, takes them. One thread.
class HoldingSink final : public BufferSink {
 public:
  ~HoldingSink() {
    for (Buffer* buffer : held) recycle(buffer);
  }
  void submit(Buffer* buffer) override { held.push_back(buffer); }
  std::deque<Buffer*> held;
};

/// The messages that a test has sent and how often each came out.
class Ledger {
 public:
  Ledger(std::uint32_t source, std::uint32_t n_pes) : source_{source}, n_pes_{n_pes} {}

  /// A new message's id: address_of() says its address.
  std::uint64_t add(std::uint32_t destination, Command command) {
    sent_.push_back({destination, command.word(), 0});
    return sent_.size() - 1;
  }

  /// Checks the frame and each of its messages.
  void receive(const Buffer& buffer) {
    const std::span frame{buffer.bytes.get(), buffer.used};
    ASSERT_LE(buffer.used, buffer.capacity);
    ASSERT_EQ(wire::find_defect(frame, {n_pes_, buffer.destination, &handlers_}), "");
    wire::FrameHeader header;
    std::memcpy(&header, frame.data(), sizeof header);
    EXPECT_EQ(header.kind, wire::Kind::kMessages);
    EXPECT_EQ(header.source, source_);
    EXPECT_EQ(header.messages, buffer.messages);
    EXPECT_GT(header.messages, 0u);
    wire::RunReader reader(frame.data());
    wire::Run run;
    std::size_t replies = sizeof header;
    while (reader.next(run)) {
      EXPECT_GT(run.count, 0u);
      if (is_request(run.command.operation))
        replies += sizeof(wire::RunHeader) + std::size_t{run.count} * reply_words(run.command, run.words) * 8;
      for (std::uint32_t i = 0; i < run.count; ++i) receive(run, i, buffer.destination);
    }
    EXPECT_LE(replies, buffer.capacity) << "replies are one frame at most";
  }

  std::uint64_t sent() const { return sent_.size(); }
  std::uint64_t received() const { return received_; }
  /// Of them, packed requests.
  std::uint64_t packed() const { return packed_; }

  void expect_each_exactly_once() const {
    for (std::uint64_t id = 0; id < sent_.size(); ++id) {
      ASSERT_EQ(sent_[id].arrivals, 1u) << "message " << id << " for PE " << sent_[id].destination;
    }
  }

 private:
  struct Sent {
    std::uint32_t destination;
    std::uint32_t command;
    std::uint32_t arrivals;
  };

  void receive(const wire::Run& run, std::uint32_t i, std::uint32_t destination) {
    const Command command = run.command;
    const std::uint32_t shift = operand_shift(command.operand);
    const bool packed = is_packed(command, run.words);
    const std::uint64_t address = packed ? packed_target(run.address[i], shift) : run.address[i];
    const std::uint64_t id = is_request(command.operation) ? address >> shift : address;
    packed_ += packed ? 1 : 0;
    ASSERT_LT(id, sent_.size());
    Sent& sent = sent_[id];
    ++sent.arrivals;
    ++received_;
    ASSERT_EQ(sent.destination, destination) << "message " << id;
    ASSERT_EQ(sent.command, run.command.word()) << "message " << id;
    const std::uint32_t words = run.words + (packed ? 1 : 0);
    for (std::uint32_t r = 1; r < run.words; ++r) {
      ASSERT_EQ(run.row(r)[i], row_of(command, words, id, r)) << "message " << id << ", word " << r;
    }
    if (packed) {
      ASSERT_EQ(packed_reply_to(run.address[i], shift), reply_to_of(command, id)) << "message " << id;
    }
  }

  std::uint32_t source_;
  std::uint32_t n_pes_;
  OneHandlerAWordCount handlers_;
  std::vector<Sent> sent_;
  std::uint64_t received_ = 0;
  std::uint64_t packed_ = 0;
};

}  // namespace esker
