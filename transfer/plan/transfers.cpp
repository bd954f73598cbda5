// Earliest and latest times, by one pass over the kernels.
#include <esker/transfer/plan/transfers.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace esker::transfer {

std::vector<Transfer> transfers_of(const OperandGraph& graph) {
  const std::uint32_t places = graph.places();
  std::vector<Transfer> transfers;
  transfers.reserve(graph.operands());
  // For each operand and place whether its value is there or on its way there.
  std::vector<std::uint8_t> is_there(std::size_t{graph.operands()} * places, 0);
  std::vector<std::uint16_t> home(graph.operands(), 0);   // the place that has written it
  std::vector<std::uint32_t> ready(graph.operands(), 0);  // the kernel that has, and one more; 0: on entry
  for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
    const std::uint32_t place = graph.place(k);
    for (const std::uint32_t operand : graph.reads(k)) {
      std::uint8_t& here = is_there[std::size_t{operand} * places + place];
      if (here != 0 || home[operand] == place) continue;
      here = 1;
      const bool is_download = place == 0;
      transfers.push_back({operand, home[operand], static_cast<std::uint16_t>(place),
                           is_download ? ready[operand] - 1 : ready[operand], is_download ? k - 1 : k});
    }
    for (const std::uint32_t operand : graph.writes(k)) {
      home[operand] = static_cast<std::uint16_t>(place);
      ready[operand] = k + 1;
    }
  }
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    if (graph.operand(i).on_exit && home[i] != 0 && is_there[std::size_t{i} * places] == 0)
      transfers.push_back({i, home[i], 0, ready[i] - 1, graph.kernels() - 1});
  }
  return transfers;
}

std::string name_of(const OperandGraph& graph, std::uint32_t operand) {
  const std::string& name = graph.operand(operand).name;
  if (!name.empty()) return name;
  if (graph.operands() <= 26) return std::string(1, static_cast<char>('A' + operand));
  return fmt::format("v{}", operand);
}

std::string diagnostic(const OperandGraph& graph, std::span<const Transfer> transfers) {
  std::string text;
  const bool has_letters = graph.operands() <= 26;
  const auto row_of = [&](std::uint32_t time, bool is_upload) {
    std::string row(graph.operands(), '.');
    for (const Transfer& transfer : transfers) {
      if (transfer.is_upload() == is_upload && transfer.is_at(time))
        row[transfer.operand] = has_letters ? static_cast<char>('A' + transfer.operand) : '#';
    }
    return row;
  };
  for (std::uint32_t time = 0; time < graph.kernels(); ++time)
    text += fmt::format("{:>3}: {}   {:>3}: {}\n", time, row_of(time, true), time, row_of(time, false));
  return text;
}

}  // namespace esker::transfer
