// Error: what set-up and collective calls throw.
#pragma once

#include <stdexcept>
#include <string>

#include <esker/device/platform.hpp>

namespace esker {

/// The environment failed: thrown from set-up and collective calls. The message names the call, the
/// values, the cause and what to do; `kind` is for programs that can carry on.
class ESKER_API Error : public std::runtime_error {
 public:
  enum class Kind {
    kConfiguration,  // a setting has no legal value, or asks for what was not built
    kOutOfMemory,    // memory of the host or of the device
    kDevice,         // a call to the device's runtime failed
    kNetwork,        // the transport failed, or a peer sent what it must not
    kHandler,        // an active-message handler threw or is not registered alike on every PE
    kContract,       // a collective call was not made alike on every PE
    kKernel,         // a lane threw (CPU back end)
    kTask,           // a run of tasks has no result: a task failed, or it was stopped
    kTransfer,       // a plan, a set of copies or a batch contradicts itself, or asks for what is not there
  };

  Error(Kind kind, const std::string& message) : std::runtime_error{message}, kind_{kind} {}
  Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

/// Text for reports: "configuration", "network", ...
ESKER_API const char* to_string(Error::Kind kind) noexcept;

}  // namespace esker
