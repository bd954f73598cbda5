// One message into node buffers, for headers that need not know what those are.
#pragma once

#include <cstdint>

#include <esker/aggregator/command.hpp>

namespace esker {

class NodeBuffers;

/// NodeBuffers::append() for one message. Requires buffers that never push back (OnExhausted::kGrow).
ESKER_API void append_message(NodeBuffers& buffers, Command command, std::uint32_t words,
                              const std::uint64_t* message);

}  // namespace esker
