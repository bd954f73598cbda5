// The figures of a benchmark: what it can take, by name, into one report.
#pragma once

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <esker/config.hpp>

#include "report.hpp"

namespace esker::bench {

/// Figures have a `name`, `what` they show, and `take(bench)`, which returns JSON. A line each, for --help.
template <class Figures>
std::string list_of(const Figures& figures) {
  std::string list;
  for (const auto& figure : figures) list += fmt::format("\n  {:14} {}", figure.name, figure.what);
  return list;
}

/// Those named, with commas between them, or "all". Throws UsageError naming what is none.
template <class Figures>
auto figures_named(const std::string& names, const Figures& figures) {
  std::vector<decltype(&*figures.begin())> named;
  for (std::size_t begin = 0; begin <= names.size();) {
    const std::size_t end = std::min(names.find(',', begin), names.size());
    const std::string name = names.substr(begin, end - begin);
    bool is_known = name == "all";
    for (const auto& figure : figures) {
      if (name != "all" && name != figure.name) continue;
      named.push_back(&figure);
      is_known = true;
    }
    if (!is_known) throw UsageError(fmt::format("--figure '{}' is none; --help has their names", name));
    begin = end + 1;
  }
  return named;
}

/// Takes them, one that fails without the others. `report` is written to `file` after each, "-" at the end,
/// "" never. Returns the status to exit with.
template <class Named, class Bench>
int take_figures(const Named& named, const Bench& bench, nlohmann::json report, const std::string& file,
                 const char* program) {
  bool has_failed = false;
  for (const auto* figure : named) {
    fmt::print("--- {}: {}\n", figure->name, figure->what);
    std::fflush(stdout);
    try {
      report["figures"][figure->name] = figure->take(bench);
    } catch (const std::exception& error) {
      report["figures"][figure->name] = {{"error", error.what()}};
      fmt::print(stderr, "{}: {}: {}\n", program, figure->name, error.what());
      has_failed = true;
    }
    std::fflush(stdout);
    if (!file.empty() && file != "-") write_json(report, file);
  }
  if (file == "-") write_json(report, file);
  return has_failed ? 1 : 0;
}

}  // namespace esker::bench
