// Agreement of the PEs before the first message.
#include <esker/runtime/start_up.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include <esker/aggregator/command.hpp>
#include <esker/config.hpp>
#include <esker/device/device_backend.hpp>
#include <esker/device/error.hpp>
#include <esker/device/hash.hpp>

namespace esker {
namespace {

// Where --node-buffer-bytes leaves it open (docs/design/aggregation.md).
constexpr std::uint32_t kNodeBufferBytes = 64 << 10;
constexpr std::uint32_t kNodeBufferBytesOnDevice = 512 << 10;
constexpr std::uint32_t kLeastBuffers = 32;           // in an aggregator's pool: two MiB under way by default
constexpr std::uint64_t kMpiBytesAPeer = 256 * 1024;  // what Open MPI comes to use for a peer

}  // namespace

Config resolved(Config config) {
  validate(config);
  if (config.node_buffer_bytes == 0) {
    const bool on_device = config.device != DeviceKind::kCpu && detail::count_gpus() > 0;
    config.node_buffer_bytes = on_device ? kNodeBufferBytesOnDevice : kNodeBufferBytes;
  }
  return config;
}

JobShape job_of(const Config& config, const Transport& transport) {
  JobShape job{transport.pe(), transport.n_pes(),
               config.project_pes != 0 ? config.project_pes : transport.n_pes(), transport.pes_on_host()};
  std::vector<std::string> names;
  std::vector<std::int64_t> processes;
  bool are_world_ranks = true;
  for (std::uint32_t pe = 0; pe < job.n_pes; ++pe) {
    names.push_back(name_of(transport, pe));
    processes.push_back(transport.find_process(pe).id);
    are_world_ranks &= transport.world_rank(pe) == pe;
  }
  if (!are_world_ranks) job.names = std::make_shared<const std::vector<std::string>>(std::move(names));
  job.processes = std::make_shared<const std::vector<std::int64_t>>(std::move(processes));
  if (job.n_pes > kMaxPes || job.destinations > kMaxPes) {
    throw Error(Error::Kind::kConfiguration,
                fmt::format("{} PEs: a message can name {}", job.n_pes, kMaxPes));
  }
  return job;
}

std::uint32_t buffers_a_pool(const Config& config, const JobShape& job) {
  return std::max(config.buffers_per_destination * job.destinations, kLeastBuffers);
}

std::uint64_t agree(const Config& config, const JobShape& job, Collectives& collectives, HeapMemory& memory,
                    std::uint64_t pool_bytes) {
  const std::uint64_t version = hash_text(build_info().version);
  const std::uint64_t still_untouched = pool_bytes + std::uint64_t{job.n_pes} * kMpiBytesAPeer;
  const std::uint64_t declared = resident_bytes() + still_untouched;
  const bool fits =
      std::min(available_host_bytes() / job.pes_on_host, address_space_left()) >= still_untouched;
  const auto blocks = collectives.gather(
      Collective::kStart,
      {version, config.node_buffer_bytes, memory.limit_bytes(), declared, fits ? 1u : 0u, job.destinations});
  for (std::uint32_t pe = 0; pe < job.n_pes; ++pe) {
    const auto& other = blocks[pe].values;
    const auto& first = blocks[0].values;
    if (other[0] != first[0]) {
      throw Error(Error::Kind::kConfiguration,
                  fmt::format("{} and {} run different versions of Esker", job.name(pe), job.name(0)));
    }
    // Where it is automatic it differs with the hosts, and the least holds for all.
    if (config.heap_bytes == 0) memory.lower_limit(other[2]);
    if (other[1] != first[1] || (config.heap_bytes != 0 && other[2] != first[2]) || other[5] != first[5]) {
      throw Error(
          Error::Kind::kConfiguration,
          fmt::format("{} has node_buffer_bytes {}, heap_bytes {}, destinations {}; {} has {}, {}, {}: "
                      "these must be the same on every PE",
                      job.name(pe), other[1], other[2], other[5], job.name(0), first[1], first[2], first[5]));
    }
    if (other[4] == 0) {
      throw Error(
          Error::Kind::kOutOfMemory,
          fmt::format(
              "{}'s host has too little memory for the PEs on it: each needs {:.1f} MiB beside its "
              "heap; use fewer PEs a host, lower --node-buffer-bytes, or raise a limit of address space "
              "(ulimit -v)",
              job.name(pe), static_cast<double>(other[3]) / (1 << 20)));
    }
  }
  return declared;
}

void print_start_up(const Config& config, const JobShape& job, const StartUpLine& line) {
  if (job.pe != 0) return;
  for (const std::string& warning : config.warnings)
    std::fputs(("esker: warning: " + warning + "\n").c_str(), stderr);
  if (config.startup == StartupPrint::kQuiet) return;
  const std::string why_apart = line.executor.why_heaps_are_apart();
  std::fputs(fmt::format("esker {}: {} PE{}, {} on PE 0's host, {} each; {}{}{}; heap up to {} a PE, "
                         "beside it at most {}\n",
                         build_info().version, job.n_pes, job.n_pes == 1 ? "" : "s", job.pes_on_host,
                         line.executor.describe(line.lane_threads), line.transport,
                         line.own_thread ? "" : ", driven by the program's own thread",
                         why_apart.empty() ? "" : ", heaps apart (" + why_apart + ")",
                         in_mib(line.heap_limit_bytes), in_mib(line.declared_bytes))
                 .c_str(),
             stderr);
}

}  // namespace esker
