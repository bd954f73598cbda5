// Tracing: records what every stage does with the messages, for a timeline viewer.
//
// Every Esker program takes --trace FILE, or ESKER_TRACE=FILE. This one traces even without.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include <esker/config.hpp>
#include <esker/esker.hpp>

namespace {

constexpr std::uint64_t kLanes = 1 << 16;  // on each PE
constexpr std::uint64_t kWords = 1 << 10;  // on each PE
constexpr std::uint32_t kRounds = 3;

/// What the check reads out of a trace. The file is JSON with one event a line.
struct Contents {
  std::uint64_t events = 0, launches = 0, barriers = 0;
  bool complete = false;
};
Contents read_trace(const std::string& path) {
  Contents contents;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("{\"ph\":", 0) == 0) ++contents.events;
    if (line.find("\"launch: scatter\"") != std::string::npos) ++contents.launches;
    if (line.find("\"wait: barrier_all\"") != std::string::npos) ++contents.barriers;
    // The last line tells how many events did not fit into memory.
    contents.complete = line.find("\"events_dropped\":0,") != std::string::npos;
  }
  return contents;
}

/// Each PE writes its own file: trace.json becomes trace.0.json, trace.1.json, ...; one PE keeps the name.
std::string path_of(const std::string& trace, std::uint32_t pe, std::uint32_t n_pes) {
  if (n_pes == 1) return trace;
  const std::filesystem::path path(trace);
  std::string name = path.stem().string() + "." + std::to_string(pe) + path.extension().string();
  return (path.parent_path() / name).string();
}

}  // namespace

int main(int argc, char** argv) {
  // A program that changes settings reads them first: command line, environment, file.
  esker::Config config = esker::config_from_arguments(argc, argv);
  if (config.trace.empty()) config.trace = "tracing.json";

  std::uint64_t wrong = 0;
  std::uint32_t pe = 0, n_pes = 0;
  {
    esker::Runtime rt(config);
    pe = rt.pe(), n_pes = rt.n_pes();
    const auto words = rt.heap().allocate<std::uint64_t>(kWords);
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      // The kernel's name appears in the trace, and in the report if the kernel hangs.
      rt.launch(
          kLanes,
          [=] ESKER_LAMBDA(esker::WorkItem item) {
            const auto to = static_cast<std::uint32_t>(item.global_id() / kWords % item.n_pes());
            shmem_add(item, &words[item.global_id() % kWords], round + 1, to);
          },
          "scatter");
      rt.barrier_all();
    }
    // kWords neighbouring lanes update the words of one PE, one each, so all words of a PE are equal.
    constexpr std::uint64_t kRows = kLanes / kWords;
    const std::uint64_t rows_here = kRows / n_pes + (pe < kRows % n_pes ? 1 : 0);
    const std::uint64_t expected = n_pes * rows_here * kRounds * (kRounds + 1) / 2;
    for (const std::uint64_t word : rt.heap().read(words)) wrong += word != expected ? 1 : 0;
    rt.all_reduce({&wrong, 1}, esker::Reduction::kSum);
  }  // the Runtime writes the file when it ends

  const std::string path = path_of(config.trace, pe, n_pes);
  const Contents trace = read_trace(path);
  const bool right = wrong == 0 && trace.complete && trace.launches == kRounds && trace.barriers >= kRounds;
  std::cout << "tracing: PE " << pe << " wrote " << trace.events << " events to " << path << ", among them "
            << trace.launches << " launches: " << (right ? "sums and trace verified\n" : "WRONG\n");
  if (pe == 0) {
    std::cout
        << "tracing: open a file in https://ui.perfetto.dev: a track is a thread, arrows follow messages\n"
        << "tracing: scripts/merge_traces.py makes one file out of several PEs' files\n";
  }
  return right ? 0 : 1;
}
