// Sums, spreads, the line and the JSON object.
#include "report.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <esker/config.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "failure.hpp"
#include "json.hpp"

namespace harness {

Traffic operator-(const Traffic& a, const Traffic& b) {
  return {a.messages_local - b.messages_local,
          a.messages_remote - b.messages_remote,
          a.messages_direct - b.messages_direct,
          a.combined_local - b.combined_local,
          a.combined_remote - b.combined_remote,
          a.buffers_sent - b.buffers_sent,
          a.bytes_sent - b.bytes_sent};
}

Traffic sum_over_pes(esker::Runtime& rt, const esker::Statistics& mine) {
  std::array<std::uint64_t, 7> sums{mine.messages_local, mine.messages_remote, mine.messages_direct,
                                    mine.combined_local, mine.combined_remote, mine.buffers_sent,
                                    mine.bytes_sent};
  rt.all_reduce(std::span<std::uint64_t>(sums), esker::Reduction::kSum);
  return {sums[0], sums[1], sums[2], sums[3], sums[4], sums[5], sums[6]};
}

namespace {

/// Resident bytes that are others' by rights: of pages that several processes have mapped, each has a share.
std::uint64_t bytes_of_others() {
  std::ifstream file("/proc/self/smaps_rollup");
  std::uint64_t rss = 0, pss = 0;
  for (std::string word; file >> word;) {
    if (word == "Rss:") file >> rss;
    if (word == "Pss:") file >> pss;
  }
  return (rss - pss) * 1024;
}

}  // namespace

Memory memory_of_pes(esker::Runtime& rt, std::uint64_t beside_heap) {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::array<std::uint64_t, 3> most{static_cast<std::uint64_t>(usage.ru_maxrss) * 1024 - bytes_of_others(),
                                    rt.heap().allocated_bytes() + beside_heap, rt.declared_memory_bytes()};
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  return {most[0], most[1], most[2]};
}

nlohmann::json to_json(const Memory& memory) {
  return {{"peak_bytes", memory.peak_bytes},
          {"input_bytes", memory.input_bytes},
          {"declared_bytes", memory.declared_bytes}};
}

Spread spread_of(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  const std::size_t n = all.size();
  const double median = n % 2 == 1 ? all[n / 2] : (all[n / 2 - 1] + all[n / 2]) / 2;
  return {median, all.front(), all.back()};
}

namespace {

/// Of PE 0.
void write_here(const esker::Runtime& rt, const Result& r, OutputFile* json_file, bool is_quiet,
                const nlohmann::json& more) {
  const std::uint64_t to_others = r.traffic.messages_remote + r.traffic.combined_remote;
  const std::uint64_t calls = r.traffic.messages_local + r.traffic.combined_local + to_others;
  const auto accesses = static_cast<double>(std::max(calls, r.accesses));
  const double remote = accesses == 0 ? 0 : static_cast<double>(to_others) / accesses;
  const double buffer = r.traffic.buffers_sent == 0 ? 0
                                                    : static_cast<double>(r.traffic.bytes_sent) /
                                                          static_cast<double>(r.traffic.buffers_sent);
  const double rate = r.work / r.seconds.median;
  if (!is_quiet) {
    std::puts(
        fmt::format("{}: {:.4g} {} on {} PEs in {:.4g} s ({:.4g} to {:.4g}): {:.1f} M {}/s, {:.1f} % remote, "
                    "{:.0f} bytes a buffer, {}",
                    r.app, r.work, r.work_unit, rt.n_pes(), r.seconds.median, r.seconds.least, r.seconds.most,
                    rate / 1e6, r.work_unit, 100 * remote, buffer,
                    !r.verification_on ? "not verified (--verify off)"
                    : r.verified       ? "verified"
                                       : "WRONG RESULT")
            .c_str());
  }
  flush_standard_output();
  if (json_file == nullptr) return;
  const std::string device = rt.device_name();
  const std::string backend = device.substr(0, device.find(':'));
  nlohmann::json json{{"app", r.app},
                      {"backend", backend},
                      {"device", rt.device_name()},
                      {"style", r.style},
                      {"pes", rt.n_pes()},
                      {"seconds", r.seconds.median},
                      {"seconds_least", r.seconds.least},
                      {"seconds_most", r.seconds.most},
                      {"work", r.work},
                      {"work_unit", r.work_unit},
                      {"rate_per_s", rate},
                      {"verified", r.verification_on && r.verified},
                      {"verification", r.verification_on ? "on" : "off"},
                      {"messages_local", r.traffic.messages_local},
                      {"messages_remote", r.traffic.messages_remote},
                      {"messages_direct", r.traffic.messages_direct},
                      {"combined_local", r.traffic.combined_local},
                      {"combined_remote", r.traffic.combined_remote},
                      {"remote_fraction", remote},
                      {"buffers_sent", r.traffic.buffers_sent},
                      {"average_buffer_bytes", buffer},
                      {"stages", nlohmann::json::parse(esker::to_json(rt.stage_statistics()))},
                      {"transport", rt.transport_name()},
                      {"config", nlohmann::json::parse(esker::to_json(rt.config()))},
                      {"version", esker::build_info().version},
                      {"commit", esker::build_info().commit}};
  json["stages"]["pe"] = rt.pe();
  json.update(more);
  json_file->write(json_text(json));
  json_file->close();
}

}  // namespace

void write_report(esker::Runtime& rt, const Result& result, OutputFile* json_file, bool is_quiet,
                  const nlohmann::json& more) {
  agree(rt, [&] {
    if (rt.pe() == 0) write_here(rt, result, json_file, is_quiet, more);
  });
}

}  // namespace harness
