// Active-message handlers, and what a running handler may do.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <esker/aggregator/command.hpp>
#include <esker/aggregator/node_buffers.hpp>
#include <esker/aggregator/wire.hpp>

namespace esker {

namespace gpu {
struct PeState;
struct HandlerOnDevice;
}  // namespace gpu

/// A PE's part of the symmetric heap, as messages see it: offsets below `bytes` have memory.
struct HeapView {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
};

/// A handler's call on the host: what the applier knows of it, and where the messages go that it sends. The
/// same type in each pass, so that the host hands it to handlers of any.
struct HostCall {
  HeapView heap;
  std::uint32_t pe;
  std::uint32_t n_pes;
  NodeBuffers* outbox;
  std::uint32_t source = 0;   // the PE whose message it is
  std::uint16_t handler = 0;  // the one that runs
  std::uint64_t sent = 0;     // messages that handlers have sent; the applier takes them

  void post(Command command, std::uint32_t width, const std::uint64_t* words) {
    ++sent;
    outbox->append({command.word(), width, 1, 1, words}, 0);
  }
};

/// Everything in one ownership block of the heap is handled one message at a time.
inline constexpr std::uint64_t kOwnershipBytes = 4096;

ESKER_PASS_BEGIN

/// What a handler gets first. It sends like a lane does: shmem_put(context, ...) and the rest.
///
/// Contract. Valid during the call. Sending never blocks and never fails for want of space: what the
///           network has not yet taken waits in memory (docs/reference/progress.md).
class HandlerContext {
 public:
  static constexpr std::uint64_t kOwnershipBytes = esker::kOwnershipBytes;

#if defined(ESKER_ON_GPU)
  ESKER_HD std::uint32_t pe() const { return pe_; }
  ESKER_HD std::uint32_t n_pes() const { return n_pes_; }
  /// The PE whose message is being handled.
  ESKER_HD std::uint32_t source() const { return source_; }

  // For shmem.hpp and Runtime::register_handler().
  ESKER_HD HandlerContext(const gpu::PeState& pe_state, std::uint32_t source, std::uint16_t handler);
  ESKER_HD std::uint16_t handler() const { return handler_; }
  ESKER_HD HeapView heap() const { return heap_; }
  ESKER_HD Caller caller() const { return {true, 0, 0}; }
  ESKER_HD const gpu::PeState* pe_state() const { return device_.pe_state; }
  template <std::uint32_t Words>
  ESKER_HD void post(Command command, const std::uint64_t (&words)[Words]) {
    if constexpr (detail::kHostCallsDeviceCode) {
      if (!detail::is_lane()) return host_->post(command, Words, words);
    }
    post_words(command, Words, words);
  }
  /// Where the host calls device code.
  explicit HandlerContext(HostCall& call)
      : heap_{call.heap},
        pe_{call.pe},
        n_pes_{call.n_pes},
        source_{call.source},
        handler_{call.handler},
        host_{&call} {}
  /// For the applier: what this lane's handlers have sent counts from now on.
  ESKER_HD void count();

 private:
  struct OnDevice {
    const gpu::PeState* pe_state;
    std::uint32_t sent;     // messages that this lane's handlers have sent
    std::uint32_t applied;  // of them, those that it has applied itself
  };
  ESKER_HD void post_words(Command command, std::uint32_t width, const std::uint64_t* words);

  HeapView heap_;
  std::uint32_t pe_;
  std::uint32_t n_pes_;
  std::uint32_t source_;
  std::uint16_t handler_;
  union {
    HostCall* host_;  // where the host calls it
    OnDevice device_;
  };
#else
  explicit HandlerContext(HostCall& call) : call_{&call} {}

  ESKER_HD std::uint32_t pe() const { return call_->pe; }
  ESKER_HD std::uint32_t n_pes() const { return call_->n_pes; }
  /// The PE whose message is being handled.
  ESKER_HD std::uint32_t source() const { return call_->source; }

  // For shmem.hpp and Runtime::register_handler().
  ESKER_HD std::uint16_t handler() const { return call_->handler; }
  ESKER_HD HeapView heap() const { return call_->heap; }
  ESKER_HD Caller caller() const { return {true, 0, 0}; }
  template <std::uint32_t Words>
  void post(Command command, const std::uint64_t (&words)[Words]) {
    call_->post(command, Words, words);
  }

 private:
  HostCall* call_;
#endif
};

ESKER_PASS_END

// What a handler's class may say beside how it is called: see Runtime::register_handler().
namespace detail {

/// Bytes that it owns while it runs, those of its target among them; 0: nothing.
template <class Function>
inline constexpr std::uint64_t kOwnershipOf = [] {
  if constexpr (requires { Function::kOwnershipBytes; }) {
    constexpr std::uint64_t kBytes = Function::kOwnershipBytes;
    static_assert(kBytes == 0 || (kBytes >= 8 && kBytes <= kOwnershipBytes && (kBytes & (kBytes - 1)) == 0),
                  "a handler's kOwnershipBytes is 0 or a power of two from 8 to 4096");
    return kBytes;
  } else {
    return kOwnershipBytes;
  }
}();

template <class Function, class Target, class Arguments>
concept SaysWhatIsNeedless = requires(const Function& function, const Target& target,
                                      const Arguments& arguments) {
  { function.is_needless(target, arguments) } -> std::same_as<bool>;
};

}  // namespace detail

/// The handlers of this PE; index i + 1 stands in the command.
///
/// Contract. add() before messages for the handler can arrive: registration is collective and ends in a
///           barrier. At most kMaxHandlers.
class HandlerTable final : public wire::HandlerWords {
 public:
  static constexpr std::uint32_t kMaxHandlers = 1024;

  struct Entry {
    std::string name;
    std::uint32_t words;  // of a message: the address word and the arguments
    std::uint32_t target_bytes;
    std::uint32_t target_alignment;
    std::function<void(HostCall&, void* target, const void* arguments)> call;  // by the host
    const gpu::HandlerOnDevice* device = nullptr;                              // where the heap is on a GPU
  };

  HandlerTable() { entries_.reserve(kMaxHandlers); }

  /// Returns the handler's index; kMaxHandlers + 1 if the table is full.
  std::uint32_t add(Entry entry) {
    const auto count = count_.load(std::memory_order_relaxed);
    if (count == kMaxHandlers) return kMaxHandlers + 1;
    entries_.push_back(std::move(entry));
    count_.store(count + 1, std::memory_order_release);  // [entry]
    return count + 1;
  }
  /// Null: no such handler. Any thread.
  const Entry* find(std::uint16_t handler) const {
    const auto count = count_.load(std::memory_order_acquire);  // [entry]
    return handler >= 1 && handler <= count ? entries_.data() + (handler - 1) : nullptr;
  }
  std::uint32_t words_of_handler(std::uint16_t handler) const override {
    const Entry* entry = find(handler);
    return entry == nullptr ? 0 : entry->words;
  }

 private:
  std::vector<Entry> entries_;  // reserved in full: an entry never moves
  std::atomic<std::uint32_t> count_{0};
};

}  // namespace esker
