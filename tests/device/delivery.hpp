// Messages that can be told apart, a sink that keeps them, and the count of each.
#pragma once

#include <cstdint>
#include <esker/device/packing.hpp>
#include <esker/queue/package_queue.hpp>
#include <map>
#include <utility>
#include <vector>

#include "on_device.hpp"

namespace esker::testing {

/// A queue as a sink.
struct QueueSink {
  PackageQueue queue;

  ESKER_HD std::uint32_t columns(std::uint32_t words) const { return queue.columns(words); }
  ESKER_HD std::uint64_t reserve(std::uint32_t packages) { return queue.reserve(packages); }
  ESKER_HD bool was_empty(std::uint64_t ticket) const { return queue.was_empty(ticket); }
  ESKER_HD std::uint64_t* row(std::uint64_t ticket, std::uint32_t words, std::uint32_t r) const {
    return queue.row(ticket, words, r);
  }
  ESKER_HD void publish(std::uint64_t ticket, std::uint32_t command, std::uint32_t words,
                        std::uint32_t count) {
    queue.publish(ticket, command, words, count);
  }
  template <class AnyLane>
  ESKER_HD void pause(const AnyLane& lane) const {
    lane.yield();
  }
};
static_assert(Sink<QueueSink>);

/// Memory of a queue that kernels and the test both reach.
class QueueMemory {
 public:
  QueueMemory(std::uint32_t slots, std::uint32_t payload_bytes)
      : counters_(2),
        storage_(PackageQueue::storage_bytes(slots, payload_bytes)),
        sink_{PackageQueue(counters_.data(), counters_.data() + 1, storage_.data(), slots, payload_bytes)} {}
  QueueSink& sink() { return sink_; }

 private:
  SharedArray<PackageQueue::Counter> counters_;
  SharedArray<std::byte> storage_;
  QueueSink sink_;
};

/// Message `number` of lane `lane`: its words, and the command it goes with.
ESKER_HD inline std::uint64_t message_id(std::uint64_t lane, std::uint64_t number) {
  return lane << 16 | number;
}
ESKER_HD inline std::uint64_t message_word(std::uint64_t id, std::uint32_t r) {
  return r == 0 ? id : random_at(id, r);
}

/// Every message that arrived: (id, command, words) and how often.
class Arrivals {
 public:
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // id, command << 32 | words

  /// Takes one package if there is one.
  bool take(PackageQueue& queue) {
    std::uint64_t ticket = 0;
    if (!queue.try_peek(ticket)) return false;
    const auto& header = queue.header(ticket);
    EXPECT_GT(header.count, 0u);
    EXPECT_LE(header.count, queue.columns(header.words));
    for (std::uint32_t c = 0; c < header.count; ++c) {
      const std::uint64_t id = queue.row(ticket, header.words, 0)[c];
      for (std::uint32_t r = 1; r < header.words; ++r) {
        EXPECT_EQ(queue.row(ticket, header.words, r)[c], message_word(id, r));
      }
      ++seen_[{id, std::uint64_t{header.command} << 32 | header.words}];
    }
    ++packages_;
    queue.release(ticket);
    return true;
  }
  void expect_once(std::uint64_t id, std::uint32_t command, std::uint32_t words) {
    const auto found = seen_.find({id, std::uint64_t{command} << 32 | words});
    const std::uint32_t times = found == seen_.end() ? 0 : found->second;
    EXPECT_EQ(times, 1u) << "message " << (id & 0xffff) << " of lane " << (id >> 16) << ", command "
                         << command;
  }
  /// Different messages, wanted or not.
  std::size_t messages() const { return seen_.size(); }
  std::uint64_t packages() const { return packages_; }

 private:
  std::map<Key, std::uint32_t> seen_;
  std::uint64_t packages_ = 0;
};

}  // namespace esker::testing
