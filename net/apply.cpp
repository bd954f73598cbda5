// The apply loops.
#include <esker/net/apply.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

#include <esker/aggregator/operations.hpp>
#include <esker/aggregator/update.hpp>
#include <esker/device/error.hpp>

namespace esker {
namespace {

// A buffer shows its addresses ahead, which a plain random loop cannot: enough lines are under way to
// fill a core's miss buffers. 16 to 64 measured alike (docs/lab/cpu-message-path.md).
constexpr std::uint32_t kPrefetchAhead = 24;
constexpr std::uint32_t kBlock = 1024;

[[noreturn]] void bad_address(std::uint64_t offset, std::uint32_t bytes, std::uint64_t heap_bytes) {
  throw Error(
      Error::Kind::kNetwork,
      fmt::format("an operation of {} bytes at heap offset {:#x}, which is {} (the heap's allocated part "
                  "ends at {:#x})",
                  bytes, offset, offset % bytes != 0 ? "misaligned" : "outside", heap_bytes));
}

template <class T>
T load(const std::byte* at) {
  return std::atomic_ref<T>(*reinterpret_cast<T*>(const_cast<std::byte*>(at)))
      .load(std::memory_order_relaxed);
}
template <class T>
void store(std::byte* at, T value) {
  std::atomic_ref<T>(*reinterpret_cast<T*>(at)).store(value, std::memory_order_relaxed);
}

template <Operation O, class T>
void update(std::byte* at, std::uint64_t word) {
  if constexpr (O == Operation::kPut) {
    store<T>(at, value_of<T>(word));
  } else {
    store<T>(at, updated<O>(load<T>(at), value_of<T>(word)));
  }
}

/// Which messages of a run are this slice's: all of them where there is one slice.
struct Slice {
  std::uint32_t index;
  std::uint32_t count;
  bool has(std::uint64_t offset) const { return (offset / kOwnershipBytes) % count == index; }
};

/// Throws if an address is misaligned or outside the heap. The whole run first: no branch an address, so
/// it is a fraction of a nanosecond each, and the loops that touch the heap carry no check.
template <std::uint32_t Bytes>
void check_addresses(const wire::Run& run, HeapView heap) {
  const std::uint64_t last = heap.bytes - Bytes;
  std::uint64_t low = 0;
  std::uint64_t high = 0;  // the top bit: an address beyond `last`, which is below 2^63
  for (std::uint32_t i = 0; i < run.count; ++i) {
    low |= run.address[i];
    high |= (last - run.address[i]) | run.address[i];
  }
  if (low % Bytes == 0 && high >> 63 == 0 && heap.bytes >= Bytes) [[likely]]
    return;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const std::uint64_t offset = run.address[i];
    if (heap.bytes < Bytes || offset > last || offset % Bytes != 0) bad_address(offset, Bytes, heap.bytes);
  }
}

/// Calls `one(i)` for each message of the slice in order, prefetching ahead.
template <std::uint32_t Bytes, class One>
std::uint32_t for_each_address(const wire::Run& run, HeapView heap, Slice slice, One one) {
  check_addresses<Bytes>(run, heap);
  const std::uint64_t* const address = run.address;
  const auto prefetch = [&](std::uint32_t i) { __builtin_prefetch(heap.base + address[i], 1); };
  if (slice.count == 1) {
    const std::uint32_t ahead = std::min(kPrefetchAhead, run.count);
    for (std::uint32_t i = 0; i < ahead; ++i) prefetch(i);
    const std::uint32_t steady = run.count - ahead;
    for (std::uint32_t i = 0; i < steady; ++i) {
      prefetch(i + ahead);
      one(i);
    }
    for (std::uint32_t i = steady; i < run.count; ++i) one(i);
    return run.count;
  }
  std::uint32_t applied = 0;
  std::array<std::uint32_t, kBlock> mine;
  for (std::uint32_t begin = 0; begin < run.count; begin += kBlock) {
    const std::uint32_t end = std::min(run.count, begin + kBlock);
    std::uint32_t n = 0;
    for (std::uint32_t i = begin; i < end; ++i) {  // no branch on random data
      mine[n] = i;
      n += slice.has(run.address[i]) ? 1 : 0;
    }
    for (std::uint32_t k = 0; k < n; ++k) prefetch(mine[k]);
    for (std::uint32_t k = 0; k < n; ++k) one(mine[k]);
    applied += n;
  }
  return applied;
}

std::uint32_t put_16(const wire::Run& run, HeapView heap, Slice slice) {
  return for_each_address<16>(run, heap, slice, [&](std::uint32_t i) {
    store<std::uint64_t>(heap.base + run.address[i], run.row(1)[i]);
    store<std::uint64_t>(heap.base + run.address[i] + 8, run.row(2)[i]);
  });
}

template <Operation O, class T>
std::uint32_t apply_all(const wire::Run& run, HeapView heap, Slice slice) {
  if constexpr (std::is_same_v<T, Bytes16>) {
    return put_16(run, heap, slice);
  } else {
    // By value: stores to the heap could change what a reference leads to, for all the compiler knows.
    const std::uint64_t* const values = O == Operation::kInc ? nullptr : run.row(1);
    return for_each_address<sizeof(T)>(
        run, heap, slice, [base = heap.base, address = run.address, values](std::uint32_t i) {
          update<O, T>(base + address[i], O == Operation::kInc ? 1 : values[i]);
        });
  }
}

}  // namespace

void Applier::apply(const wire::FrameHeader& header, const std::byte* frame, HostCall& call) {
  call.source = header.source;
  wire::RunReader reader(frame);
  wire::Run run;
  try {
    while (reader.next(run)) {
      const std::uint32_t applied = apply_run(run, call);
      applied_.fetch_add(applied, std::memory_order_release);
    }
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::kNetwork) throw;
    throw Error(error.kind(), fmt::format("a buffer from PE {}: {}", header.source, error.what()));
  }
}

std::uint32_t Applier::apply_run(const wire::Run& run, HostCall& call) {
  const HeapView heap = call.heap;
  const Slice slice{slice_, slices_};
  // find_defect() lets no operation through that there is not.
  if (run.command.operation == Operation::kActiveMessage) return call_handler(run, call);
  return with_operation(run.command,
                        [&]<Operation O, class T>() { return apply_all<O, T>(run, heap, slice); });
}

std::uint32_t Applier::call_handler(const wire::Run& run, HostCall& call) {
  const HandlerTable::Entry& handler = *handlers_.find(run.command.handler);
  const HeapView heap = call.heap;
  std::uint32_t applied = 0;
  std::uint64_t arguments[kMaxMessageWords - 1];
  running_.store(&handler, std::memory_order_relaxed);
  call.handler = run.command.handler;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const std::uint64_t offset = run.address[i];
    if (i + kPrefetchAhead < run.count) {
      __builtin_prefetch(heap.base + std::min(run.address[i + kPrefetchAhead], heap.bytes), 1);
    }
    if (!Slice{slice_, slices_}.has(offset)) continue;
    if (offset % handler.target_alignment != 0 || heap.bytes < handler.target_bytes ||
        offset > heap.bytes - handler.target_bytes) {
      throw Error(
          Error::Kind::kNetwork,
          fmt::format("handler '{}': a target of {} bytes at heap offset {:#x}, which is {} (the heap's "
                      "allocated part ends at {:#x})",
                      handler.name, handler.target_bytes, offset,
                      offset % handler.target_alignment != 0 ? "misaligned" : "outside", heap.bytes));
    }
    for (std::uint32_t r = 1; r < run.words; ++r) arguments[r - 1] = run.row(r)[i];
    try {
      handler.call(call, heap.base + offset, arguments);
    } catch (const std::exception& error) {
      throw Error(Error::Kind::kHandler, fmt::format("handler '{}' threw on PE {} for a message of PE {}: {}",
                                                     handler.name, call.pe, call.source, error.what()));
    } catch (...) {
      throw Error(Error::Kind::kHandler,
                  fmt::format("handler '{}' threw on PE {} for a message of PE {}: not a std::exception",
                              handler.name, call.pe, call.source));
    }
    if (const std::uint64_t sent = std::exchange(call.sent, 0); sent > 0)
      sent_.fetch_add(sent, std::memory_order_release);
    ++applied;
  }
  running_.store(nullptr, std::memory_order_relaxed);
  return applied;
}

}  // namespace esker
