// What ThreadSanitizer is told of lanes that take turns on one thread (Strictness).
#pragma once

#include <esker/device/simulated/lanes.hpp>

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define ESKER_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define ESKER_TSAN 1
#endif
#if defined(ESKER_TSAN)
#include <sanitizer/tsan_interface.h>
// Of ThreadSanitizer's runtime; no header declares them.
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
#endif

namespace esker::simulated {

/// Accesses of the simulation itself, on the stacks of lanes, are no lane's: where lanes are threads to
/// ThreadSanitizer, they are hidden from it.
class Unseen {
 public:
#if defined(ESKER_TSAN)
  Unseen() {
    if (!strictness.lanes_are_threads) return;
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unseen() {
    if (!strictness.lanes_are_threads) return;
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  Unseen() = default;
  ~Unseen() {}
#endif
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
};

/// What comes before give() happens before what comes after a later take().
class Order {
 public:
#if defined(ESKER_TSAN)
  void give() { __tsan_release(this); }
  void take() { __tsan_acquire(this); }
#else
  void give() {}
  void take() {}
#endif
};

}  // namespace esker::simulated
