// Active-message handlers, and what a running handler may do.
#pragma once

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

/// What a handler gets first. It sends like a lane does: shmem_put(context, ...) and the rest.
///
/// Contract. Valid during the call. Sending never blocks and never fails for want of space: what the
///           network has not yet taken waits in memory (docs/reference/progress.md).
class HandlerContext {
 public:
  /// Everything in one ownership block of the heap is handled one message at a time.
  static constexpr std::uint64_t kOwnershipBytes = 4096;

  ESKER_HD std::uint32_t pe() const { return pe_; }
  ESKER_HD std::uint32_t n_pes() const { return n_pes_; }
  /// The PE whose message is being handled.
  ESKER_HD std::uint32_t source() const { return source_; }

  // For Runtime::register_handler() and the applier.
  ESKER_HD std::uint16_t handler() const { return handler_; }
#if defined(ESKER_ON_GPU)
  ESKER_HD HandlerContext(const gpu::PeState& pe_state, std::uint32_t source, std::uint16_t handler);
  /// For the applier: what this lane's handlers have sent counts from now on.
  ESKER_HD void count();
#else
  HandlerContext(HeapView heap, std::uint32_t pe, std::uint32_t n_pes, NodeBuffers& outbox)
      : heap_{heap}, pe_{pe}, n_pes_{n_pes}, host_{&outbox, 0} {}
  void set_source(std::uint32_t source) { source_ = source; }
  void set_handler(std::uint16_t handler) { handler_ = handler; }
  std::uint64_t take_sent() { return std::exchange(host_.sent, 0); }
#endif

 private:
  friend struct detail::SenderAccess;
  ESKER_HD HeapView heap() const { return heap_; }
  ESKER_HD Caller caller() const { return {true, 0, 0}; }
#if defined(ESKER_ON_GPU)
  ESKER_HD const gpu::PeState* pe_state() const { return device_.pe_state; }
  template <std::uint32_t Words>
  ESKER_HD void post(Command command, const std::uint64_t (&words)[Words]) {
#if defined(ESKER_ON_SIMULATED)
    // There is one pass, so handlers that the host calls come here too.
    if (!simulated::here.is_lane) return post_on_host(command, Words, words);
#endif
    post_words(command, Words, words);
  }
#else
  template <std::uint32_t Words>
  void post(Command command, const std::uint64_t (&words)[Words]) {
    post_on_host(command, Words, words);
  }
#endif

  struct OnHost {
    NodeBuffers* outbox;
    std::uint64_t sent;
  };
  struct OnDevice {
    const gpu::PeState* pe_state;
    std::uint32_t sent;     // messages that this lane's handlers have sent
    std::uint32_t applied;  // of them, those that it has applied itself
  };

#if defined(ESKER_ON_GPU)
  ESKER_HD void post_words(Command command, std::uint32_t width, const std::uint64_t* words);
#endif
#if defined(ESKER_ON_CPU) || defined(ESKER_ON_SIMULATED)
  void post_on_host(Command command, std::uint32_t width, const std::uint64_t* words) {
    ++host_.sent;
    append_message(*host_.outbox, command, width, words);
  }
#endif

  // The same in each pass: where there is but one, the host's objects meet the device's code.
  HeapView heap_;
  std::uint32_t pe_;
  std::uint32_t n_pes_;
  std::uint32_t source_ = 0;
  std::uint16_t handler_ = 0;  // the one that runs
  union {
    OnHost host_;  // where the host calls it
    OnDevice device_;
  };
};

// What a handler's class may say beside how it is called: see Runtime::register_handler().
namespace detail {

/// Bytes that it owns while it runs, those of its target among them; 0: nothing.
template <class Function>
inline constexpr std::uint64_t kOwnershipOf = [] {
  if constexpr (requires { Function::kOwnershipBytes; }) {
    constexpr std::uint64_t kBytes = Function::kOwnershipBytes;
    static_assert(kBytes == 0 || (kBytes >= 8 && kBytes <= HandlerContext::kOwnershipBytes &&
                                  (kBytes & (kBytes - 1)) == 0),
                  "a handler's kOwnershipBytes is 0 or a power of two from 8 to 4096");
    return kBytes;
  } else {
    return HandlerContext::kOwnershipBytes;
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
  /// `function(HandlerContext&, void* target, const void* arguments)`.
  template <class Function>
  HandlerFunction(
      Function function)  // NOLINT(google-explicit-constructor): a handler is a lambda where it is made
      : function_{new Function(std::move(function))},
        call_{[](void* of, HandlerContext& context, void* target, const void* arguments) {
          (*static_cast<Function*>(of))(context, target, arguments);
        }},
        destroy_{[](void* of) { delete static_cast<Function*>(of); }} {}
  HandlerFunction(HandlerFunction&& other) noexcept
      : function_{std::exchange(other.function_, nullptr)}, call_{other.call_}, destroy_{other.destroy_} {}
  HandlerFunction& operator=(HandlerFunction&&) = delete;
  ~HandlerFunction() { destroy_(function_); }

  void operator()(HandlerContext& context, void* target, const void* arguments) const {
    call_(function_, context, target, arguments);
  }

 private:
  void* function_;
  void (*call_)(void* function, HandlerContext& context, void* target, const void* arguments);
  void (*destroy_)(void* function);
};

inline constexpr std::uint32_t kMaxHandlers = 1024;

/// A registered handler, as the applier needs it.
struct HandlerEntry {
  std::string name;
  std::uint32_t words;  // of a message: the address word and the arguments
  std::uint32_t target_bytes;
  std::uint32_t target_alignment;
  HandlerFunction call;
  const gpu::HandlerOnDevice* device = nullptr;  // where the heap is on a GPU
};

}  // namespace esker
