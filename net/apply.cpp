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
#include <esker/net/apply_loops.hpp>
#include <esker/net/blocks.hpp>

namespace esker {
namespace {

using apply::for_each_address, apply::kPrefetchAhead, apply::load, apply::Slice, apply::store;

template <Operation O, class T>
void update(std::byte* at, std::uint64_t word) {
  if constexpr (O == Operation::kPut) {
    store<T>(at, value_of<T>(word));
  } else {
    store<T>(at, updated<O>(load<T>(at), value_of<T>(word)));
  }
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

/// Puts, each followed by its signal. A signal's word may lie in another slice, so its update is a locked
/// one; whoever sees it ([signal], acquire) sees the put.
std::uint32_t apply_signals(const wire::Run& run, HeapView heap, Slice slice) {
  const std::uint32_t signal_row = 1 + value_words(run.command.operand);
  wire::Run signals = run;
  signals.address = run.row(signal_row);
  apply::check_addresses(signals, 8, heap);
  return with_operation({Operation::kPut, run.command.operand, 0}, [&]<Operation, class T>() {
    return for_each_address<sizeof(T)>(run, heap, slice, [&](std::uint32_t i) {
      std::byte* const at = heap.base + run.address[i];
      if constexpr (std::is_same_v<T, Bytes16>) {
        store<std::uint64_t>(at, run.row(1)[i]);
        store<std::uint64_t>(at + 8, run.row(2)[i]);
      } else {
        store<T>(at, value_of<T>(run.row(1)[i]));
      }
      const std::atomic_ref<std::uint64_t> signal(
          *reinterpret_cast<std::uint64_t*>(heap.base + signals.address[i]));
      const std::uint64_t value = run.row(signal_row + 1)[i];
      if (run.command.operation == Operation::kPutSetSignal)
        signal.store(value, std::memory_order_release);  // [signal]
      else
        signal.fetch_add(value, std::memory_order_release);  // [signal]
    });
  });
}

}  // namespace

void Applier::apply(const wire::FrameHeader& header, const std::byte* frame, HostCall& call) {
  if (header.kind == wire::Kind::kBlock) return apply_block(header, frame, call.heap);
  call.source = header.source;
  call.asked = &asked_;
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

/// It is counted by Blocks, when all slices have it.
void Applier::apply_block(const wire::FrameHeader& header, const std::byte* frame, HeapView heap) const {
  const wire::BlockHeader block = wire::block_header(frame);
  require_inside(header, block, heap.bytes);
  const BlockLayout layout{block.piece_bytes, block.stride};
  const std::byte* const bytes = frame + wire::kBlockBytesAt;
  const Slice slice{slice_, slices_};
  layout.for_each_stretch(block.first, header.bytes - wire::kBlockBytesAt,
                          [&](std::uint64_t offset, std::uint64_t at, std::uint64_t length) {
                            std::uint64_t to = block.offset + offset;
                            if (slices_ == 1) return void(std::memcpy(heap.base + to, bytes + at, length));
                            for (std::uint64_t left = length; left > 0;) {
                              const std::uint64_t part =
                                  std::min(left, kOwnershipBytes - to % kOwnershipBytes);
                              if (slice.has(to))
                                std::memcpy(heap.base + to, bytes + at + length - left, part);
                              to += part;
                              left -= part;
                            }
                          });
}

std::uint32_t Applier::apply_run(const wire::Run& run, HostCall& call) {
  const HeapView heap = call.heap;
  const Slice slice{slice_, slices_};
  // find_defect() lets no operation through that there is not.
  if (is_request(run.command.operation)) return answer(run, call);
  if (has_signal(run.command.operation)) return apply_signals(run, heap, slice);
  const std::uint32_t applied = is_call(run.command)
                                    ? call_handler(run, call)
                                    : with_operation(run.command, [&]<Operation O, class T>() {
                                        return apply_all<O, T>(run, heap, slice);
                                      });
  if (run.command.operation == Operation::kReply) answered_.fetch_add(applied, std::memory_order_release);
  return applied;
}

std::uint32_t Applier::call_handler(const wire::Run& run, HostCall& call) {
  const HandlerTable::Entry& handler = *handlers_.find(run.command.handler);
  const HeapView heap = call.heap;
  std::uint32_t applied = 0;
  std::uint64_t arguments[kMaxMessageWords - 1];
  const bool takes_bytes = is_bytes_call(run.command);
  running_.store(&handler, std::memory_order_relaxed);
  call.handler = run.command.handler;
  for (std::uint32_t i = 0; i < run.count; ++i) {
    const std::uint64_t offset = run.address[i];
    if (i + kPrefetchAhead < run.count) {
      __builtin_prefetch(heap.base + std::min(run.address[i + kPrefetchAhead], heap.bytes), 1);
    }
    if (!Slice{slice_, slices_}.has(offset)) continue;
    apply::check_target(handler, offset, heap);
    BytesArgument bytes{};
    if (takes_bytes) {  // find_defect() has seen that it is the only one, and of that size
      bytes = {reinterpret_cast<const std::byte*>(run.row(2)), run.row(1)[0]};
    } else {
      for (std::uint32_t r = 1; r < run.words; ++r) arguments[r - 1] = run.row(r)[i];
    }
    try {
      handler.call(call, heap.base + offset, takes_bytes ? static_cast<const void*>(&bytes) : arguments);
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
