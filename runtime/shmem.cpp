// What the operations say of bad arguments.
#include <esker/runtime/shmem.hpp>

#include <fmt/format.h>

#include <esker/device/error.hpp>

namespace esker::detail {

void bad_target(Caller caller, const char* call, std::uint64_t offset, std::uint64_t bytes,
                std::uint64_t heap_bytes, std::uint32_t pe, std::uint32_t n_pes) {
  const std::string who = caller.is_handler
                              ? fmt::format("{} in a handler", call)
                              : fmt::format("{} by lane {} of group {}", call, caller.lane, caller.group);
  if (pe >= n_pes) misuse(fmt::format("{}: PE {} is not below {}", who, pe, n_pes));
  misuse(fmt::format("{}: a target of {} bytes at heap offset {} is outside the symmetric heap of {} bytes",
                     who, bytes, static_cast<std::int64_t>(offset), heap_bytes));
}

}  // namespace esker::detail
