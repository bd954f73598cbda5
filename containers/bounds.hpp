// The check of an index of a distributed array: in debug builds, or where ESKER_CHECK_BOUNDS is 1.
#pragma once

#include <cstdint>

#include <esker/containers/sending.hpp>
#include <esker/net/sender_access.hpp>
#include <esker/runtime/shmem.hpp>

#if !defined(ESKER_CHECK_BOUNDS)
#if defined(NDEBUG)
#define ESKER_CHECK_BOUNDS 0
#else
#define ESKER_CHECK_BOUNDS 1
#endif
#endif

namespace esker::containers {

/// Whether the call may go on. One that may not aborts the job; on a GPU the host is told, which does.
template <class Context>
ESKER_HD bool is_within([[maybe_unused]] const Context& context, [[maybe_unused]] const char* call,
                        [[maybe_unused]] std::uint64_t index, [[maybe_unused]] std::uint64_t size) {
#if ESKER_CHECK_BOUNDS
  if (index < size) [[likely]]
    return true;
  if constexpr (kIsProgram<Context>) {
    esker::detail::bad_host_index(call, index, size);
  } else {
    using esker::detail::SenderAccess;
#if defined(ESKER_ON_GPU)
    if constexpr (esker::detail::kHostCallsDeviceCode) {
      if (!esker::detail::is_lane())
        esker::detail::bad_index(SenderAccess::caller(context), call, index, size);
    }
    esker::detail::report_bad_call(*SenderAccess::pe_state(context), gpu::Fault::kBadIndex,
                                   SenderAccess::caller(context), call, esker::detail::TargetOf::kCall, index,
                                   size, 1, 0);
    return false;
#else
    esker::detail::bad_index(SenderAccess::caller(context), call, index, size);
#endif
  }
#else
  return true;
#endif
}

}  // namespace esker::containers
