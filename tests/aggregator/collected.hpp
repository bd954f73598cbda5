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

/// The value in row `r` of message `id`; row 0 is the address, which is the id itself.
constexpr std::uint64_t value_of_row(std::uint64_t id, std::uint32_t r) {
  return (id * 0x9e3779b97f4a7c15 + r) ^ std::uint64_t{r} << 56;
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

  /// A new message's id, which is its address.
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
    while (reader.next(run)) {
      EXPECT_GT(run.count, 0u);
      for (std::uint32_t i = 0; i < run.count; ++i) receive(run, i, buffer.destination);
    }
  }

  std::uint64_t sent() const { return sent_.size(); }
  std::uint64_t received() const { return received_; }

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
    const std::uint64_t id = run.address[i];
    ASSERT_LT(id, sent_.size());
    Sent& sent = sent_[id];
    ++sent.arrivals;
    ++received_;
    ASSERT_EQ(sent.destination, destination) << "message " << id;
    ASSERT_EQ(sent.command, run.command.word()) << "message " << id;
    for (std::uint32_t r = 1; r < run.words; ++r) {
      ASSERT_EQ(run.row(r)[i], value_of_row(id, r)) << "message " << id << ", word " << r;
    }
  }

  std::uint32_t source_;
  std::uint32_t n_pes_;
  OneHandlerAWordCount handlers_;
  std::vector<Sent> sent_;
  std::uint64_t received_ = 0;
};

}  // namespace esker
