// Which PEs share a host.
#pragma once

#include <cstdint>
#include <string>

namespace esker {

/// Where a process runs, as far as PEs on the same host reach past the network. Those of equal identity share
/// memory and processors, see each other by process number (a peer that dies is noticed), and may open each
/// other's device memory. So two containers of one machine are two hosts, unless they share both namespaces:
/// device memory is handed over by process number, and through the namespace of interprocess communication.
///
/// What differs by mistake costs speed. What is equal by mistake is found when memory is opened.
struct Host {
  std::string name;  // machines that were copied while they ran have the same boot
  std::string boot;
  std::string process_namespace;
  std::string ipc_namespace;

  static Host here();
  /// A hash of all four.
  std::uint64_t identity() const;
};

}  // namespace esker
