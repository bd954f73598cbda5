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
  Device device;
  std::uint32_t repeats;
  std::uint64_t seed;
  std::uint64_t most_floats;  // of an operand
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

nlohmann::json take_savings(const TransferBench& bench);
nlohmann::json take_planning(const TransferBench& bench);
nlohmann::json take_fusion(const TransferBench& bench);
nlohmann::json take_allocation(const TransferBench& bench);
nlohmann::json take_kernel_fusion(const TransferBench& bench);
nlohmann::json take_programs(const TransferBench& bench);
nlohmann::json take_replay(const TransferBench& bench);

}  // namespace esker::bench
