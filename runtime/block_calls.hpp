// What stands between a call for a block and the network: checks, layouts, and copies to this PE itself.
#pragma once

#include <string>

#include <esker/net/block_layout.hpp>
#include <esker/net/block_memory.hpp>
#include <esker/net/failure.hpp>
#include <esker/net/network.hpp>
#include <esker/runtime/block_operations.hpp>
#include <esker/runtime/heap_memory.hpp>
#include <esker/runtime/job_shape.hpp>

namespace esker {

/// Contract. Any thread.
/// Errors.   What the runtime has failed with. Misuse aborts, and says `who` called.
class BlockCalls {
 public:
  /// `memory`: null where the heap is in the host's memory.
  BlockCalls(const JobShape& job, const HeapMemory& heap, BlockMemory* memory, const Failure& failure,
             Network& network)
      : job_{job}, heap_{heap}, memory_{memory}, failure_{failure}, network_{network} {}

  void start(const detail::BlockCall& call, const std::string& who);

 private:
  std::uint64_t require_in_heap(const void* at, const BlockLayout& layout, std::uint64_t bytes,
                                const detail::BlockCall& call, const std::string& who) const;
  void copy_here(std::byte* to, const BlockLayout& to_layout, const std::byte* from,
                 const BlockLayout& from_layout, std::uint64_t bytes) const;

  const JobShape job_;
  const HeapMemory& heap_;
  BlockMemory* const memory_;
  const Failure& failure_;
  Network& network_;
};

}  // namespace esker
