// What a user says about the channels of a task graph, and what a run of it says afterwards.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/device/platform.hpp>

namespace esker::tasks {

/// What becomes of an element whose channel is full.
enum class WhenFull : std::uint32_t {
  kSpill,   // it waits in Options::memory_bytes; when that is full, too, the run ends
  kInline,  // its domain runs it before it takes anything else; the domain's stack is in memory_bytes
  kFail,    // the run ends
};

struct GraphChannelOptions {
  std::string name;                  // in reports and errors; "": its number
  std::uint32_t capacity = 1 << 15;  // at most 2^31
  int priority = 0;                  // higher ones run first
  WhenFull when_full = WhenFull::kSpill;
};

/// Elements of T that one node processes, of the graph that has made it. Copied by value into functions.
template <class T>
struct GraphChannel {
  std::uint32_t graph = 0, number = 0;  // 0: no graph's
};
/// Elements of T that the host reads after the run.
template <class T>
struct GraphOutput {
  std::uint32_t graph = 0, number = 0;
};

/// Of one run.
struct ESKER_API GraphReport {
  struct Channel {
    std::string name;
    GraphChannelOptions options;
    bool is_output = false;
    std::uint32_t element_bytes = 0;
    std::vector<std::string> into;   // channels that its node spawns into
    std::uint64_t elements = 0;      // that its function was called for; of an output: that it got
    std::uint64_t batches = 0;       // of elements that ran together ...
    std::uint64_t full_batches = 0;  // ... of them, with an element a lane
    std::uint64_t shared = 0;        // elements that went through the channel, not a domain's own buffer
    std::uint64_t spilled = 0;       // when_full: that went to memory ...
    std::uint64_t inlined = 0;       // ... or were run by the domain that spawned them
    std::uint64_t peak = 0;          // elements in the channel, or spilled, that domains saw at most
    std::uint64_t peak_inlined = 0;  // elements on a domain's stack at most
  };
  std::chrono::nanoseconds time{};      // from the call to its end
  std::uint32_t domains = 0;            // waves or threads
  std::uint64_t sum = 0;                // of what tasks have given to add()
  std::uint64_t waits = 0;              // times that a domain had nothing
  std::uint64_t memory_bound = 0;       // bytes of elements that can wait at a time
  std::uint64_t peak_memory_bytes = 0;  // that did, as far as domains have seen
  std::vector<Channel> channels;

  /// The graph in words, a line a channel, with its figures.
  std::string text() const;
};

}  // namespace esker::tasks
