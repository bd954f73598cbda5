// The symmetric heap as programs see it: PEs agree on what is allocated, and copy from and to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <esker/net/failure.hpp>
#include <esker/runtime/collectives.hpp>
#include <esker/runtime/device_context.hpp>
#include <esker/runtime/heap_memory.hpp>
#include <esker/runtime/lane_executor.hpp>
#include <esker/shmem.hpp>

namespace esker {

/// Contract. As SymmetricHeap. `context`, which kernels take copies of, always knows what is allocated.
class HeapAllocator final : public SymmetricHeap {
 public:
  HeapAllocator(const JobShape& job, HeapMemory& memory, LaneExecutor& executor,
                detail::KernelContext& context, Collectives& collectives, const Failure& failure)
      : job_{job},
        memory_{memory},
        executor_{executor},
        context_{context},
        collectives_{collectives},
        failure_{failure} {}

  std::uint64_t limit_bytes() const override { return memory_.limit_bytes(); }
  std::uint64_t allocated_bytes() const override { return memory_.allocated_bytes(); }
  std::byte* base() const override { return memory_.base(); }
  bool on_host() const override { return executor_.heap_on_host(); }
  void* allocate_bytes(std::uint64_t* count, std::size_t element_bytes, std::size_t alignment,
                       bool largest) override;
  void free_bytes(void* at) override;
  void copy_out(void* to, const void* from, std::uint64_t bytes) override;
  void copy_in(void* to, const void* from, std::uint64_t bytes) override;

 private:
  /// What the PEs ask for, and have left.
  std::vector<GatherBlock> agree(std::uint64_t count, std::size_t element_bytes, std::size_t alignment,
                                 bool largest);
  /// Aborts if the bytes are not in the heap's allocated part.
  void require_inside(const std::byte* in_heap, std::uint64_t bytes, const char* call) const;

  const JobShape job_;
  HeapMemory& memory_;
  LaneExecutor& executor_;
  detail::KernelContext& context_;
  Collectives& collectives_;
  const Failure& failure_;
};

/// Tells lanes where the heap is and how much of it is allocated.
void refresh_heap(detail::KernelContext& context, const HeapMemory& memory, LaneExecutor& executor);

}  // namespace esker
