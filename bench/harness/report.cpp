// What a figure is published with: commit, machine, settings.
#include <esker/bench/harness/report.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include <esker/config.hpp>

namespace esker::bench {
namespace {

std::string cpu_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

// Of others: the caller has not run anything yet.
double load_average() {
  double last_minute = 0;
  return getloadavg(&last_minute, 1) == 1 ? last_minute : -1;
}

}  // namespace

nlohmann::json provenance(const std::string& benchmark) {
  return {{"benchmark", benchmark},
          {"version", build_info().version},
          {"commit", build_info().commit},
          {"compiler", __VERSION__},
          {"machine",
           {{"cpu", cpu_name()},
            {"cores", std::thread::hardware_concurrency()},
            {"load_average", load_average()}}}};
}

void write_json(const nlohmann::json& report, const std::string& file) {
  // Users' names may be no UTF-8.
  const std::string text = report.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  if (file == "-") {
    std::cout << text << std::endl;
    return;
  }
  std::ofstream out(file);
  out << text << std::endl;
  if (!out) throw std::runtime_error(fmt::format("cannot write '{}': {}", file, std::strerror(errno)));
}

}  // namespace esker::bench
