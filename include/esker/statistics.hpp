// What one PE has done so far.
#pragma once

#include <cstdint>

namespace esker {

/// Counters since the Runtime was constructed, of this PE. All but grow.
struct Statistics {
  std::uint64_t messages_published = 0;  // by lanes
  std::uint64_t messages_by_handlers = 0;
  std::uint64_t messages_local = 0;   // routed to this PE
  std::uint64_t messages_remote = 0;  // routed to another
  std::uint64_t messages_direct =
      0;  // of the remote, those that this PE has applied there itself, in no buffer
  std::uint64_t messages_applied = 0;
  // Lanes' calls beside those: they found a message to the same word, and travel in it.
  std::uint64_t combined_local = 0;
  std::uint64_t combined_remote = 0;
  std::uint64_t packages = 0;
  std::uint64_t buffers_sent = 0;               // to other PEs
  std::uint64_t bytes_sent = 0;                 // in them, headers included
  std::uint64_t handler_memory_peak_bytes = 0;  // handlers' messages beyond the pools
};

}  // namespace esker
