// A handler's code on the device, as the host holds it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include <esker/net/gpu/progress_policy.hpp>
#include <esker/net/handler.hpp>

namespace esker::gpu {

class Occupancy;
struct PeState;

/// A handler in a source file that a device compiler compiles, made by register_handler(). Its code is part
/// of progress kernels of its own (net/gpu/progress_kernel.hpp), since a kernel cannot call by address what
/// was not compiled with it.
struct HandlerOnDevice {
  /// Loads its progress kernel onto the current device, whose broker is given. Returns the scratchpad that a
  /// group of it takes beside its pool.
  std::function<std::uint32_t(const Occupancy&)> load;
  /// Starts a progress kernel that also applies messages for handler `index`. Returns "", or what went wrong.
  std::function<std::string(std::uint32_t index, const PeState* pe_state, std::uint64_t number,
                            ProgressShape shape, void* stream)>
      start_progress_kernel;
};

/// In place of a handler's index: the library's own, for requests.
inline constexpr std::uint32_t kRequests = kMaxHandlers + 1;
/// Its code, which applies requests that travel (net/gpu/answer.hpp).
HandlerOnDevice code_for_requests();

}  // namespace esker::gpu
