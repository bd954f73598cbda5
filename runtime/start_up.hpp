// The start of a job: what settings leave open, what the PEs must agree on, and the start-up line.
#pragma once

#include <cstdint>
#include <string>

#include <esker/config.hpp>
#include <esker/net/transport.hpp>
#include <esker/runtime/collectives.hpp>
#include <esker/runtime/heap_memory.hpp>
#include <esker/runtime/job_shape.hpp>
#include <esker/runtime/lane_executor.hpp>

namespace esker {

/// Valid, and with what is for the runtime to choose.
Config resolved(Config config);

/// Error{kConfiguration} if there are more PEs than a message can name.
JobShape job_of(const Config& config, const Transport& transport);

/// Buffers in each aggregator's pool.
std::uint32_t buffers_a_pool(const Config& config, const JobShape& job);

/// Collective. PEs compare their builds and settings; the least automatic heap limit holds for all.
/// `pool_bytes` is what node buffers, and frames on their way, may come to take. Returns the bytes that this
/// PE may come to use beside its heap. Error{kConfiguration} if PEs differ, Error{kOutOfMemory} if a host has
/// too little memory.
std::uint64_t agree(const Config& config, const JobShape& job, Collectives& collectives, HeapMemory& memory,
                    std::uint64_t pool_bytes);

/// PE 0: warnings, and one line that says what the job runs on.
struct StartUpLine {
  const LaneExecutor& executor;
  std::uint32_t lane_threads;
  std::string transport;
  bool own_thread;  // drives the network
  std::uint64_t heap_limit_bytes;
  std::uint64_t declared_bytes;
};
void print_start_up(const Config& config, const JobShape& job, const StartUpLine& line);

}  // namespace esker
