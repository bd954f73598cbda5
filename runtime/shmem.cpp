// What the operations say of bad arguments.
#include <esker/runtime/shmem.hpp>

#include <fmt/format.h>

#include <esker/device/error.hpp>

namespace esker::detail {
namespace {

std::string name_caller(const char* call, Caller caller) {
  if (caller.is_handler) return fmt::format("{} in a handler", call);
  const char* const kernel = running_kernel();
  return fmt::format("{} by lane {} of group {}{}", call, caller.lane, caller.group,
                     kernel == nullptr ? "" : fmt::format(" of kernel '{}'", kernel));
}

}  // namespace

void bad_target(Caller caller, const char* call, std::uint64_t offset, std::uint64_t bytes,
                std::uint64_t alignment, std::uint64_t heap_bytes, std::uint32_t pe, std::uint32_t n_pes) {
  const std::string who = name_caller(call, caller);
  if (pe >= n_pes) misuse(fmt::format("{}: PE {} is not below {}", who, pe, n_pes));
  if (is_outside(heap_bytes, offset, bytes)) {
    misuse(fmt::format("{}: a target of {} bytes at heap offset {} is outside the symmetric heap of {} bytes",
                       who, bytes, static_cast<std::int64_t>(offset), heap_bytes));
  }
  misuse(fmt::format("{}: a target of {} bytes at heap offset {}, for PE {}, is not aligned to {} bytes", who,
                     bytes, offset, pe, alignment));
}

void no_handler(Caller caller, const char* call) {
  misuse(
      fmt::format("{}: the Handler is a default one, which stands for no handler; send what "
                  "Runtime::register_handler() has returned",
                  name_caller(call, caller)));
}

}  // namespace esker::detail
