// Threads that read a PE's share of a graph's edges.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "edge_source.hpp"

namespace graph {

/// Blocks of items on their way from several threads to one.
///
/// Contract. Each reader calls push() for its blocks, and end() once; the taker calls pop() until there is
///           nothing.
/// Progress. push() waits while kWaiting blocks are not taken, but no longer once stop() was called: it says
///           no then, and the reader ends.
template <class Item>
class BlockQueue {
 public:
  explicit BlockQueue(std::uint32_t readers) : readers_{readers} {}

  bool push(std::vector<Item> block) {
    std::unique_lock lock(mutex_);
    taken_.wait(lock, [&] { return stopped_ || blocks_.size() < kWaiting; });
    if (stopped_) return false;
    blocks_.push_back(std::move(block));
    pushed_.notify_one();
    return true;
  }
  /// The calling reader reads no more; because of `failure`, if there is one.
  void end(std::exception_ptr failure) {
    const std::lock_guard lock(mutex_);
    --readers_;
    if (failure && !failure_) failure_ = std::move(failure);
    pushed_.notify_one();
  }
  /// Nothing where all readers have ended. Throws what one of them has thrown.
  std::optional<std::vector<Item>> pop() {
    std::unique_lock lock(mutex_);
    pushed_.wait(lock, [&] { return failure_ || !blocks_.empty() || readers_ == 0; });
    if (failure_) std::rethrow_exception(failure_);
    if (blocks_.empty()) return std::nullopt;
    std::vector<Item> block = std::move(blocks_.front());
    blocks_.pop_front();
    taken_.notify_one();
    return block;
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    taken_.notify_all();
  }

 private:
  static constexpr std::size_t kWaiting = 64;

  std::mutex mutex_;
  std::condition_variable pushed_, taken_;
  std::deque<std::vector<Item>> blocks_;
  std::uint32_t readers_;  // that have not ended
  bool stopped_ = false;
  std::exception_ptr failure_;
};

/// Shows each edge of `part` once, in blocks and in no order: take(std::span<const Item>), on the calling
/// thread, gets what convert(edge), on any, has made of it; a std::optional<Item>, to leave edges out.
/// `threads` read, or with one the caller alone. Throws what any of these has thrown, when nobody reads any
/// more.
template <class Item, class Convert, class Take>
void for_each_block(const EdgeSource& source, inputs::Part part, std::uint32_t threads,
                    const Convert& convert, const Take& take) {
  constexpr std::size_t kBlock = 1 << 12;
  struct Stopped {};
  const auto read = [&](inputs::Part mine, const auto& give) {
    std::vector<Item> block;
    block.reserve(kBlock);
    source.for_each_edge(mine, [&](const inputs::Edge& edge) {
      if (const std::optional<Item> item = convert(edge)) block.push_back(*item);
      if (block.size() < kBlock) return;
      give(block);
      block.clear();
      block.reserve(kBlock);
    });
    give(block);
  };
  if (threads == 1) return read(part, take);

  BlockQueue<Item> blocks(threads);
  std::vector<std::jthread> readers;
  struct Stop {
    BlockQueue<Item>& blocks;
    ~Stop() { blocks.stop(); }
  } const stop{blocks};  // goes before the readers, who may wait
  for (std::uint32_t t = 0; t < threads; ++t) {
    readers.emplace_back([&, t] {
      std::exception_ptr failure;
      try {
        read(inputs::nested(part, {t, threads}), [&](std::vector<Item>& block) {
          if (!blocks.push(std::move(block))) throw Stopped{};
        });
      } catch (const Stopped&) {
      } catch (...) {
        failure = std::current_exception();
      }
      blocks.end(failure);
    });
  }
  while (const auto block = blocks.pop()) take(std::span<const Item>(*block));
}

}  // namespace graph
