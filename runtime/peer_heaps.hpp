// Heaps of PEs of this host that lanes and blocks reach without a message, and the gets from them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <esker/aggregator/command.hpp>
#include <esker/net/block_memory.hpp>
#include <esker/net/shared/segment.hpp>
#include <esker/runtime/collectives.hpp>
#include <esker/runtime/heap_memory.hpp>
#include <esker/runtime/job_shape.hpp>

namespace esker {

/// Contract. open() is the user's thread's, before there are lanes and blocks; the rest any thread's.
/// Ordering. A get is a relaxed load, like the one by which a peer would answer. Blocks are plain copies, and
///           no message is under way to what they touch.
class PeerHeaps final : public BlockMemory {
 public:
  /// Collective. Opens this PE's heap, and with `peers_too` what PEs of its host share: "", or why it does
  /// not reach one of these.
  std::string open(const JobShape& job, HeapMemory& heap, Collectives& collectives, bool peers_too);
  /// Serves what it can of a package's gets, word r of the message in column c at rows[r * columns + c], and
  /// moves the others to the front. Of other commands none. Returns how many of `count` are left.
  std::uint32_t serve_gets(Command command, std::uint64_t* rows, std::uint32_t columns, std::uint32_t count);
  std::uint64_t local_gets() const { return local_gets_.load(std::memory_order_relaxed); }
  std::uint64_t remote_gets() const { return remote_gets_.load(std::memory_order_relaxed); }

  void copy(void* to, const void* from, std::uint64_t bytes) override { std::memcpy(to, from, bytes); }
  void wait_for_copies() override {}
  /// While lanes send, this core is theirs: the owner copies in steps that have moved messages, a part that
  /// delays the next one little. A pause is longer than a round trip, and ends before the owner naps.
  std::uint64_t bytes_a_step(std::uint32_t steps_without_messages) const override {
    constexpr std::uint32_t kPause = 64;
    if (steps_without_messages == 0) return 2 << 10;
    return steps_without_messages < kPause ? 0 : 64 << 10;
  }
  std::byte* reached_heap(std::uint32_t pe) const override { return bases_.empty() ? nullptr : bases_[pe]; }

 private:
  template <class T>
  std::uint32_t serve(std::uint64_t* address, std::uint64_t* result, std::uint32_t count);

  std::uint32_t pe_ = 0;
  std::vector<std::byte*> bases_;  // by PE; null: out of reach
  std::vector<std::unique_ptr<shared::Segment>> peers_;
  std::atomic<std::uint64_t> local_gets_{0}, remote_gets_{0};
};

}  // namespace esker
