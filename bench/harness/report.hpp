// What a figure is published with: commit, machine, settings.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace esker::bench {

/// {benchmark, version, commit, compiler, machine: {cpu, cores, load_average}}; the benchmark adds settings
/// and results. Called before it runs anything, so that the load is that of others.
nlohmann::json provenance(const std::string& benchmark);

/// Writes one object to a file, or to standard output for "-". Throws std::runtime_error naming the file.
void write_json(const nlohmann::json& report, const std::string& file);

}  // namespace esker::bench
