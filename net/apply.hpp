// Stage 4 on the host: messages become loads, stores and handler calls on the heap.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include <esker/aggregator/wire.hpp>
#include <esker/net/handler_table.hpp>

namespace esker {

/// Applies messages whose ownership block belongs to slice `slice` of `slices`.
///
/// Contract. One thread. Frames have passed wire::find_defect().
/// Ordering. Words are read and written by relaxed atomics, since lanes may read them meanwhile;
///           nothing is a locked read-modify-write, since nobody else writes the ownership block.
///           Where there is one slice, results of requests of this PE itself are stored at once. Other
///           replies go through `call.outbox`, in the order of their requests. Bytes of
///           a block are copied as they are.
/// Errors.   Error{kNetwork}: an address, or where a reply goes, outside the heap or misaligned, naming PE
/// and
///           offset.
///           Error{kHandler}: a handler threw. Nothing of the run that holds a bad address is applied;
///           of a run of active messages, those before the bad one are.
class Applier {
 public:
  Applier(const HandlerTable& handlers, std::uint32_t slice, std::uint32_t slices)
      : handlers_{handlers}, slice_{slice}, slices_{slices} {}

  /// `call` is what handlers get; its heap is the heap of this moment.
  void apply(const wire::FrameHeader& header, const std::byte* frame, HostCall& call);

  std::uint64_t applied() const { return applied_.load(std::memory_order_acquire); }
  /// The handler that runs just now, for reports; null: none.
  const HandlerTable::Entry* was_running() const { return running_.load(std::memory_order_relaxed); }
  /// What handlers have sent, and the replies to requests.
  std::uint64_t sent_by_handlers() const { return sent_.load(std::memory_order_acquire); }
  /// Requests that handlers have sent; replies that have been applied here.
  std::uint64_t asked() const { return asked_.load(std::memory_order_acquire); }
  std::uint64_t answered() const { return answered_.load(std::memory_order_acquire); }

 private:
  void apply_block(const wire::FrameHeader& header, const std::byte* frame, HeapView heap) const;
  std::uint32_t apply_run(const wire::Run& run, HostCall& call);
  std::uint32_t call_handler(const wire::Run& run, HostCall& call);
  std::uint32_t answer(const wire::Run& run, HostCall& call);

  const HandlerTable& handlers_;
  const std::uint32_t slice_;
  const std::uint32_t slices_;
  // Written by this thread. `sent` grows before `applied` does for the message whose handler sent, so a
  // reader of applied, then sent, never misses a message (docs/reference/ordering.md).
  std::atomic<std::uint64_t> applied_{0};
  std::atomic<std::uint64_t> sent_{0};
  std::atomic<std::uint64_t> asked_{0};
  std::atomic<std::uint64_t> answered_{0};
  std::vector<std::uint64_t> replies_;   // a block of them, by rows
  std::vector<std::uint64_t> unpacked_;  // a run of requests
  std::atomic<const HandlerTable::Entry*> running_{nullptr};
};

}  // namespace esker
