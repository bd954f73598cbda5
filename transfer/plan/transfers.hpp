// Which transfers a program needs, and when each may happen.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/transfer/plan/operand_graph.hpp>

namespace esker::transfer {

/// One operand crosses once, from place to place: 0 is the host. It may happen at any time from `earliest` to
/// `latest`, which are numbers of kernels. To the host: after that kernel; elsewhere: before it.
struct Transfer {
  std::uint32_t operand;
  std::uint16_t from, to;
  std::uint32_t earliest, latest;

  bool is_upload() const { return to != 0; }
  bool is_at(std::uint32_t time) const { return earliest <= time && time <= latest; }
};

/// The transfers of section 4, in the order in which kernels need them.
///
/// up_earliest   0 for what is there on entry, else the time after the kernel that writes it.
/// up_latest     the first kernel of that device that reads it.
/// dn_earliest   the kernel that writes it.
/// dn_latest     the time before the first kernel of the host that reads it; else the last kernel.
/// From a device to another one it goes directly: from the time after its writer to its first reader there.
/// What a device has written or received stays there. Nothing is moved that nobody reads.
ESKER_API std::vector<Transfer> transfers_of(const OperandGraph& graph);

/// The paper's diagnostic, a row a kernel: which operands may be uploaded at that time, and which may be
/// downloaded. A column an operand, a letter while there are no more than 26, a dot where it may not.
ESKER_API std::string diagnostic(const OperandGraph& graph, std::span<const Transfer> transfers);

/// "A" to "Z" where the graph has no more operands than that and they have no names; else its name or number.
ESKER_API std::string name_of(const OperandGraph& graph, std::uint32_t operand);

}  // namespace esker::transfer
