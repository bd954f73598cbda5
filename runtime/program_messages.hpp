// What the program itself sends where the heap is in a GPU's memory: a kernel of the library's own sends it.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <esker/aggregator/command.hpp>
#include <esker/runtime/device_context.hpp>

namespace esker {

namespace gpu {
class Occupancy;
}  // namespace gpu

/// In pinned memory.
struct ProgramMessage {
  std::uint32_t command;
  std::uint32_t width;
  std::uint64_t words[kMaxMessageWords];
};
static_assert(std::is_trivially_copyable_v<ProgramMessage> && sizeof(ProgramMessage) == 80);

/// Starts a kernel on `stream` that sends them, a lane each: "", or what went wrong. They stay as they are
/// until it has ended.
std::string start_program_messages(const detail::KernelContext& context, const ProgramMessage* messages,
                                   std::uint64_t count, void* stream, gpu::Occupancy& occupancy);

}  // namespace esker
