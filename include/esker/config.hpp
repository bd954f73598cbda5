// Every setting of the runtime, where a value may come from, and how to print it.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <esker/device/cpu/launch.hpp>

namespace esker {

enum class DeviceKind { kAuto, kCpu, kCuda, kHip };
enum class TransportKind { kAuto, kMpi, kUcx, kLoopback };
enum class HeapKind { kAuto, kDevice, kHost };
enum class PeerMemory { kAuto, kOn, kOff };

enum class StartupPrint { kQuiet, kSummary };

/// The settings. The table in config_table.cpp holds each one's help, unit and legal range; the
/// initialisers here are the defaults. Setting `x_y` is `x_y = v` in a file, ESKER_X_Y in the environment
/// and --x-y on the command line.
///
/// Contract. What from_environment(), load_config() and CommandLine return is legal; a program that
/// changes fields itself is checked by validate(), which the runtime calls.
struct ESKER_API Config {
  DeviceKind device = DeviceKind::kAuto;
  TransportKind transport = TransportKind::kAuto;
  HeapKind heap = HeapKind::kAuto;
  PeerMemory peer_memory = PeerMemory::kAuto;
  std::uint32_t direct_messages = 16;
  std::uint64_t heap_bytes = 0;  // 0: automatic

  std::uint32_t package_bytes = 8 * 1024;
  std::uint32_t package_slots = 128;

  std::uint32_t device_package_slots = 2048;

  bool aggregate = true;
  std::uint32_t aggregators = 1;
  std::uint32_t device_aggregators = 2;
  std::uint32_t apply_helpers = 0;
  std::uint32_t node_buffer_bytes = 0;  // 0: 64 KiB; 256 KiB where lanes run on a GPU
  std::uint32_t buffers_per_destination = 3;
  std::chrono::microseconds aggregation_timeout{125};
  std::chrono::microseconds aggregation_max_age{100'000};
  std::uint64_t pending_messages = 0;  // 0: unlimited
  std::uint32_t project_pes = 0;       // 0: no projection

  std::uint32_t cpu_threads = 0;  // 0: cores of the host over the PEs on it
  std::uint32_t group_lanes = 256;
  std::uint32_t wave_lanes = 32;
  GroupExecution group_execution = GroupExecution::kFibers;
  bool huge_pages = true;

  std::uint32_t hang_seconds = 60;  // 0: off
  std::string hang_file = "esker-hang";
  std::string trace;  // empty: off
  StartupPrint startup = StartupPrint::kSummary;

  /// What is odd but no error, for PE 0 to print.
  std::vector<std::string> warnings;

  /// Where a value came from, by setting; one that is not here has its default or was set by the program.
  struct Origin {
    std::string value;  // as describe() prints it: tells whether the program changed the field since
    std::string where;
  };
  std::map<std::string, Origin> origins;

  /// Defaults, then the file that ESKER_CONFIG names, then ESKER_*. Throws Error{kConfiguration}.
  static Config from_environment();
};

/// Sources of settings, weakest first.
struct ConfigSources {
  std::string file;                                            // "": the one ESKER_CONFIG names, if any
  std::map<std::string, std::string> environment;              // variable, value; only ESKER_* are read
  std::vector<std::pair<std::string, std::string>> arguments;  // setting, value; the last one wins
};

/// Throws Error{kConfiguration} naming the setting, its source, the value and what is legal.
ESKER_API Config load_config(const ConfigSources& sources);

/// Throws Error{kConfiguration} if a field has an illegal value, however it came there.
ESKER_API void validate(const Config& config);

struct ConfigRow {
  std::string name;
  std::string value;  // what the sources accept, so it can be fed back
  std::string unit;   // "" where the value says it
  std::string origin;
  std::string legal;
  std::string help;
};

/// One row a setting, in the order of the table.
ESKER_API std::vector<ConfigRow> describe(const Config& config);

/// One JSON object: numbers for sizes and counts, text for durations and choices.
ESKER_API std::string to_json(const Config& config);

/// Takes --config FILE and the runtime's own options out of argc and argv, and leaves the rest in order.
/// Nothing after "--" is looked at. An option that is left and nearly one of Esker's gets a warning. Throws
/// Error{kConfiguration}.
ESKER_API Config config_from_arguments(int& argc, char** argv);

/// Local. Processes that a launcher of MPI or Slurm has started together with this one, by its variables; 1:
/// it is alone. For programs that need a Runtime only where there are several.
ESKER_API std::uint64_t launched_processes() noexcept;

}  // namespace esker
