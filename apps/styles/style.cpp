#include "style.hpp"

#include <algorithm>
#include <esker/config.hpp>

#include "exchange.hpp"

namespace styles {

const std::vector<std::string>& names() {
  static const std::vector<std::string> all = {"gravel",   "coprocessor", "coprocessor-large",
                                               "per-lane", "coalesced",   "coalesced-agg"};
  return all;
}

std::string name_of(Style style) { return names()[static_cast<std::size_t>(style)]; }

Style style_of(const std::string& name) {
  return static_cast<Style>(std::find(names().begin(), names().end(), name) - names().begin());
}

void configure(esker::Config& config, Style style) {
  if (style == Style::kPerLane || style == Style::kCoalesced) config.aggregate = false;
  const bool exchanges = style == Style::kCoprocessor || style == Style::kCoprocessorLarge;
  if (exchanges && config.transport != esker::TransportKind::kLoopback) Exchange::initialise_mpi();
}

void finish() { Exchange::finalise_mpi(); }

}  // namespace styles
