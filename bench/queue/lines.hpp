// The three queues behind one interface: a line moves groups of messages from senders to receivers.
//
// A group is `lanes` messages with consecutive ids; word r of message m is m + r. A receiver is given the
// words where they arrived: word r of the group's message c is words[r * stride + c].
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <thread>
#include <utility>

#include <esker/queue/mpmc_queue.hpp>
#include <esker/queue/package_memory.hpp>
#include <esker/queue/package_queue.hpp>
#include <esker/queue/spsc_queue.hpp>

namespace esker::bench {

/// Memory that each queue's slots may take: the thesis's 1 MB, so that no queue wins by a longer ring.
inline constexpr std::uint64_t kRingBytes = 1 << 20;

/// The same wait for every queue. Brief at first: a yield costs more than many messages take.
template <class Condition>
void wait_until(Condition condition) {
  for (std::uint32_t tries = 0; !condition(); ++tries) {
    if (tries >= 32) std::this_thread::yield();
  }
}

template <std::uint32_t Words>
struct Message {
  std::array<std::uint64_t, Words> words;
};

/// SPSC or MPMC: one message a group.
template <template <class> class Queue, std::uint32_t Words, std::uint64_t SlotBytes>
class MessageLine {
 public:
  static constexpr std::uint32_t kLanes = 1;

  std::uint32_t lanes() const { return kLanes; }
  std::uint64_t slots() const { return queue_.capacity(); }

  void send(std::uint64_t id) {
    Message<Words> message;
    for (std::uint32_t r = 0; r < Words; ++r) message.words[r] = id + r;
    wait_until([&] { return queue_.try_push(std::move(message)); });
  }
  template <class Reader>
  void receive(Reader& reader) {
    Message<Words> message;
    wait_until([&] { return queue_.try_pop(message); });
    reader(message.words.data(), kLanes, Words, 1);
  }

 private:
  Queue<Message<Words>> queue_{kRingBytes / SlotBytes};
};

template <class T>
using Spsc = SpscQueue<T>;
template <class T>
using Mpmc = MpmcQueue<T>;
template <std::uint32_t Words>
using SpscLine = MessageLine<Spsc, Words, 8 * Words>;
template <std::uint32_t Words>
using MpmcLine = MessageLine<Mpmc, Words, (8 + 8 * Words + kLineBytes - 1) / kLineBytes * kLineBytes>;

/// The package queue: a sender thread plays the lanes of a group, its leader among them.
class PackageLine {
 public:
  PackageLine(std::uint32_t words, std::uint32_t lanes)
      : words_{words}, lanes_{lanes}, memory_{slots_for(payload(words, lanes)), payload(words, lanes)} {}

  std::uint32_t lanes() const { return lanes_; }
  std::uint64_t slots() const { return memory_.queue().slots(); }

  void send(std::uint64_t id) {
    PackageQueue queue = memory_.queue();
    const std::uint64_t ticket = queue.reserve();
    wait_until([&] { return queue.was_empty(ticket); });
    for (std::uint32_t r = 0; r < words_; ++r) {
      std::uint64_t* row = queue.row(ticket, words_, r);
      for (std::uint32_t lane = 0; lane < lanes_; ++lane) row[lane] = id + lane + r;
    }
    queue.publish(ticket, 0, words_, lanes_);
  }
  template <class Reader>
  void receive(Reader& reader) {
    PackageQueue queue = memory_.queue();
    std::uint64_t ticket = 0;
    wait_until([&] { return queue.try_peek(ticket); });
    const auto& header = queue.header(ticket);
    reader(queue.row(ticket, header.words, 0), header.count, header.words, queue.columns(header.words));
    queue.release(ticket);
  }

 private:
  static std::uint32_t payload(std::uint32_t words, std::uint32_t lanes) {
    return (8 * words * lanes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  static std::uint32_t slots_for(std::uint32_t payload_bytes) {
    const std::uint64_t fit = kRingBytes / PackageQueue::storage_bytes(1, payload_bytes);
    return static_cast<std::uint32_t>(std::bit_floor(std::max<std::uint64_t>(fit, 4)));
  }

  std::uint32_t words_, lanes_;
  PackageMemory memory_;
};

}  // namespace esker::bench
