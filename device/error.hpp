// Errors: what is thrown, what aborts, and whom it names.
#pragma once

#include <stdexcept>
#include <string>

namespace esker {

/// The environment failed: thrown from set-up and collective calls. The message names the call, the
/// values, the cause and what to do; `kind` is for programs that can carry on.
class Error : public std::runtime_error {
 public:
  enum class Kind {
    kConfiguration,  // a setting has no legal value, or asks for what was not built
    kOutOfMemory,    // memory of the host or of the device
    kDevice,         // a call to the device's runtime failed
    kNetwork,        // the transport failed, or a peer sent what it must not
    kHandler,        // an active-message handler threw or is not registered alike on every PE
    kContract,       // a collective call was not made alike on every PE
    kKernel,         // a lane threw (CPU back end)
  };

  Error(Kind kind, const std::string& message) : std::runtime_error{message}, kind_{kind} {}
  Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

/// Text for reports: "configuration", "network", ...
const char* to_string(Error::Kind kind) noexcept;

/// For a catch (...) block: what was thrown, an Error as it is, anything else as an Error that says where.
Error current_error(const std::string& where);

/// Who this is in messages, for example "PE 3". The thread's name wins over the process's, since over
/// loopback several PEs are threads of one process; the runtime sets one of them for each thread that
/// it starts. An empty name takes it back.
void set_process_name(std::string name);
void set_thread_name(std::string name);
/// The thread's name, else the process's, else "".
std::string who_am_i();

/// The kernel whose lanes this thread runs, for messages: null outside. Whoever runs lanes says it.
void set_running_kernel(const char* name) noexcept;
const char* running_kernel() noexcept;

/// A bug or misuse: writes "esker: PE 3: message" to stderr and aborts. Any thread; if several call it
/// at once, the first one's message is the one printed.
[[noreturn]] void misuse(const std::string& message);

}  // namespace esker
