// What a Runtime is made from, its settings and its PEs; a program's own options beside them.
//
//   Config, load_config(), describe()    every setting, where a value may come from, and how to print it
//   Communicator                         the PEs: an MPI communicator, or threads of this process
//   CommandLine                          a program's own options; text to values: parse_size(), ...
//   build_info(), gpus_here()            what the library was built as, and what is here
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <esker/device/cpu/launch.hpp>
#include <esker/device/platform.hpp>
#include <esker/error.hpp>
#include <esker/runtime/communicator_handle.hpp>

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
  std::uint32_t node_buffer_bytes = 0;  // 0: 64 KiB; 512 KiB where lanes run on a GPU
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

/// The user typed something that the program does not take. Says what, why and what is legal.
class ESKER_API UsageError : public Error {
 public:
  explicit UsageError(const std::string& message) : Error{Kind::kConfiguration, message} {}
};

/// Options of a program beside those of the runtime, which every program takes.
///
/// Contract Targets outlive the parse; what they hold before it is the default that --help prints.
///          Options are --name value or --name=value; "_" in a name is typed "-"; the last one wins.
class ESKER_API CommandLine {
 public:
  /// `what` is a sentence for the top of --help.
  CommandLine(std::string program, std::string what);

  /// A size or count: 4096, 64KiB, 2^26, 1e6.
  CommandLine& add(const std::string& name, std::uint64_t* target, const std::string& help);
  CommandLine& add(const std::string& name, double* target, const std::string& help);
  /// A switch: --name sets it, --name off clears it.
  CommandLine& add(const std::string& name, bool* target, const std::string& help);
  /// With `legal`, one of these.
  CommandLine& add(const std::string& name, std::string* target, const std::string& help,
                   std::vector<std::string> legal = {});

  /// For main: --help prints help on one PE and exits with 0; an error is printed and exits with 2.
  Config parse(int argc, char** argv);

  /// For tests and embedders: `arguments` without the program's name. Throws UsageError for one that is
  /// wrong and Error{kConfiguration} for a setting that is, with targets half set.
  Config parse_arguments(const std::vector<std::string>& arguments);
  /// Valid after parse_arguments().
  bool wants_help() const { return wants_help_; }
  std::string help() const;

 private:
  struct Option {
    std::string name;
    std::string shown_default;
    std::string legal;  // values or form, in words
    std::string help;
    bool is_switch;
    std::function<void(const std::string&)> assign;  // throws std::invalid_argument
  };

  CommandLine& add(Option option);

  std::string program_;
  std::string what_;
  std::vector<Option> options_;
  bool wants_help_ = false;
};

// Each parse function takes the whole text, spaces around it apart, and throws std::invalid_argument
// saying what is wrong with it in words that follow the value: "is negative". Nothing is rounded.

/// "4096", "64KiB", "2^26", "1e6", "1.5GiB", "12 MB". Units in any case: B, kB to PB and KiB to PiB.
ESKER_API std::uint64_t parse_size(std::string_view text);
/// As parse_size, without units.
ESKER_API std::uint64_t parse_count(std::string_view text);
/// "125us", "10ms", "1.5s". A unit is required, except for 0.
ESKER_API std::chrono::microseconds parse_duration(std::string_view text);
/// true, on, yes, 1; false, off, no, 0.
ESKER_API bool parse_bool(std::string_view text);
/// "0.5", "1e-3"; finite.
ESKER_API double parse_real(std::string_view text);

/// In the largest binary unit that divides it; the inverse of parse_size.
ESKER_API std::string format_size(std::uint64_t bytes);
/// In the largest unit that divides it; the inverse of parse_duration.
ESKER_API std::string format_duration(std::chrono::microseconds duration);

/// What this library was built as.
struct ESKER_API BuildInfo {
  std::string version;
  std::string commit;                   // at configure time; "unknown" outside a git checkout
  std::vector<std::string> devices;     // as --device takes them; "cpu" is always one
  std::vector<std::string> transports;  // as --transport takes them; "loopback" is always one

  bool has_device(std::string_view name) const;
  bool has_transport(std::string_view name) const;
};

ESKER_API const BuildInfo& build_info();

/// GPUs of the back end that was built, on this machine; 0 where there is none, or no driver.
ESKER_API std::uint32_t gpus_here();

class Runtime;

/// The PEs of one or several Runtimes.
///
/// Contract. `Runtime(communicator, config)` is collective over these PEs, and makes its own duplicate of the
///           communicator: what Runtimes and the program send over it never mix. Several Runtimes may be made
///           from one, one after another or at a time, in the same order on every PE; likewise from several
///           that have PEs in common. The Communicator itself may end before they do.
class ESKER_API Communicator {
 public:
  /// With <esker/mpi.hpp>: the processes of an MPI_Comm, by rank. The program has initialised MPI, and
  /// finalises it after the last Runtime. It may free the MPI_Comm once the last Runtime over it is made.
  template <detail::MpiCommunicator Comm>
  Communicator(Comm comm)  // NOLINT(google-explicit-constructor): Runtime(MPI_Comm, config)
      : Communicator(&comm, sizeof comm) {}

  /// Local. PEs that are `n` threads of this process: element i is PE i's. Each makes its Runtime on a thread
  /// of its own. For tests, and for processes that several parts of a program share.
  ///
  /// Errors. Error{kConfiguration}: n is 0, or more PEs than a message can name.
  static std::vector<Communicator> threads(std::uint32_t n);

  Communicator(const Communicator&) = default;
  Communicator& operator=(const Communicator&) = default;
  Communicator(Communicator&&) noexcept = default;
  Communicator& operator=(Communicator&&) noexcept = default;
  ~Communicator() = default;

 private:
  friend class Runtime;
  explicit Communicator(std::shared_ptr<const detail::PeGroup> group) : group_{std::move(group)} {}
  Communicator(const void* mpi_comm, std::size_t bytes);

  std::shared_ptr<const detail::PeGroup> group_;
};

}  // namespace esker
