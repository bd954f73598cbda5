// Operands and the kernels that read and write them, in a fixed order: what a plan of transfers is made for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <esker/device/platform.hpp>

namespace esker::transfer {

/// An array that kernels read or write.
struct Operand {
  std::string name;
  std::uint64_t bytes = 0;
  bool on_entry = false;  // the host has its value before the first kernel
  bool on_exit = false;   // the host wants its value after the last one
  /// Where the host has it already; 0: the plan places it. Neighbours in memory stay neighbours.
  std::uint64_t host_address = 0;
};

/// The kernel-vector graph of Kessler, "Global optimization of operand transfer fusion in heterogeneous
/// computing" (2019), section 3: kernels in program order, each on the host or on a device.
///
/// Contract Operands and kernels are numbered from 0 in the order in which they are added. Place 0 is the
///          host, places from 1 on are devices. Each operand is written once (single assignment). A program
///          that writes in place says so with add_version(): the new version is an operand of its own, and
///          shares its predecessor's memory.
/// Errors   Error{kTransfer}, naming the kernel and the operand: one that does not exist, one of more than
///          kMostBytes, one written twice or after it is there on entry, one read before it is written, one
///          read after a later version of it has been written, one that is wanted on exit and has a later
///          version. The graph is unchanged.
class ESKER_API OperandGraph {
 public:
  static constexpr std::uint32_t kMostPlaces = 256;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;  // of an operand

  std::uint32_t add_operand(Operand operand);
  /// What `operand` becomes by being written in place: as large, at the same place. The kernel that writes
  /// it reads `operand`. Without a name it is its predecessor's with a prime.
  std::uint32_t add_version(std::uint32_t operand, std::string name = {});
  std::uint32_t add_kernel(std::string name, std::uint32_t place, std::span<const std::uint32_t> reads,
                           std::span<const std::uint32_t> writes);
  /// Marks as on_exit what is written and never read: what the paper takes for live on exit.
  void want_results();
  void set_on_exit(std::uint32_t operand, bool on_exit);

  std::uint32_t kernels() const { return static_cast<std::uint32_t>(kernels_.size()); }
  std::uint32_t operands() const { return static_cast<std::uint32_t>(operands_.size()); }
  /// One more than the highest place that a kernel has; at least 1.
  std::uint32_t places() const { return places_; }
  const Operand& operand(std::uint32_t operand) const { return operands_[operand]; }
  const std::string& kernel_name(std::uint32_t kernel) const { return kernels_[kernel].name; }
  std::uint32_t place(std::uint32_t kernel) const { return kernels_[kernel].place; }
  std::span<const std::uint32_t> reads(std::uint32_t kernel) const {
    return {uses_.data() + kernels_[kernel].first_read, uses_.data() + kernels_[kernel].first_write};
  }
  std::span<const std::uint32_t> writes(std::uint32_t kernel) const {
    return {uses_.data() + kernels_[kernel].first_write, uses_.data() + kernels_[kernel].end};
  }
  /// The first version of an operand, whose memory all its versions share.
  std::uint32_t storage(std::uint32_t operand) const { return states_[operand].storage; }
  /// The version before it; itself where there is none.
  std::uint32_t previous_version(std::uint32_t operand) const { return states_[operand].previous_version; }
  /// The version after it; itself where there is none.
  std::uint32_t next_version(std::uint32_t operand) const {
    return states_[operand].next_version == kNone ? operand : states_[operand].next_version;
  }
  /// Whether an operand has versions: then its memory is in several transfers.
  bool has_versions() const { return has_versions_; }
  /// The kernel that writes it; kernels() where none does.
  std::uint32_t writer(std::uint32_t operand) const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Kernel {
    std::string name;
    std::uint32_t place, first_read, first_write, end;  // places in uses_
  };
  struct State {
    std::uint32_t storage, previous_version;
    std::uint32_t writer = kNone;
    std::uint32_t next_version = kNone;
    bool is_read = false;
  };
  [[noreturn]] void refuse(const std::string& kernel, const std::string& why) const;
  std::string describe(std::uint32_t operand) const;

  std::vector<Operand> operands_;
  std::vector<State> states_;
  std::vector<Kernel> kernels_;
  std::vector<std::uint32_t> uses_;
  std::uint32_t places_ = 1;
  bool has_versions_ = false;
};

/// From {"operands": [{"name", "bytes", "on_entry", "on_exit", "version_of", "host_address"}], "kernels":
/// [{"name", "place", "reads": [names], "writes": [names]}]}; on_entry, on_exit and what follows them may be
/// left out. Kernels that stand after those that write what they read keep their order; others are put in one
/// that does.
///
/// Errors. Error{kTransfer}: as OperandGraph, and text that is no such object, two operands of one name, and
///         kernels that wait for each other, by name.
ESKER_API OperandGraph read_operand_graph(const std::string& json);
ESKER_API std::string to_json(const OperandGraph& graph);

}  // namespace esker::transfer
