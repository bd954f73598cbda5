#include "election.hpp"

#include <esker/config.hpp>

namespace styles {

const std::vector<std::string>& elections() {
  static const std::vector<std::string> all = {"auto",     "auto-group", "per-lane",
                                               "per-wave", "predicated", "fine-grain"};
  return all;
}

void require_election(Style style, const std::string& election) {
  if (election == "auto" || style == Style::kGravel) return;
  throw esker::UsageError("--election " + election + " is a way to send in --style gravel; --style " +
                          name_of(style) + " has its own");
}

}  // namespace styles
