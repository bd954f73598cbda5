// Operands and kernels: what a program may say of them.
#include <esker/transfer/plan/operand_graph.hpp>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <esker/error.hpp>

namespace esker::transfer {

std::string OperandGraph::describe(std::uint32_t operand) const {
  const std::string& name = operands_[operand].name;
  return name.empty() ? fmt::format("operand {}", operand) : fmt::format("operand {} ({})", operand, name);
}

void OperandGraph::refuse(const std::string& kernel, const std::string& why) const {
  throw Error(Error::Kind::kTransfer,
              fmt::format("OperandGraph: kernel {} ({}) {}", kernels_.size(), kernel, why));
}

std::uint32_t OperandGraph::add_operand(Operand operand) {
  const std::uint32_t number = operands();
  if (operand.bytes > kMostBytes) {
    throw Error(Error::Kind::kTransfer,
                fmt::format("OperandGraph::add_operand: operand {} ({}) has {} bytes; it may have {}", number,
                            operand.name, operand.bytes, kMostBytes));
  }
  operands_.push_back(std::move(operand));
  states_.push_back({.storage = number, .previous_version = number});
  return number;
}

std::uint32_t OperandGraph::add_version(std::uint32_t operand, std::string name) {
  if (operand >= operands()) {
    throw Error(Error::Kind::kTransfer,
                fmt::format("OperandGraph::add_version({}): there are {} operands", operand, operands()));
  }
  if (states_[operand].next_version != kNone) {
    throw Error(Error::Kind::kTransfer,
                fmt::format("OperandGraph::add_version: {} has been written again as {}", describe(operand),
                            describe(states_[operand].next_version)));
  }
  if (operands_[operand].on_exit) {
    throw Error(Error::Kind::kTransfer,
                fmt::format("OperandGraph::add_version: {} is wanted on exit, so it cannot be overwritten",
                            describe(operand)));
  }
  Operand version = operands_[operand];
  version.name = name.empty() ? version.name + "'" : std::move(name);
  version.on_entry = version.on_exit = false;
  const std::uint32_t number = add_operand(std::move(version));
  states_[number].storage = states_[operand].storage;
  states_[number].previous_version = operand;
  states_[operand].next_version = number;
  has_versions_ = true;
  return number;
}

std::uint32_t OperandGraph::add_kernel(std::string name, std::uint32_t place,
                                       std::span<const std::uint32_t> reads,
                                       std::span<const std::uint32_t> writes) {
  const std::uint32_t kernel = kernels();
  const auto has = [](std::span<const std::uint32_t> all, std::uint32_t one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  if (place >= kMostPlaces)
    refuse(name, fmt::format("is on device {}: devices are 1 to {}", place, kMostPlaces - 1));
  for (const std::uint32_t operand : reads) {
    if (operand >= operands())
      refuse(name, fmt::format("reads operand {}; there are {} operands", operand, operands()));
    const State& state = states_[operand];
    if (has(writes, operand))
      refuse(name, fmt::format("reads and writes {}: a value written in place is a version of its own",
                               describe(operand)));
    if (state.writer == kNone && !operands_[operand].on_entry)
      refuse(name, fmt::format("reads {}, which no kernel before it writes and which is not there on entry",
                               describe(operand)));
    if (state.next_version != kNone && states_[state.next_version].writer != kNone)
      refuse(name,
             fmt::format("reads {}, which kernel {} ({}) has overwritten with {}", describe(operand),
                         states_[state.next_version].writer,
                         kernels_[states_[state.next_version].writer].name, describe(state.next_version)));
  }
  for (std::size_t i = 0; i < writes.size(); ++i) {
    const std::uint32_t operand = writes[i];
    if (operand >= operands())
      refuse(name, fmt::format("writes operand {}; there are {} operands", operand, operands()));
    const State& state = states_[operand];
    if (has(writes.first(i), operand)) refuse(name, fmt::format("writes {} twice", describe(operand)));
    if (state.writer != kNone)
      refuse(name,
             fmt::format("writes {}, which kernel {} ({}) writes: an operand has one writer, and a value "
                         "written in place is a version of its own",
                         describe(operand), state.writer, kernels_[state.writer].name));
    if (operands_[operand].on_entry)
      refuse(name, fmt::format("writes {}, which is there on entry: a value written in place is a version of "
                               "its own",
                               describe(operand)));
    if (state.storage != operand) {
      const bool reads_last = std::any_of(reads.begin(), reads.end(), [&](std::uint32_t read) {
        return states_[read].next_version == operand;
      });
      if (!reads_last)
        refuse(name,
               fmt::format("writes {} in place, and does not read the version before it", describe(operand)));
    }
  }
  const auto first_read = static_cast<std::uint32_t>(uses_.size());
  for (const std::uint32_t operand : reads) {  // one that a kernel reads twice is read once
    if (std::find(uses_.begin() + first_read, uses_.end(), operand) == uses_.end()) uses_.push_back(operand);
    states_[operand].is_read = true;
  }
  const auto first_write = static_cast<std::uint32_t>(uses_.size());
  for (const std::uint32_t operand : writes) {
    uses_.push_back(operand);
    states_[operand].writer = kernel;
  }
  kernels_.push_back(
      {std::move(name), place, first_read, first_write, static_cast<std::uint32_t>(uses_.size())});
  places_ = std::max(places_, place + 1);
  return kernel;
}

void OperandGraph::want_results() {
  for (std::uint32_t i = 0; i < operands(); ++i) {
    if (states_[i].writer != kNone && !states_[i].is_read) set_on_exit(i, true);
  }
}

void OperandGraph::set_on_exit(std::uint32_t operand, bool on_exit) {
  if (operand >= operands()) {
    throw Error(Error::Kind::kTransfer,
                fmt::format("OperandGraph::set_on_exit({}): there are {} operands", operand, operands()));
  }
  if (on_exit && states_[operand].next_version != kNone) {
    throw Error(Error::Kind::kTransfer,
                fmt::format("OperandGraph: {} is not there on exit: it is overwritten with {}",
                            describe(operand), describe(states_[operand].next_version)));
  }
  operands_[operand].on_exit = on_exit;
}

std::uint32_t OperandGraph::writer(std::uint32_t operand) const {
  return states_[operand].writer == kNone ? kernels() : states_[operand].writer;
}

}  // namespace esker::transfer
