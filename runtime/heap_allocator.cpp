// Collective allocation, and copies between the heap and the program.
#include <esker/runtime/heap_allocator.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include <esker/device/error.hpp>

namespace esker {

void refresh_heap(detail::KernelContext& context, const HeapMemory& memory, LaneExecutor& executor) {
  context.heap = {memory.base(), memory.end().load(std::memory_order_relaxed)};
  executor.set_heap_end(context.heap.bytes);
}

std::vector<GatherBlock> HeapAllocator::agree(std::uint64_t count, std::size_t element_bytes,
                                              std::size_t alignment, bool largest) {
  const std::uint64_t available = executor_.available_bytes(memory_);
  auto blocks = collectives_.gather(Collective::kAllocate,
                                    {count, element_bytes, available, alignment, largest ? 1u : 0u, 0});
  const auto& first = blocks[0].values;
  for (std::uint32_t pe = 0; pe < job_.n_pes; ++pe) {
    const auto& other = blocks[pe].values;
    if (other[4] != first[4]) {
      throw Error(Error::Kind::kContract,
                  fmt::format("heap(): {} is in allocate and {} in allocate_largest",
                              job_.name(other[4] == 0 ? pe : 0), job_.name(other[4] == 0 ? 0 : pe)));
    }
    if ((other[0] == first[0] || largest) && other[1] == first[1] && other[3] == first[3]) continue;
    throw Error(
        Error::Kind::kContract,
        fmt::format(
            "heap().allocate: {} asks for {} elements of {} bytes, {} for {} of {}{}", job_.name(pe),
            other[0], other[1], job_.name(0), first[0], first[1],
            other[3] == first[3] ? "" : fmt::format(", aligned to {} and {} bytes", other[3], first[3])));
  }
  return blocks;
}

void* HeapAllocator::allocate_bytes(std::uint64_t* wanted, std::size_t element_bytes, std::size_t alignment,
                                    bool largest) {
  if (!std::has_single_bit(alignment) || alignment > kMostAlignment) {
    misuse(fmt::format("heap().allocate: an alignment of {} bytes is no power of two up to {}", alignment,
                       kMostAlignment));
  }
  const auto blocks = agree(*wanted, element_bytes, alignment, largest);
  for (const GatherBlock& block : blocks) *wanted = std::max(*wanted, block.values[0]);
  const std::uint64_t count = *wanted;
  // What would overflow is more than any heap has; every PE sees the same numbers and refuses alike.
  const bool countable = count <= memory_.limit_bytes() / element_bytes;
  const std::uint64_t bytes = countable ? count * element_bytes : 0;
  const auto offset = countable ? memory_.find(bytes, alignment) : std::nullopt;
  if (!offset) {
    throw Error(
        Error::Kind::kOutOfMemory,
        fmt::format("heap().allocate: {} elements of {} bytes do not fit: {} of the symmetric heap's {} on "
                    "each PE are taken; raise --heap-bytes (ESKER_HEAP_BYTES)",
                    count, element_bytes, in_mib(memory_.allocated_bytes()), in_mib(memory_.limit_bytes())));
  }
  for (std::uint32_t pe = 0; pe < job_.n_pes; ++pe) {
    if (blocks[pe].values[2] < bytes) {
      throw Error(
          Error::Kind::kOutOfMemory,
          fmt::format("heap().allocate: {} on each PE are more than the {} that {}'s share of its host's "
                      "memory has left; use fewer PEs a host or a smaller problem",
                      in_mib(bytes), in_mib(blocks[pe].values[2]), job_.name(pe)));
    }
  }
  const bool taken = memory_.take(*offset, bytes);
  refresh_heap(context_, memory_, executor_);  // before any PE can send to it
  const auto results = collectives_.gather(Collective::kAllocate, {taken ? 1u : 0u, 0, 0, 0, 0, 0});
  for (std::uint32_t pe = 0; pe < job_.n_pes; ++pe) {
    if (results[pe].values[0] == 1) continue;
    if (taken) memory_.release(*offset);
    throw Error(Error::Kind::kOutOfMemory,
                fmt::format("heap().allocate: {}'s host has no {} left", job_.name(pe), in_mib(bytes)));
  }
  return memory_.base() + *offset;
}

void HeapAllocator::free_bytes(void* at) {
  const auto offset = static_cast<std::uint64_t>(static_cast<std::byte*>(at) - memory_.base());
  const auto blocks = collectives_.gather(Collective::kFree, {offset, 0, 0, 0, 0, 0});
  for (std::uint32_t pe = 0; pe < job_.n_pes; ++pe) {
    if (blocks[pe].values[0] == blocks[0].values[0]) continue;
    throw Error(Error::Kind::kContract,
                fmt::format("heap().free: {} frees offset {:#x}, {} {:#x}", job_.name(pe),
                            blocks[pe].values[0], job_.name(0), blocks[0].values[0]));
  }
  if (!memory_.release(offset))
    misuse(fmt::format("heap().free: nothing is allocated at offset {:#x}", offset));
}

void HeapAllocator::copy_out(void* to, const void* from, std::uint64_t bytes) {
  const auto* const in_heap = static_cast<const std::byte*>(from);
  require_inside(in_heap, bytes, "heap().read");
  if (bytes > 0) executor_.read(to, in_heap, bytes);  // an empty span may have no address
}

void HeapAllocator::copy_in(void* to, const void* from, std::uint64_t bytes) {
  auto* const in_heap = static_cast<std::byte*>(to);
  require_inside(in_heap, bytes, "heap().write");
  if (bytes > 0) executor_.write(in_heap, from, bytes);
}

void HeapAllocator::require_inside(const std::byte* in_heap, std::uint64_t bytes, const char* call) const {
  failure_.raise_if_set();
  const auto offset = static_cast<std::uint64_t>(in_heap - memory_.base());
  const std::uint64_t end = memory_.end().load(std::memory_order_relaxed);
  if (offset <= end && bytes <= end - offset) return;
  misuse(fmt::format("{}: {} bytes at heap offset {} are outside the symmetric heap of {} bytes", call, bytes,
                     static_cast<std::int64_t>(offset), end));
}

}  // namespace esker
