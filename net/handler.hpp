// Active-message handlers, and what a running handler may do.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include <esker/aggregator/append.hpp>
#include <esker/aggregator/command.hpp>
#include <esker/net/sender_access.hpp>

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
  std::uint32_t source = 0;                     // the PE whose message it is
  std::uint16_t handler = 0;                    // the one that runs
  std::uint64_t sent = 0;                       // messages that handlers have sent; the applier takes them
  std::atomic<std::uint64_t>* asked = nullptr;  // the applier's count of handlers' requests

  void post(Command command, std::uint32_t width, const std::uint64_t* words) {
    ++sent;
    // Beforehand: the buffer may leave in this call, and the reply come before the handler has ended.
    if (is_request(command.operation)) asked->fetch_add(1, std::memory_order_release);
    append_message(*outbox, command, width, words);
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

  // For Runtime::register_handler() and the applier.
  ESKER_HD HandlerContext(const gpu::PeState& pe_state, std::uint32_t source, std::uint16_t handler);
  /// Where the host calls device code.
  explicit HandlerContext(HostCall& call)
      : heap_{call.heap},
        pe_{call.pe},
        n_pes_{call.n_pes},
        source_{call.source},
        handler_{call.handler},
        host_{&call} {}
  ESKER_HD std::uint16_t handler() const { return handler_; }
  /// What this lane's handlers have sent counts from now on.
  ESKER_HD void count();

 private:
  friend struct detail::SenderAccess;
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
  ESKER_HD void post_words(Command command, std::uint32_t width, const std::uint64_t* words);
  ESKER_HD void post_package(std::uint32_t bin, Command command, std::uint32_t width,
                             const std::uint64_t* words);

  struct OnDevice {
    const gpu::PeState* pe_state;
    std::uint32_t sent;     // messages that this lane's handlers have sent
    std::uint32_t applied;  // of them, those that it has applied itself
  };

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

  // For Runtime::register_handler().
  ESKER_HD std::uint16_t handler() const { return call_->handler; }

 private:
  friend struct detail::SenderAccess;
  ESKER_HD HeapView heap() const { return call_->heap; }
  ESKER_HD Caller caller() const { return {true, 0, 0}; }
  template <std::uint32_t Words>
  void post(Command command, const std::uint64_t (&words)[Words]) {
    call_->post(command, Words, words);
  }

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

/// The function of a handler with its type erased: std::function's call, without its header in every user's
/// program.
class HandlerFunction {
 public:
  /// `function(HostCall&, void* target, const void* arguments)`.
  template <class Function>
  HandlerFunction(
      Function function)  // NOLINT(google-explicit-constructor): a handler is a lambda where it is made
      : function_{new Function(std::move(function))},
        call_{[](void* of, HostCall& call, void* target, const void* arguments) {
          (*static_cast<Function*>(of))(call, target, arguments);
        }},
        destroy_{[](void* of) { delete static_cast<Function*>(of); }} {}
  HandlerFunction(HandlerFunction&& other) noexcept
      : function_{std::exchange(other.function_, nullptr)}, call_{other.call_}, destroy_{other.destroy_} {}
  HandlerFunction& operator=(HandlerFunction&&) = delete;
  ~HandlerFunction() { destroy_(function_); }

  void operator()(HostCall& call, void* target, const void* arguments) const {
    call_(function_, call, target, arguments);
  }

 private:
  void* function_;
  void (*call_)(void* function, HostCall& call, void* target, const void* arguments);
  void (*destroy_)(void* function);
};

inline constexpr std::uint32_t kMaxHandlers = 1024;

/// What a handler gets whose messages are of any size.
struct BytesArgument {
  const std::byte* at;
  std::uint64_t bytes;
};

/// A registered handler, as the applier needs it.
struct HandlerEntry {
  std::string name;
  std::uint32_t words;  // of a message: the address word and the arguments; 0: it gets BytesArgument
  std::uint32_t target_bytes;
  std::uint32_t target_alignment;
  HandlerFunction call;
  const gpu::HandlerOnDevice* device = nullptr;  // where the heap is on a GPU
};

}  // namespace esker
