// How parts of the library report: errors that were caught, who reports, and what aborts.
#pragma once

#include <string>

#include <esker/error.hpp>

namespace esker {

/// For a catch (...) block: what was thrown, an Error as it is, anything else as an Error that says where.
ESKER_API Error current_error(const std::string& where);

/// Who this is in messages, for example "PE 3". The thread's name wins over the process's, since over
/// loopback several PEs are threads of one process; the runtime sets one of them for each thread that
/// it starts. An empty name takes it back. The latter returns the name before.
ESKER_API void set_process_name(std::string name);
ESKER_API std::string set_thread_name(std::string name);
/// The thread's name, else the process's, else "".
ESKER_API std::string who_am_i();

/// The kernel whose lanes this thread runs, for messages: null outside. Whoever runs lanes says it.
ESKER_API void set_running_kernel(const char* name) noexcept;
ESKER_API const char* running_kernel() noexcept;

/// A bug or misuse: writes "esker: PE 3: message" to stderr and aborts. Any thread; if several call it
/// at once, the first one's message is the one printed.
[[noreturn]] ESKER_API void misuse(const std::string& message);

}  // namespace esker
