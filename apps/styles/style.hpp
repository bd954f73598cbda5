// The ways in which a kernel's messages travel (thesis, sections 3.1 and 5.5.2), and their names.
#pragma once

#include <string>
#include <vector>

#include <esker/esker.hpp>

namespace styles {

enum class Style {
  kGravel,            // the runtime's own: any lane, any branch, aggregated
  kCoprocessor,       // a queue of 64 KiB a destination; kernels in chunks, exchanges in between
  kCoprocessorLarge,  // the same with 1 MiB
  kPerLane,           // each operation a network message
  kCoalesced,         // sorted in scratchpad by destination, each list a network message
  kCoalescedAgg,      // the same lists, aggregated
};

/// Names as --style takes them, in the order above.
const std::vector<std::string>& names();
std::string name_of(Style style);
/// Of a name out of names().
Style style_of(const std::string& name);

/// What the style asks of the runtime, and of MPI; before the Runtime is constructed.
void configure(esker::Config& config, Style style);
/// Gives back what configure() has started; after the Runtime has ended without an error.
void finish();

}  // namespace styles
