// pipe-gene-alignment: where parts of a query are in a long target (HiWayLib, table 1; Hetero-Mark). The
// device scores chunks of the target by Smith and Waterman's method, a team a chunk. The host traces back the
// best alignment of each chunk that is above a threshold.
//
// Verified by the plain dynamic programme over the whole matrix, and by what each alignment is worth.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "../../harness/application.hpp"
#include "../application.hpp"
#include "../baselines.hpp"
#include "../device_teams.hpp"
#include "score_chunk.hpp"
#include "sequences.hpp"
#include "serial.hpp"
#include "trace_back.hpp"

namespace {

using gene::Base;
using gene::Bases;
using gene::Hit;
template <class T>
using Frame = esker::pipeline::Frame<T>;

/// State    The sequences, in the host's memory; the query and scratch, in the device's; the last run's
/// result. Contract read() and write() are the stages on the host: any number of threads, each chunk once a
/// run.
class Alignments {
 public:
  Alignments(const esker::Device& device, const pipe_apps::Options& options, const gene::Chunks& chunks,
             std::int32_t threshold, const gene::Sequences& sequences)
      : device_{device},
        options_{options},
        chunks_{chunks},
        threshold_{threshold},
        sequences_{sequences},
        query_{device.memory<Base>(chunks.query_length, {"the query"})},
        scratch_{device.memory<std::uint32_t>(
            chunks.count() * (gene::ScoreChunk::scratch_words(chunks.most()) + 3), {"scratch of chunks"})},
        hits_(chunks.count()),
        found_(chunks.count()) {
    device.copy(query_.data(), sequences.query.data(), sequences.query.size());
  }

  double run() {
    std::fill(hits_.begin(), hits_.end(), Hit{});
    std::fill(found_.begin(), found_.end(), gene::Alignment{});
    const gene::ScoreChunk score{chunks_, query_.data(), scratch_.data(), chunks_.count(), chunks_.most()};
    return options_.scheme == pipe_apps::Scheme::kEsker ? run_pipeline(score) : run_compared(score);
  }
  const std::vector<Hit>& hits() const { return hits_; }
  const std::vector<gene::Alignment>& found() const { return found_; }
  /// Of the last pipeline; null before.
  const nlohmann::json& report() const { return report_; }

 private:
  std::uint32_t frame_items() const { return (chunks_.most() + 15) / 16; }

  void read(Frame<Bases>& frame, std::uint64_t chunk) const {
    const std::uint32_t first = chunks_.first(chunk), columns = chunks_.end(chunk) - first;
    std::memcpy(frame.data, &sequences_.target[first], columns);
    frame.count = (columns + 15) / 16;
    frame.tag = chunk;
  }
  void write(const Frame<const Hit>& frame) {
    const Hit hit = frame[0];
    hits_[frame.tag] = hit;
    if (hit.score() >= threshold_)
      found_[frame.tag] = gene::trace_back(sequences_.query, sequences_.target, hit);
  }

  double run_pipeline(const gene::ScoreChunk& score) {
    namespace pipeline = esker::pipeline;
    pipeline::Pipeline p(device_, options_.pipeline_options());
    pipeline::TopicOptions of_hits = options_.topic_options("hits");
    of_hits.frame_bytes = sizeof(Hit);
    pipeline::TopicOptions of_target = options_.topic_options("target");
    of_target.frame_bytes = frame_items() * sizeof(Bases);
    const auto target = p.topic<Bases>(of_target);
    const auto hits = p.topic<Hit>(of_hits);
    std::uint64_t next = 0;
    const auto read_next = [&](auto& stage) {
      if (next == chunks_.count()) return false;
      auto frame = stage.open(target);
      if (frame.data == nullptr) return false;
      read(frame, next++);
      stage.publish(target, frame);
      return true;
    };
    const auto write_hits = [this](auto&, const Frame<const Hit>& frame) { write(frame); };
    const pipeline::Report& report = p.run(pipeline::on_host::source("read", read_next).into(target),
                                           pipeline::on_device::map("score", target, hits, score)
                                               .staged()
                                               .workers(pipe_apps::device_teams(device_)),
                                           pipeline::on_host::frames("trace back", write_hits)
                                               .from(hits)
                                               .workers(static_cast<std::uint32_t>(options_.workers)));
    report_ = nlohmann::json::parse(report.json());
    return std::chrono::duration<double>(report.time).count();
  }
  double run_compared(const gene::ScoreChunk& score) {
    pipe_apps::FrameRun<Bases, Hit> run;
    run.frames = chunks_.count();
    run.in_items = frame_items();
    run.out_items = 1;
    run.team = {options_.group_lanes, 1};
    run.read = [this](Frame<Bases>& in, Frame<Hit>&) { read(in, in.number); };
    run.write = [this](const Frame<const Hit>& out) { write(out); };
    return pipe_apps::run_baseline(device_, options_, run, score);
  }

  const esker::Device& device_;
  const pipe_apps::Options& options_;
  gene::Chunks chunks_;
  std::int32_t threshold_;
  const gene::Sequences& sequences_;
  esker::DeviceArray<Base> query_;
  esker::DeviceArray<std::uint32_t> scratch_;
  std::vector<Hit> hits_;
  std::vector<gene::Alignment> found_;
  nlohmann::json report_;
};

int run(int argc, char** argv) {
  pipe_apps::Options o;
  std::uint64_t query_length = 1024, target_length = 0, columns = 1024, threshold = 200;
  esker::CommandLine line("esker-pipe-gene-alignment",
                          "Finds where a target is like a query, by Smith-Waterman.");
  o.add_to(line);
  line.add("query", &query_length, "bases of the query")
      .add("target", &target_length, "bases of the target; 0: as --size says")
      .add("chunk", &columns, "bases of the target that a frame adds to those that it begins with")
      .add("threshold", &threshold, "alignments that are worth less are not traced back");
  const esker::Device device = o.parse(line, argc, argv);
  if (target_length == 0) target_length = o.by_size(8192, 65536, 65536);
  if (query_length == 0 || query_length >= gene::kMostRows) harness::usage("--query is 1 to 65535");
  if (target_length > gene::kMostColumns) harness::usage("--target is at most 16777216");
  if (columns == 0 || columns > target_length) harness::usage("--chunk is 1 to --target");
  if (threshold == 0 || threshold > 1 << 20) harness::usage("--threshold is 1 to 1048576");

  const gene::Chunks chunks{static_cast<std::uint32_t>(target_length),
                            static_cast<std::uint32_t>(query_length), static_cast<std::uint32_t>(columns)};
  const gene::Sequences sequences =
      gene::make_sequences(chunks.query_length, chunks.target_length, 4096, o.seed);
  Alignments alignments(device, o, chunks, static_cast<std::int32_t>(threshold), sequences);
  std::vector<Hit> expected;
  if (o.verify) expected = gene::serial_hits(sequences.query, sequences.target, chunks.columns);

  const auto measured = pipe_apps::measure(
      o, [&] { return alignments.run(); },
      [&] {
        for (std::size_t c = 0; c < expected.size(); ++c) {
          if (alignments.hits()[c].word != expected[c].word) return false;
          const gene::Alignment& found = alignments.found()[c];
          const bool is_above = expected[c].score() >= static_cast<std::int32_t>(threshold);
          if (found.steps.empty() == is_above) return false;
          if (is_above && !gene::is_right(found, sequences.query, sequences.target, expected[c]))
            return false;
        }
        return true;
      });
  const auto n_found = std::count_if(alignments.found().begin(), alignments.found().end(),
                                     [](const gene::Alignment& a) { return !a.steps.empty(); });
  const double cells = static_cast<double>(query_length) * static_cast<double>(target_length);
  return pipe_apps::finish(o, device, "pipe-gene-alignment", measured,
                           {cells, "cells", static_cast<double>(target_length)},
                           {{"query", query_length},
                            {"target", target_length},
                            {"chunk", columns},
                            {"overlap", chunks.overlap()},
                            {"alignments", n_found},
                            {"pipeline", alignments.report()}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pipe-gene-alignment", argc, argv, run); }
