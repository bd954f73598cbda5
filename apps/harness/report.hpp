// What every application takes and writes: --json and one object with the same first fields.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <esker/esker.hpp>
#include <nlohmann/json_fwd.hpp>

#include "output.hpp"

namespace harness {

/// Counters of all PEs together between two moments.
struct Traffic {
  std::uint64_t messages_local = 0;
  std::uint64_t messages_remote = 0;
  std::uint64_t messages_direct = 0;  // of the remote, in no buffer
  std::uint64_t combined_local = 0;   // calls that have travelled in another's message
  std::uint64_t combined_remote = 0;
  std::uint64_t buffers_sent = 0;
  std::uint64_t bytes_sent = 0;
};

Traffic operator-(const Traffic& a, const Traffic& b);

/// Collective.
Traffic sum_over_pes(esker::Runtime& rt, const esker::Statistics& mine);

/// What a PE has taken, of that PE which has most of it.
struct Memory {
  std::uint64_t peak_bytes = 0;      // resident in host memory, since the process began
  std::uint64_t input_bytes = 0;     // on the heap and in arrays beside it: its share, and what comes of that
  std::uint64_t declared_bytes = 0;  // beside the heap, by the runtime
};

/// Collective.
Memory memory_of_pes(esker::Runtime& rt, std::uint64_t beside_heap);
nlohmann::json to_json(const Memory& memory);

/// Median, least and most of some seconds; `all` is not empty.
struct Spread {
  double median, least, most;
};
Spread spread_of(std::vector<double> all);

struct Result {
  std::string app;
  std::string style;
  Spread seconds;
  double work;            // in the application's unit
  std::string work_unit;  // "updates", "edges", ...
  bool verification_on;
  bool verified;
  Traffic traffic;
  /// What lanes have asked for, of their own PE too. There a put is a store, and no message: what is remote
  /// is remote of all accesses (thesis, Table 5-4). 0: each call sends.
  std::uint64_t accesses;
};

/// Collective. On PE 0: one line for people, unless something else goes to standard output, and the object
/// with `more` added to `json_file`, which may be null. Throws Agreed for what cannot be written.
void write_report(esker::Runtime& rt, const Result& result, OutputFile* json_file, bool is_quiet,
                  const nlohmann::json& more);

}  // namespace harness
