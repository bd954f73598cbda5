// A second call stack on the same OS thread.
//
// It stands on fcontext, the switch under boost::context::fiber, and not on that class: ThreadSanitizer
// counts function entries and exits on each fiber, and the class's templates enter on one and leave on
// another.
#include <cxxabi.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/context/detail/fcontext.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <esker/device/cpu/fiber.hpp>
#include <esker/device/error.hpp>
#include <memory>
#include <new>
#include <string>
#include <utility>

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

  // Of the OS thread, whatever ThreadSanitizer takes its fibers for.
  __attribute__((no_sanitize("thread"), noinline)) static ExceptionState exchange(
      const ExceptionState& next) {
    ExceptionState previous;
    auto* globals = __cxxabiv1::__cxa_get_globals();
    std::memcpy(&previous, globals, sizeof previous);
    std::memcpy(static_cast<void*>(globals), &next, sizeof next);
    return previous;
  }
};

#if !defined(ESKER_ASAN) && !defined(ESKER_TSAN)  // which name it themselves
/// The low end of the stack that this thread is on, its guard page; null outside fibers.
thread_local const char* guard_page = nullptr;
struct sigaction former_action;

/// Async-signal-safe but for snprintf, which does not allocate for these.
[[noreturn]] void die_of_overflow() {
  const char* const kernel = running_kernel();
  const std::string who = who_am_i();  // short enough to need no memory
  char text[512];
  const int length =
      std::snprintf(text, sizeof text,
                    "esker: %s%sthe stack of a lane of %s%s%s has overflowed: lanes that take a GroupItem "
                    "have %zu KiB each; "
                    "keep large arrays off it and do not recurse deeply, or give each lane a thread's stack "
                    "(--group-execution threads)\n",
                    who.c_str(), who.empty() ? "" : ": ", kernel == nullptr ? "a kernel" : "kernel '",
                    kernel == nullptr ? "" : kernel, kernel == nullptr ? "" : "'", Fiber::kStackBytes / 1024);
  if (write(STDERR_FILENO, text, std::min(sizeof text - 1, static_cast<std::size_t>(length))) < 0) _exit(1);
  std::signal(SIGABRT, SIG_DFL);
  std::abort();
}

void on_fault(int signal, siginfo_t* info, void* where) {
  // A frame of several pages may begin below the guard page.
  constexpr std::ptrdiff_t kBelow = 64 * 1024, kPage = 4096;
  const std::ptrdiff_t at = static_cast<const char*>(info->si_addr) - guard_page;
  if (guard_page != nullptr && at >= -kBelow && at < kPage) die_of_overflow();
  if ((former_action.sa_flags & SA_SIGINFO) != 0) return former_action.sa_sigaction(signal, info, where);
  if (former_action.sa_handler != SIG_DFL && former_action.sa_handler != SIG_IGN)
    return former_action.sa_handler(signal);
  std::signal(signal, SIG_DFL);  // the fault comes again and ends the process, as without this handler
}

/// A handler needs a stack other than the one that is full.
class SignalStack {
 public:
  SignalStack() {
    stack_t present{};
    sigaltstack(nullptr, &present);
    if ((present.ss_flags & SS_DISABLE) == 0) return;  // another one serves as well
    memory_ = std::make_unique<char[]>(kBytes);
    const stack_t mine{memory_.get(), 0, kBytes};
    sigaltstack(&mine, nullptr);
  }
  ~SignalStack() {
    if (memory_ == nullptr) return;
    const stack_t none{nullptr, SS_DISABLE, 0};
    sigaltstack(&none, nullptr);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  static constexpr std::size_t kBytes = 64 * 1024;
  std::unique_ptr<char[]> memory_;
};

/// Before the first fiber of this thread.
void watch_for_overflow() {
  static thread_local const SignalStack stack;
  static const bool is_installed = [] {
    struct sigaction action {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    return sigaction(SIGSEGV, &action, &former_action) == 0;
  }();
  static_cast<void>(is_installed);
}
#endif

context::stack_context allocate_stack() {
#if !defined(ESKER_ASAN) && !defined(ESKER_TSAN)
  watch_for_overflow();
#endif

  try {
    return context::protected_fixedsize_stack(Fiber::kStackBytes).allocate();
  } catch (const std::bad_alloc&) {
    throw Error(Error::Kind::kOutOfMemory,
                "a lane's stack of " + std::to_string(Fiber::kStackBytes / 1024) +
                    " KiB cannot be had: lanes that wait for each other need one each; launch smaller groups "
                    "(--group-lanes) on fewer threads (--cpu-threads), or raise the limits of address space "
                    "(ulimit -v) and of mappings (vm.max_map_count)");
  }
}

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

Fiber::Fiber(Function function, void* argument, bool is_ordered)
    : function_{function}, argument_{argument}, is_ordered_{is_ordered} {
  const context::stack_context stack = allocate_stack();
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
  __tsan_switch_to_fiber(tsan_fiber_, is_ordered_ ? 0 : __tsan_switch_to_fiber_no_sync);
#endif
#if !defined(ESKER_ASAN) && !defined(ESKER_TSAN)
  const char* const host_guard = std::exchange(guard_page, static_cast<char*>(stack_top_) - stack_bytes_);
#endif
  context_ = context::detail::jump_fcontext(context_, this).fctx;
#if !defined(ESKER_ASAN) && !defined(ESKER_TSAN)
  guard_page = host_guard;
#endif
  sanitizers.arrive(nullptr, nullptr);
  ExceptionState::exchange(mine);
}

void Fiber::suspend() {
  Switch sanitizers;
  const ExceptionState mine = ExceptionState::exchange({nullptr, 0});
  sanitizers.leave(host_stack_, host_stack_bytes_);
#if defined(ESKER_TSAN)
  __tsan_switch_to_fiber(tsan_host_, is_ordered_ ? 0 : __tsan_switch_to_fiber_no_sync);
#endif
  host_ = context::detail::jump_fcontext(host_, nullptr).fctx;
  sanitizers.arrive(&host_stack_, &host_stack_bytes_);
  ExceptionState::exchange(mine);
}

}  // namespace esker::cpu
