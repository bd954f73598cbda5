// Command line of esker-bench-queue.
#pragma once

#include <cstdint>
#include <string>

#include <esker/bench/harness/measure.hpp>
#include <esker/bench/queue/consumers.hpp>
#include <esker/bench/queue/producers.hpp>

namespace esker::bench {

/// One measurement with kernels as producers. Zeroes are chosen by complete().
struct KernelSettings {
  Election election = Election::kAutoGroup;
  Work work = Work::kRead;
  bool is_divergent = false;
  std::uint32_t bytes = 24;  // of a message
  std::uint32_t group_lanes = 1024;
  std::uint32_t package_bytes = 0;
  std::uint32_t slots = 0;
  std::uint32_t consumers = 0;
  std::uint32_t destinations = 8;
};

struct Options {
  Effort effort;
  std::uint32_t producers = 1;  // threads; the SPSC queue always has one of each
  std::uint32_t consumers = 1;
  double min_ratio = 0;  // 0: not demanded
  std::string json;      // empty: none

  bool uses_kernels = false;  // --device is this build's, or --kernels: the rest applies
  bool is_sweep = false;
  KernelSettings kernel;
};

/// --help prints and exits with 0; a mistake is printed and exits with 2.
Options parse_options(int argc, char** argv);

/// Fills in what is zero. A package holds a group's messages, or what an auto-grouping gathers; the slots
/// hold kInFlightBytes, which a bus's delay asks for; 4 consumers read, and all cores but one, 16 at most,
/// aggregate.
KernelSettings complete(KernelSettings settings);
inline constexpr std::uint32_t kInFlightBytes = 16 << 20;

/// As --election and --do take them.
std::string name_of(Election election);
std::string name_of(Work work);

}  // namespace esker::bench
