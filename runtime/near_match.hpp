// What a misspelled name may have been meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace esker {

/// Candidates within a quarter of the name's length in edits, or that it starts, nearest first; three at
/// most.
std::vector<std::string> near_matches(std::string_view name, const std::vector<std::string>& candidates);

/// " (did you mean a or b?)", or "" where nothing is near. `prefix` is put before each.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view prefix = "");

}  // namespace esker
