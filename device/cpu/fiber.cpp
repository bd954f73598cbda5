// A second call stack on the same OS thread.
//
// It stands on fcontext, the switch under boost::context::fiber, and not on that class: ThreadSanitizer
// counts function entries and exits on each fiber, and the class's templates enter on one and leave on
// another.
#include <cxxabi.h>

#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cstring>
#include <esker/device/cpu/fiber.hpp>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ESKER_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define ESKER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define ESKER_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define ESKER_TSAN 1
#endif

#if defined(ESKER_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(ESKER_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace esker::cpu {
namespace {

namespace context = boost::context;

/// The exceptions in flight. The C++ runtime keeps them per OS thread; each fiber needs its own, or a
/// lane that waits inside a catch block would see another lane's.
struct ExceptionState {
  void* caught;
  unsigned int uncaught;

  static ExceptionState exchange(const ExceptionState& next) {
    ExceptionState previous;
    auto* globals = __cxxabiv1::__cxa_get_globals();
    std::memcpy(&previous, globals, sizeof previous);
    std::memcpy(static_cast<void*>(globals), &next, sizeof next);
    return previous;
  }
};

}  // namespace

struct Fiber::Switch {
#if defined(ESKER_ASAN)
  void* fake_stack = nullptr;
  void leave(const void* bottom, std::size_t bytes) {
    __sanitizer_start_switch_fiber(&fake_stack, bottom, bytes);
  }
  void arrive(const void** bottom, std::size_t* bytes) const {
    __sanitizer_finish_switch_fiber(fake_stack, bottom, bytes);
  }
#else
  void leave(const void*, std::size_t) {}
  void arrive(const void**, std::size_t*) const {}
#endif

  /// Where a fiber begins; `from.data` is the fiber.
  static void enter(context::detail::transfer_t from) {
    auto& fiber = *static_cast<Fiber*>(from.data);
    fiber.host_ = from.fctx;
    Switch{}.arrive(&fiber.host_stack_, &fiber.host_stack_bytes_);
    fiber.function_(fiber.argument_);
  }
};

Fiber::Fiber(Function function, void* argument) : function_{function}, argument_{argument} {
  const context::stack_context stack = context::protected_fixedsize_stack(kStackBytes).allocate();
  stack_top_ = stack.sp;
  stack_bytes_ = stack.size;
  context_ = context::detail::make_fcontext(stack_top_, stack_bytes_, Switch::enter);
#if defined(ESKER_TSAN)
  tsan_fiber_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(ESKER_TSAN)
  __tsan_destroy_fiber(tsan_fiber_);
#endif
#if defined(ESKER_ASAN)
  __asan_unpoison_memory_region(static_cast<char*>(stack_top_) - stack_bytes_, stack_bytes_);
#endif
  context::stack_context stack;
  stack.sp = stack_top_;
  stack.size = stack_bytes_;
  context::protected_fixedsize_stack(kStackBytes).deallocate(stack);
}

void Fiber::resume() {
  Switch sanitizers;
  const ExceptionState mine = ExceptionState::exchange({nullptr, 0});
  sanitizers.leave(static_cast<char*>(stack_top_) - stack_bytes_, stack_bytes_);
#if defined(ESKER_TSAN)
  tsan_host_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(tsan_fiber_, 0);
#endif
  context_ = context::detail::jump_fcontext(context_, this).fctx;
  sanitizers.arrive(nullptr, nullptr);
  ExceptionState::exchange(mine);
}

void Fiber::suspend() {
  Switch sanitizers;
  const ExceptionState mine = ExceptionState::exchange({nullptr, 0});
  sanitizers.leave(host_stack_, host_stack_bytes_);
#if defined(ESKER_TSAN)
  __tsan_switch_to_fiber(tsan_host_, 0);
#endif
  host_ = context::detail::jump_fcontext(host_, nullptr).fctx;
  sanitizers.arrive(&host_stack_, &host_stack_bytes_);
  ExceptionState::exchange(mine);
}

}  // namespace esker::cpu
