// A second call stack on the same OS thread.
#pragma once

#include <cstddef>

namespace esker::cpu {

/// State. Suspended, or running inside resume(). Its function never returns: it suspends for good, and
/// the stack may then be freed under it, so nothing on it may need a destructor.
///
/// Contract. resume() and the destructor are called outside the fiber, suspend() inside; always on the
/// OS thread that made it. Each stack ends in a guard page: what runs into it ends the process with a
/// message, unless the program has put another handler of SIGSEGV in place of ours since.
class Fiber {
 public:
  static constexpr std::size_t kStackBytes = 256 * 1024;  // committed only where it is touched

  using Function = void (*)(void* argument);  // must not return, must not let an exception out
  /// Without `is_ordered` ThreadSanitizer takes fiber and host for threads that nothing orders.
  Fiber(Function function, void* argument, bool is_ordered = true);
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void resume();
  void suspend();

 private:
  struct Switch;  // what the sanitizers want to hear about a switch

  Function function_;
  void* argument_;
  void* stack_top_;
  std::size_t stack_bytes_;
  void* context_;         // of the fiber while it is suspended
  void* host_ = nullptr;  // of resume()'s caller while the fiber runs

  // For sanitizers; unused without.
  const void* host_stack_ = nullptr;
  std::size_t host_stack_bytes_ = 0;
  [[maybe_unused]] const bool is_ordered_;
  [[maybe_unused]] void* tsan_fiber_ = nullptr;
  [[maybe_unused]] void* tsan_host_ = nullptr;
};

}  // namespace esker::cpu
