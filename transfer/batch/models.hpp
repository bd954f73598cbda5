// The systems of Verner et al., as far as the paper tells them.
#pragma once

#include <span>
#include <string>

#include <esker/device/platform.hpp>
#include <esker/transfer/batch/topology.hpp>

namespace esker::transfer {

/// The production inspection system of section 2.4 (Figure 2): 8 GB/s between CPU and hub, 6 GB/s to each of
/// four GPUs. Its memory bus has no printed weight, and limits nothing.
ESKER_API Topology example_system();

/// The Nehalem system (Tyan FT72B7015, Figure 6a): two hubs, four GPUs with one copy engine each. The
/// figure's weights are not in the paper's text. These follow from it:
/// - hub 0 and its GPUs: from Table 2, whose predictions they reproduce to its last digit;
/// - remote GPUs: 20 % lower, 33 % more for two of them to the device and no more to the host; four together
///   no more than the two local ones (section 4.1).
/// Both directions at once count as apart: the paper did not put its measurements of that into the figure.
ESKER_API Topology nehalem_system();

/// The Sandy Bridge system (Figure 6b): two cards of two GPUs behind a switch each, symmetric. Its weights:
/// - all links one way: from Table 2, whose predictions they reproduce to its last digit;
/// - all four GPUs both ways at once: 10 % above one way (section 4.1);
/// - a card both ways at once: 20 GB/s in all, which is what the execution time of bandwidth allocation in
///   Table 1 comes to where an exchange is staged. It is 66 % above one way; the paper prints 32 to 72 %.
///   So that entry of Table 1 tests nothing.
ESKER_API Topology sandy_bridge_system();

/// "example", "nehalem", "sandy-bridge". Error{kTransfer}: another name, with these.
ESKER_API Topology modelled_system(const std::string& name);

}  // namespace esker::transfer
