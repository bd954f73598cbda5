// What the operations say of bad arguments.
#include <esker/runtime/shmem.hpp>

#include <fmt/format.h>

#include <esker/device/error.hpp>

namespace esker::detail {

std::string name_caller(const char* call, Caller caller) {
  if (caller.is_handler) return fmt::format("{} in a handler", call);
  const char* const kernel = running_kernel();
  return fmt::format("{} by lane {} of group {}{}", call, caller.lane, caller.group,
                     kernel == nullptr ? "" : fmt::format(" of kernel '{}'", kernel));
}

namespace {

[[noreturn]] void refuse_target(const std::string& who, TargetOf of, std::uint64_t offset,
                                std::uint64_t bytes, std::uint64_t alignment, std::uint64_t heap_bytes,
                                std::uint32_t pe, std::uint32_t n_pes) {
  const char* const what = of == TargetOf::kReply ? "the reply's target" : "a target";
  if (pe >= n_pes) misuse(fmt::format("{}: PE {} is not below {}", who, pe, n_pes));
  if (is_outside(heap_bytes, offset, bytes)) {
    misuse(fmt::format("{}: {} of {} bytes at heap offset {} is outside the symmetric heap of {} bytes", who,
                       what, bytes, static_cast<std::int64_t>(offset), heap_bytes));
  }
  misuse(fmt::format("{}: {} of {} bytes at heap offset {}, for PE {}, is not aligned to {} bytes", who, what,
                     bytes, offset, pe, alignment));
}

[[noreturn]] void refuse_handler(const std::string& who) {
  misuse(
      fmt::format("{}: the Handler is a default one, which stands for no handler; send what "
                  "Runtime::register_handler() has returned",
                  who));
}

[[noreturn]] void refuse_index(const std::string& who, std::uint64_t index, std::uint64_t size) {
  misuse(fmt::format("{}: index {} of an array of {} elements", who, index, size));
}

}  // namespace

void bad_target(Caller caller, const char* call, TargetOf of, std::uint64_t offset, std::uint64_t bytes,
                std::uint64_t alignment, std::uint64_t heap_bytes, std::uint32_t pe, std::uint32_t n_pes) {
  refuse_target(name_caller(call, caller), of, offset, bytes, alignment, heap_bytes, pe, n_pes);
}

void no_handler(Caller caller, const char* call) { refuse_handler(name_caller(call, caller)); }

void bad_host_target(const char* call, TargetOf of, std::uint64_t offset, std::uint64_t bytes,
                     std::uint64_t alignment, std::uint64_t heap_bytes, std::uint32_t pe,
                     std::uint32_t n_pes) {
  refuse_target(fmt::format("Runtime::{}", call), of, offset, bytes, alignment, heap_bytes, pe, n_pes);
}

void no_host_handler(const char* call) { refuse_handler(fmt::format("Runtime::{}", call)); }

void bad_index(Caller caller, const char* call, std::uint64_t index, std::uint64_t size) {
  refuse_index(name_caller(call, caller), index, size);
}

void bad_host_index(const char* call, std::uint64_t index, std::uint64_t size) {
  refuse_index(fmt::format("{} by the program", call), index, size);
}

}  // namespace esker::detail
