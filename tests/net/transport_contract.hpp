// What every transport promises: the same bodies over loopback and over MPI.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <esker/net/transport.hpp>

#include "../runtime/seed.hpp"

namespace esker::testing {

/// Small, so that frames queue up behind those that nobody has released.
inline constexpr TransportLimits kLimits{1000, 4};
/// What the transport was to receive into; empty: it has memory of its own.
inline std::span<const std::byte> receive_memory;

/// Steps until `step` returns true; throws if that takes too long.
template <class Step>
void poll(const char* what, Step step) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{200};
  for (int idle = 0; !step(); ++idle) {
    if (std::chrono::steady_clock::now() > until) throw std::runtime_error(std::string(what) + ": timed out");
    if (idle < 64) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds{50});  // leaves the core to the other PEs
    }
  }
}

/// Collective. Returns everybody's blocks.
inline std::vector<GatherBlock> gather(Transport& t, const GatherBlock& mine) {
  std::vector<GatherBlock> all(t.n_pes());
  t.begin_gather(mine);
  poll("a gather", [&] { return t.test_gather(all); });
  return all;
}

/// Frame `index` from one PE to another: a label, then bytes that follow from it.
struct Label {
  std::uint64_t from, to, index;
};
inline std::vector<std::byte> frame_of(std::uint64_t stream, const Label& label) {
  const std::uint64_t r = mix(stream + mix(label.from << 40 ^ label.to << 20 ^ label.index));
  std::size_t size = sizeof label + r % (kLimits.frame_bytes - sizeof label + 1);
  if (label.index == 0) size = kLimits.frame_bytes;
  if (label.index == 1) size = sizeof label;
  std::vector<std::byte> bytes(size);
  std::memcpy(bytes.data(), &label, sizeof label);
  for (std::size_t i = sizeof label; i < size; ++i) bytes[i] = static_cast<std::byte>((r >> 8) + 7 * i);
  return bytes;
}

/// Frames to send, and how often the transport said that each has been sent.
class Outgoing {
 public:
  explicit Outgoing(Transport& t) : transport_{t} {}
  void add(std::uint64_t stream, const Label& label) { all_.push_back({label, frame_of(stream, label), 0}); }
  void shuffle(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::shuffle(all_.begin(), all_.end(), random);
  }

  /// Starts what the transport takes now, up to so many in all.
  void send(std::size_t most = ~std::size_t{0}) {
    while (started_ < std::min(most, all_.size())) {
      Sent& next = all_[started_];
      if (!transport_.try_send(static_cast<std::uint32_t>(next.label.to), next.bytes, &next)) return;
      ++started_;
    }
  }
  void collect() {
    tokens_.clear();
    transport_.poll_sent(tokens_);
    for (void* token : tokens_) ++static_cast<Sent*>(token)->finished;
    finished_ += tokens_.size();
  }
  std::size_t started() const { return started_; }
  std::size_t finished() const { return finished_; }
  bool done() const { return finished_ == all_.size(); }
  void expect_each_token_once() const {
    for (const Sent& sent : all_) {
      EXPECT_EQ(sent.finished, 1) << "frame " << sent.label.index << " to PE " << sent.label.to;
    }
  }

 private:
  struct Sent {
    Label label;
    std::vector<std::byte> bytes;
    int finished;
  };
  Transport& transport_;
  std::vector<Sent> all_;  // complete before the first send: tokens point into it
  std::size_t started_ = 0;
  std::size_t finished_ = 0;
  std::vector<void*> tokens_;
};

/// Frames that arrive: each must be whole when it is released, and come once.
class Incoming {
 public:
  Incoming(Transport& t, std::uint64_t stream, std::uint64_t frames_a_pair)
      : transport_{t}, stream_{stream}, arrivals_(t.n_pes(), std::vector<int>(frames_a_pair)) {}

  /// False: nothing has arrived.
  bool take() {
    const std::optional<Frame> frame = transport_.try_receive();
    if (!frame) return false;
    held_.push_back(*frame);
    ++arrived_;
    return true;
  }
  /// Releases the held frame with this number; its bytes must still be what was sent.
  void release(std::size_t i) {
    const Frame frame = held_[i];
    check(frame);
    transport_.release(frame);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  std::size_t held() const { return held_.size(); }
  std::size_t arrived() const { return arrived_; }
  void expect_each_once_from(std::uint64_t pe) const {
    for (std::size_t i = 0; i < arrivals_[pe].size(); ++i) {
      EXPECT_EQ(arrivals_[pe][i], 1) << "frame " << i << " from PE " << pe << " to PE " << transport_.pe();
    }
  }

 private:
  void check(const Frame& frame) {
    ASSERT_GE(frame.bytes.size(), sizeof(Label));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(frame.bytes.data()) % 8, 0u);
    if (!receive_memory.empty()) {
      EXPECT_GE(frame.bytes.data(), receive_memory.data());
      EXPECT_LE(frame.bytes.data() + frame.bytes.size(), receive_memory.data() + receive_memory.size());
    }
    Label label;
    std::memcpy(&label, frame.bytes.data(), sizeof label);
    ASSERT_EQ(label.to, transport_.pe());
    ASSERT_LT(label.from, arrivals_.size());
    ASSERT_LT(label.index, arrivals_[label.from].size());
    ++arrivals_[label.from][label.index];
    const std::vector<std::byte> sent = frame_of(stream_, label);
    EXPECT_TRUE(std::equal(sent.begin(), sent.end(), frame.bytes.begin(), frame.bytes.end()))
        << "frame " << label.index << " from PE " << label.from << " to PE " << label.to;
  }

  Transport& transport_;
  const std::uint64_t stream_;
  std::vector<std::vector<int>> arrivals_;
  std::vector<Frame> held_;
  std::size_t arrived_ = 0;
};

/// Every pair of PEs at once, each with itself too; frames are released late and in another order.
inline void check_exchange(Transport& t, std::uint64_t stream) {
  constexpr std::uint64_t kFrames = 150;
  Outgoing out(t);
  Incoming in(t, stream, kFrames);
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    for (std::uint32_t to = 0; to < t.n_pes(); ++to) out.add(stream, {t.pe(), to, i});
  }
  out.shuffle(stream + t.pe());
  std::mt19937_64 random(stream ^ t.pe());
  poll("the exchange", [&] {
    out.send();
    out.collect();
    const bool arrived = in.take();
    if (in.held() == kLimits.receives || (!arrived && in.held() > 0)) in.release(random() % in.held());
    return out.done() && in.arrived() == kFrames * t.n_pes() && in.held() == 0;
  });
  gather(t, {});
  EXPECT_FALSE(in.take()) << "more frames than were sent";
  out.expect_each_token_once();
  for (std::uint32_t from = 0; from < t.n_pes(); ++from) in.expect_each_once_from(from);
  gather(t, {});
}

/// A receiver that takes nothing has `most` frames at most pressed upon it; the others wait with their
/// sender, in send calls that say not now or in sends that do not finish.
inline void check_push_back(Transport& t, std::uint64_t stream, std::size_t most) {
  constexpr std::uint64_t kFrames = 200;
  Outgoing out(t);
  Incoming in(t, stream, kFrames);
  if (t.pe() == 0) {
    for (std::uint64_t i = 0; i < kFrames; ++i) out.add(stream, {0, 1, i});
    for (int step = 0; step < 200; ++step) {
      out.send();
      out.collect();
      std::this_thread::yield();
    }
    EXPECT_LE(out.finished(), most);
    EXPECT_LE(out.started() - out.finished(), most);  // no more is under way
    EXPECT_GT(out.started(), 0u);
  }
  gather(t, {});  // PE 1 receives from here
  poll("frames to a late receiver", [&] {
    out.send();
    out.collect();
    while (in.take()) in.release(0);
    return out.done() && (t.pe() != 1 || in.arrived() == kFrames);
  });
  out.expect_each_token_once();
  if (t.pe() == 1) in.expect_each_once_from(0);
  gather(t, {});
}

/// Frames that nobody releases stay as they are, and nothing arrives beyond the limit.
inline void check_held_frames(Transport& t, std::uint64_t stream) {
  constexpr std::uint64_t kFrames = kLimits.receives + 3;
  Outgoing out(t);
  Incoming in(t, stream, kFrames);
  // From all: what each PE may have under way is no bound of what is held.
  if (t.pe() != 1) {
    for (std::uint64_t i = 0; i < kFrames; ++i) out.add(stream, {t.pe(), 1, i});
  }
  poll("as many frames as can be held", [&] {
    out.send();
    out.collect();
    in.take();
    if (t.pe() == 1) return in.held() == kLimits.receives;
    return t.n_pes() > 2 || out.finished() >= kLimits.receives;
  });
  for (int i = 0; t.pe() == 1 && i < 100; ++i) {
    ASSERT_FALSE(in.take());
    std::this_thread::yield();
  }
  poll("the rest", [&] {
    out.send();
    out.collect();
    if (in.held() > 0) in.release(in.held() - 1);
    in.take();
    return out.done() && (t.pe() != 1 || (in.arrived() == kFrames * (t.n_pes() - 1) && in.held() == 0));
  });
  for (std::uint64_t from = 0; t.pe() == 1 && from < t.n_pes(); ++from) {
    if (from != 1) in.expect_each_once_from(from);
  }
  gather(t, {});
}

/// Every gather returns what each PE gave to that one, however far the PEs drift apart.
inline void check_gathers(Transport& t, std::uint64_t stream) {
  const auto block = [&](std::uint64_t pe, std::uint32_t round) {
    GatherBlock mine;
    mine.collective = round % 5;
    mine.sequence = round;
    for (std::size_t i = 0; i < 6; ++i) mine.values[i] = mix(stream + pe * 1000 + round * 10 + i);
    return mine;
  };
  for (std::uint32_t round = 0; round < 300; ++round) {
    for (std::uint64_t i = mix(stream + round * 64 + t.pe()) % 6; i > 0; --i) std::this_thread::yield();
    const std::vector<GatherBlock> all = gather(t, block(t.pe(), round));
    for (std::uint32_t pe = 0; pe < t.n_pes(); ++pe) {
      const GatherBlock expected = block(pe, round);
      ASSERT_EQ(all[pe].collective, expected.collective) << "round " << round << ", PE " << pe;
      ASSERT_EQ(all[pe].sequence, expected.sequence) << "round " << round << ", PE " << pe;
      ASSERT_EQ(all[pe].values, expected.values) << "round " << round << ", PE " << pe;
    }
  }
}

/// Requires that all PEs ring. What comes to a PE that sleeps at its bell wakes it: a frame that goes round,
/// and the last block of a gather.
inline void check_bells(Transport& t, std::uint64_t stream) {
  constexpr std::uint64_t kRounds = 300;
  constexpr std::chrono::seconds kLong{20};
  ASSERT_NE(t.bell(), nullptr);
  const auto sleep_until = [&](const char* what, auto is_there) {
    const auto began = std::chrono::steady_clock::now();
    bool there = is_there();
    while (!there) {
      t.bell()->wait(kLong, [&] { return there = is_there(); });
    }
    if (std::chrono::steady_clock::now() - began > kLong / 2) throw std::runtime_error(what);
  };
  const std::uint32_t next = (t.pe() + 1) % t.n_pes();
  Outgoing out(t);
  Incoming in(t, stream, kRounds);
  const auto send_one = [&](std::uint64_t i) {
    poll("room for a frame", [&] {
      out.send(i + 1);
      out.collect();
      return out.started() == i + 1;
    });
  };
  for (std::uint64_t i = 0; i < kRounds; ++i) out.add(stream, {t.pe(), next, i});
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    if (t.pe() == 0) send_one(i);
    sleep_until("nobody woke this PE for a frame", [&] { return in.take(); });
    in.release(0);
    if (t.pe() != 0) send_one(i);
  }
  std::vector<GatherBlock> all(t.n_pes());
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    for (std::uint64_t pause = mix(stream + i * 64 + t.pe()) % 6; pause > 0; --pause)
      std::this_thread::yield();
    t.begin_gather({});
    sleep_until("nobody woke this PE for a gather", [&] { return t.test_gather(all); });
  }
  poll("the last frames", [&] {
    out.collect();
    return out.done();
  });
  gather(t, {});
}

/// A gather does not hold up frames, nor they it.
inline void check_gather_beside_frames(Transport& t, std::uint64_t stream) {
  constexpr std::uint64_t kFrames = 50;
  Outgoing out(t);
  Incoming in(t, stream, kFrames);
  const std::uint32_t next = (t.pe() + 1) % t.n_pes();
  for (std::uint64_t i = 0; i < kFrames; ++i) out.add(stream, {t.pe(), next, i});
  std::vector<GatherBlock> all(t.n_pes());
  GatherBlock mine;
  mine.values[0] = t.pe() + 1;
  t.begin_gather(mine);
  bool gathered = false;
  poll("a gather beside frames", [&] {
    out.send();
    out.collect();
    if (in.take()) in.release(0);
    gathered = gathered || t.test_gather(all);
    return gathered && out.done() && in.arrived() == kFrames;
  });
  for (std::uint32_t pe = 0; pe < t.n_pes(); ++pe) EXPECT_EQ(all[pe].values[0], pe + 1);
  in.expect_each_once_from((t.pe() + t.n_pes() - 1) % t.n_pes());
  gather(t, {});
}

/// Waits for an exchange.
inline void exchange(Transport& t, const std::shared_ptr<Exchange>& mine) {
  t.begin_exchange(mine);
  poll("an exchange", [&] { return t.test_exchange(); });
}

/// Each kind, again and again from the same memory, brings each byte to its place, however far PEs drift
/// apart.
inline void check_exchanges(Transport& t, std::uint64_t stream) {
  using Kind = Exchange::Kind;
  const std::uint32_t n = t.n_pes(), me = t.pe();
  const auto byte = [&](std::uint64_t round, std::uint64_t from, std::uint64_t i) {
    return static_cast<std::byte>(mix(stream + round * 100'000 + from * 1000 + i));
  };
  const auto shared = std::make_shared<Exchange>();
  Exchange& e = *shared;
  for (std::uint64_t round = 0; round < 200; ++round) {
    for (std::uint64_t i = mix(stream + round * 64 + me) % 6; i > 0; --i) std::this_thread::yield();
    e.kind = static_cast<Kind>(round % 5);
    e.root = static_cast<std::uint32_t>(round / 5 % n);
    e.block_bytes = mix(stream + round) % 300;
    // From one PE to another; one PE gives nothing to the next.
    const auto counts = [&](std::uint32_t from, std::uint32_t to) {
      return to == (from + 1) % n ? 0u : static_cast<std::uint32_t>(mix(round * 97 + from * 11 + to) % 200);
    };
    e.send_bytes.clear();
    e.receive_bytes.clear();
    for (std::uint32_t pe = 0; pe < n; ++pe) {
      e.send_bytes.push_back(counts(me, pe));
      e.receive_bytes.push_back(counts(pe, me));
    }
    e.send.resize(n * 300);
    for (std::size_t i = 0; i < e.send.size(); ++i) e.send[i] = byte(round, me, i);
    e.receive.assign(n * 300, std::byte{0x5a});
    exchange(t, shared);
    std::vector<std::byte> expected(n * 300, std::byte{0x5a});
    std::size_t at = 0;
    const auto expect = [&](std::uint32_t from, std::size_t first, std::size_t bytes) {
      for (std::size_t i = 0; i < bytes; ++i) expected[at++] = byte(round, from, first + i);
    };
    if (e.kind == Kind::kBroadcast && me != e.root) expect(e.root, 0, e.block_bytes);
    if (e.kind == Kind::kScatter) expect(e.root, me * e.block_bytes, e.block_bytes);
    for (std::uint32_t pe = 0; pe < n; ++pe) {
      if (e.kind == Kind::kAllGather || (e.kind == Kind::kGather && me == e.root))
        expect(pe, 0, e.block_bytes);
      std::size_t first = 0;
      for (std::uint32_t to = 0; to < me; ++to) first += counts(pe, to);
      if (e.kind == Kind::kAllToAll) expect(pe, first, counts(pe, me));
    }
    ASSERT_EQ(e.receive, expected) << "round " << round << ", kind " << round % 5;
    if (round % 3 == 0) gather(t, {});
  }
}

/// An exchange does not hold up frames, nor they it.
inline void check_exchange_beside_frames(Transport& t, std::uint64_t stream) {
  constexpr std::uint64_t kFrames = 50;
  Outgoing out(t);
  Incoming in(t, stream, kFrames);
  const std::uint32_t next = (t.pe() + 1) % t.n_pes();
  for (std::uint64_t i = 0; i < kFrames; ++i) out.add(stream, {t.pe(), next, i});
  const auto mine = std::make_shared<Exchange>();
  mine->kind = Exchange::Kind::kAllGather;
  mine->block_bytes = std::size_t{1} << 20;
  mine->send.assign(mine->block_bytes, static_cast<std::byte>(t.pe() + 1));
  mine->receive.resize(mine->block_bytes * t.n_pes());
  t.begin_exchange(mine);
  bool exchanged = false;
  poll("an exchange beside frames", [&] {
    out.send();
    out.collect();
    if (in.take()) in.release(0);
    exchanged = exchanged || t.test_exchange();
    return exchanged && out.done() && in.arrived() == kFrames;
  });
  for (std::uint32_t pe = 0; pe < t.n_pes(); ++pe)
    EXPECT_EQ(mine->receive[(pe + 1) * mine->block_bytes - 1], static_cast<std::byte>(pe + 1));
  in.expect_each_once_from((t.pe() + t.n_pes() - 1) % t.n_pes());
  gather(t, {});
}

}  // namespace esker::testing
