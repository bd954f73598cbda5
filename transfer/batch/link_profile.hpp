// What the links of a machine were measured to carry, kept as JSON.
#pragma once

#include <string>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/transfer/batch/topology.hpp>

namespace esker::transfer {

/// Rates of the links of one machine's topology.
struct LinkProfile {
  struct Entry {
    std::string from, to;  // names of nodes
    LinkRate rate;
  };
  std::string machine;  // Topology::name()
  std::vector<Entry> links;
};

/// {machine, links: [{from, to, bytes_per_s, both_bytes_per_s, startup_s, further_s}]}; a bandwidth that
/// nobody knows is null, what is 0 is left out.
ESKER_API std::string to_json(const LinkProfile& profile);
/// Errors. Error{kTransfer}: `where` and what is wrong there.
ESKER_API LinkProfile profile_from_json(const std::string& text, const std::string& where);

/// The topology with the profile's rates.
///
/// Errors. Error{kTransfer}: the profile is of another machine (both are named), has links that are not
///         there, or lacks one of a device.
ESKER_API Topology calibrated(Topology topology, const LinkProfile& profile);

/// The profiles of machines are kept where a pipeline keeps what it measures: in the file ESKER_MACHINE_FILE,
/// else esker/machine.json in the user's folder of caches. Under {"transfer": {"links": {MACHINE: ...}}}.
///
/// Errors. Error{kConfiguration}: the file cannot be written, or holds something else; it is named.
ESKER_API void keep_profile(const LinkProfile& profile);
/// Errors. Error{kTransfer}: nothing is kept of this machine: names the file, the machine, and those of which
///         there is something. Error{kConfiguration}: as above.
ESKER_API LinkProfile kept_profile(const std::string& machine);

}  // namespace esker::transfer
