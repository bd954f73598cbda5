// What operations on many elements of an array say of bad arguments.
#include <esker/containers/array_operations.hpp>

#include <fmt/format.h>

#include <esker/device/error.hpp>

namespace esker::containers {

void bad_lengths(const char* call, std::uint64_t indices, const char* what, std::uint64_t others) {
  misuse(fmt::format("{}: {} indices and {} {}: there must be as many of both", call, indices, others, what));
}

void bad_index_of_many(const char* call, const std::string& index, std::uint64_t position,
                       std::uint64_t count, std::uint64_t size) {
  misuse(fmt::format("{}: index {}, at position {} of {}, of an array of {} elements", call, index, position,
                     count, size));
}

void bad_pes(const char* call, std::uint32_t pes, std::uint32_t n_pes) {
  misuse(fmt::format("{}: the array was allocated by a Runtime of {} PEs, and this one has {}", call, pes,
                     n_pes));
}

void bad_handler(const char* call) {
  misuse(
      fmt::format("{}: the Handler is a default one, which stands for no handler; give what "
                  "Runtime::register_handler() has returned",
                  call));
}

}  // namespace esker::containers
