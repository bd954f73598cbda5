// What stands between a call for a block and the network: checks, layouts, and copies to this PE itself.
#pragma once

#include <cstdint>

#include <esker/aggregator/command.hpp>
#include <esker/net/block_layout.hpp>
#include <esker/net/block_memory.hpp>
#include <esker/net/failure.hpp>
#include <esker/net/network.hpp>
#include <esker/runtime/block_operations.hpp>
#include <esker/runtime/heap_memory.hpp>
#include <esker/runtime/job_shape.hpp>

namespace esker {

/// Contract. Any thread. `caller` is a lane; null: the program.
/// Errors.   What the runtime has failed with. Misuse aborts, and says who called.
class BlockCalls {
 public:
  /// `memory`: null where the heap is in the host's memory, and no peer's is within reach.
  BlockCalls(const JobShape& job, const HeapMemory& heap, BlockMemory* memory, const Failure& failure,
             Network& network, std::uint32_t frame_bytes)
      : job_{job},
        heap_{heap},
        memory_{memory},
        failure_{failure},
        network_{network},
        frame_bytes_{frame_bytes} {}

  void start(const detail::BlockCall& call, const Caller* caller);
  /// Never waits: who sends many first waits for Network::was_congested().
  void send_bytes(const detail::BytesCall& call, const Caller* caller);

 private:
  std::uint64_t require_in_heap(const void* at, const BlockLayout& layout, std::uint64_t bytes,
                                const detail::BlockCall& call, const Caller* caller) const;
  void copy_here(std::byte* to, const BlockLayout& to_layout, const std::byte* from,
                 const BlockLayout& from_layout, std::uint64_t bytes) const;

  const JobShape job_;
  const HeapMemory& heap_;
  BlockMemory* const memory_;
  const Failure& failure_;
  Network& network_;
  const std::uint32_t frame_bytes_;
};

}  // namespace esker
