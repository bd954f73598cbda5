// What the figures of esker-bench-transfer share.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <esker/device.hpp>
#include <esker/transfer.hpp>

namespace esker::bench {

struct TransferBench {
  Device device;                // the first
  std::vector<Device> devices;  // all of the machine, for batches
  std::uint32_t repeats;
  std::uint64_t seed;
  std::uint64_t most_floats;  // of an operand
  std::uint64_t most_bytes;   // of a copy of a batch
  bool is_on_gpu() const { return device.backend() != Backend::kCpu; }
};

struct TransferFigure {
  const char* name;
  const char* what;
  nlohmann::json (*take)(const TransferBench& bench);
};
std::span<const TransferFigure> transfer_figures();

/// Runs that are compared. They take turns, `calls` calls a turn; the first turn is not timed.
struct TransferSide {
  std::string name;
  std::function<void()> call;
};
/// Microseconds a call.
struct Microseconds {
  double median, least, most;
};
std::vector<Microseconds> take_turns(const TransferBench& bench, const std::vector<TransferSide>& sides,
                                     std::uint32_t calls);
nlohmann::json to_json(const Microseconds& time);
/// A line: what, then a column a side, then how much less the last side takes than the first.
nlohmann::json print_turns(const TransferBench& bench, const std::string& what,
                           const std::vector<TransferSide>& sides, std::uint32_t calls);
/// So many calls that a turn of operands of so many floats takes some milliseconds on a GPU.
std::uint32_t calls_for(const TransferBench& bench, std::uint64_t floats);

/// A copy to or from a device.
struct PlacedCopy {
  Device device;
  transfer::Copy copy;
};
/// Bytes that are not 0, other ones for each seed. Waits.
void fill(const Device& device, std::byte* at, std::size_t bytes, std::uint32_t seed);
/// Clears what the copies write, runs them, and throws where a byte is not its source's. Sources are
/// fill()ed.
void verify(std::span<const PlacedCopy> copies, const std::function<void()>& run, const std::string& what);

nlohmann::json take_savings(const TransferBench& bench);
nlohmann::json take_planning(const TransferBench& bench);
nlohmann::json take_fusion(const TransferBench& bench);
nlohmann::json take_allocation(const TransferBench& bench);
nlohmann::json take_kernel_fusion(const TransferBench& bench);
nlohmann::json take_programs(const TransferBench& bench);
nlohmann::json take_replay(const TransferBench& bench);
/// Microseconds from the call to the end, by number, size and direction: separate copies, the driver's call,
/// a graph made before, a kernel, one copy of all bytes, and copy_batch() by a profile that is measured
/// first, at other points.
nlohmann::json take_paths(const TransferBench& bench);
// Of batches (Verner et al.).

/// Table 1: both applications on the modelled systems, by three methods, beside what the paper prints.
nlohmann::json take_methods(const TransferBench& bench);
/// Table 2: predicted against measured times of batches that the fit has not seen, on these devices.
nlohmann::json take_prediction(const TransferBench& bench);
/// Figure 7: aggregate bandwidth to the devices, to the host and both: of each device alone, of the first
/// beside each other one, and of all.
nlohmann::json take_bandwidth(const TransferBench& bench);
/// How long 4 KiB wait behind a copy of `most_bytes`: in chunks, on its stream, on another stream.
nlohmann::json take_behind_large(const TransferBench& bench);

}  // namespace esker::bench
