// The consumers' side: host threads that take packages and read or repack their messages.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <esker/aggregator/node_buffers.hpp>
#include <esker/bench/queue/producers.hpp>
#include <esker/device/platform.hpp>

namespace esker::bench {

/// What a consumer does with a package.
enum class Work : std::uint8_t {
  kRead,       // adds up all words
  kAggregate,  // repacks the messages by destination, as stage 2 does; full buffers are reused at once
};

/// What arrived in a run.
struct Arrived {
  std::uint64_t messages = 0;
  std::uint64_t sum = 0;  // of all words
};

/// What the lanes of a run send, added up on the host; without `words` only counted.
Arrived expected_of(const Production& production, std::uint32_t words);

/// Consumer threads of one queue. Their buffers stay from run to run; the threads are new ones.
///
/// Contract. run() starts the kernel and returns when every message has arrived. Where no package arrives
/// for kHangSeconds it says so and ends the process: the kernel cannot be stopped.
class Consumers {
 public:
  static constexpr int kHangSeconds = 20;

  Consumers(Producers& producers, std::uint32_t threads, Work work, std::uint32_t destinations);
  ~Consumers();

  /// Seconds from the launch to the last of `messages`, which is what the production sends. With `check`,
  /// what arrived is added up as well, which for kAggregate costs time.
  double run(const Production& production, std::uint64_t messages, Arrived* check = nullptr);

 private:
  class One;
  std::uint64_t arrived_messages() const;

  Producers& producers_;
  std::vector<std::unique_ptr<One>> all_;
};

}  // namespace esker::bench
