// One run: threads that send through a line and threads that receive from it.
#pragma once

#include <chrono>
#include <cstdint>
#include <latch>
#include <thread>
#include <vector>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>

namespace esker::bench {

/// Reads every word and keeps nothing: the least that a consumer can do with a message.
class alignas(kLineBytes) Adder {
 public:
  void operator()(const std::uint64_t* words, std::uint32_t count, std::uint32_t rows, std::uint64_t stride) {
    for (std::uint32_t r = 0; r < rows; ++r) {
      for (std::uint32_t c = 0; c < count; ++c) sum_ += words[r * stride + c];
    }
  }
  std::uint64_t sum() const { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

/// Counts the arrivals of each message, shared by all receivers.
class Verifier {
 public:
  explicit Verifier(std::uint64_t messages) : seen_(messages) {}
  void operator()(const std::uint64_t* words, std::uint32_t count, std::uint32_t rows, std::uint64_t stride) {
    for (std::uint32_t c = 0; c < count; ++c) {
      const std::uint64_t id = words[c];
      bool whole = id < seen_.size();
      for (std::uint32_t r = 1; r < rows; ++r) whole &= words[r * stride + c] == id + r;
      (whole ? seen_[id] : torn_).fetch_add_relaxed(1);
    }
  }
  bool each_arrived_once() const {
    bool once = torn_.load_relaxed() == 0;
    for (const auto& count : seen_) once &= count.load_relaxed() == 1;
    return once;
  }

 private:
  std::vector<SystemAtomic<std::uint32_t>> seen_;
  SystemAtomic<std::uint32_t> torn_;
};

struct ActiveLanes {
  std::uint32_t producers, consumers;
};

/// Rounds `messages` up so that each producer and each consumer has the same number of whole groups.
inline std::uint64_t whole_shares(std::uint64_t messages, ActiveLanes active, std::uint32_t lanes) {
  const std::uint64_t unit = std::uint64_t{lanes} * active.producers * active.consumers;
  return (messages + unit - 1) / unit * unit;
}

/// Moves `messages`, a whole_shares(), and returns the seconds from the common start to the last arrival.
/// Receiver c uses reader(c).
template <class Line, class ReaderOf>
double move_messages(Line& line, ActiveLanes active, std::uint64_t messages, ReaderOf reader) {
  const std::uint64_t groups = messages / line.lanes();
  std::latch start(active.producers + active.consumers + 1);
  std::vector<std::jthread> threads;
  for (std::uint32_t p = 0; p < active.producers; ++p) {
    threads.emplace_back([&, p] {
      const std::uint64_t share = groups / active.producers;
      start.arrive_and_wait();
      for (std::uint64_t g = p * share; g < (p + 1) * share; ++g) line.send(g * line.lanes());
    });
  }
  for (std::uint32_t c = 0; c < active.consumers; ++c) {
    threads.emplace_back([&, c] {
      // A share each, not a common count of arrivals: that would be one more word to fight for.
      const std::uint64_t share = groups / active.consumers;
      auto& read = reader(c);
      start.arrive_and_wait();
      for (std::uint64_t g = 0; g < share; ++g) line.receive(read);
    });
  }
  // Before the start, not after: with fewer cores than threads this one may be the last to run again.
  const auto begin = std::chrono::steady_clock::now();
  start.arrive_and_wait();
  threads.clear();  // joins
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace esker::bench
