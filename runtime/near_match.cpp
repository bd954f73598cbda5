// Near matches by edit distance.
#include <esker/runtime/near_match.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace esker {
namespace {

/// Insertions, deletions and replacements that turn `a` into `b` (Levenshtein), one row at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> near_matches(std::string_view name, const std::vector<std::string>& candidates) {
  const std::size_t limit = std::max<std::size_t>(2, name.size() / 4);
  std::vector<std::pair<std::size_t, std::size_t>> found;  // distance and candidate
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::string& candidate = candidates[i];
    const std::size_t distance = edit_distance(name, candidate);
    const bool starts = name.size() >= 3 && candidate.starts_with(name);
    // Two edits turn any two-letter name into any other.
    if (starts || (distance <= limit && distance < name.size())) {
      found.emplace_back(starts ? 1 : distance, i);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, found.size()); ++i)
    names.push_back(candidates[found[i].second]);
  return names;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates,
                         std::string_view prefix) {
  std::string meant;
  for (const std::string& near : near_matches(name, candidates))
    meant += fmt::format("{}{}{}", meant.empty() ? "" : " or ", prefix, near);
  return meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant);
}

}  // namespace esker
