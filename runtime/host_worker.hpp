// A host thread that runs lanes, and what it runs.
#pragma once

#include <cstdint>
#include <type_traits>

#include <esker/runtime/outbox.hpp>

namespace esker::detail {

/// A host thread that runs lanes.
#if defined(ESKER_ON_CPU)
struct HostWorker {
  const KernelContext& context;
  Outbox outbox;
};
#else
struct HostWorker;
#endif

/// Runs groups [first, last) of a launch on a worker's thread.
///
/// Contract. A reference: the callable that it is made from outlives it.
class GroupFunction {
 public:
  template <class Function>
  requires(!std::is_same_v<Function, GroupFunction>) GroupFunction(
      const Function& function)  // NOLINT(google-explicit-constructor): it is a lambda where it is made
      : function_{&function},
        call_{[](const void* of, HostWorker& worker, std::uint64_t first, std::uint64_t last) {
          (*static_cast<const Function*>(of))(worker, first, last);
        }} {}

  void operator()(HostWorker& worker, std::uint64_t first, std::uint64_t last) const {
    call_(function_, worker, first, last);
  }

 private:
  const void* function_;
  void (*call_)(const void* function, HostWorker& worker, std::uint64_t first, std::uint64_t last);
};

}  // namespace esker::detail
