// The file that the trace setting asks for. Private to runtime/.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>

#include <esker/aggregator/statistics.hpp>
#include <esker/aggregator/trace.hpp>
#include <esker/net/stage_counters.hpp>

namespace esker {

/// "out/trace.json" becomes "out/trace.3.json" on PE 3 of several, and stays what it is on one PE.
std::string trace_path(const std::string& file, std::uint32_t pe, std::uint32_t n_pes);

/// One PE's tracer and the file that its events go to.
///
/// State    off, or open -> written.
/// Contract The file is made at once, so that one that cannot be is an Error{kConfiguration} before
///          anything runs. It is written by write(), at the latest by the destructor, once; threads may
///          still be adding events, which are then left out.
/// Errors   What cannot be written at the end is said on stderr.
class TraceFile {
 public:
  /// Off if `file` is empty; the tracer is there all the same if the device's profiler watches.
  TraceFile(const std::string& file, std::uint32_t pe, std::uint32_t n_pes, std::uint32_t slots);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  /// Null: off.
  Tracer* tracer() const { return tracer_.get(); }
  /// Any thread.
  void write() noexcept;

 private:
  const std::string path_;
  const std::uint32_t pe_;
  const std::uint32_t n_pes_;
  std::mutex mutex_;
  std::ofstream out_;  // guarded by mutex_
  std::unique_ptr<Tracer> tracer_;
};

StageStatistics read_stages(const StageCounters& counters, const Tracer* tracer);

}  // namespace esker
