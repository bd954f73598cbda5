// The trace of a run: a track a stage, a counter a topic, and marks.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include <esker/pipeline/sampler.hpp>
#include <esker/pipeline/topology.hpp>

namespace esker::pipeline::detail {

/// State    open -> written.
/// Contract The monitor's thread calls; once it has ended, whoever ended it. The file is made, or emptied, at
///          once. Only what has changed is kept, up to kMostEvents; the rest is counted.
/// Errors   Error{kConfiguration} from the constructor, before anything runs. What cannot be written at the
///          end is said on stderr.
class Trace {
 public:
  static constexpr std::size_t kMostEvents = std::size_t{1} << 18;

  Trace(const std::string& file, const std::string& device, const Topology& topology,
        const RunMemory& memory);

  /// What the sampler has just found.
  void add(const Sampler& sampler, std::int64_t now_ns);
  /// In the track of a stage, or of the run: kNone. `arguments` are members of a JSON object.
  void mark(std::uint32_t stage, std::string name, std::string arguments, std::int64_t now_ns);
  /// Once.
  void write(std::int64_t now_ns) noexcept;

 private:
  struct Change {
    std::int64_t at_ns;
    std::uint32_t stage;
    StageActivity activity;
  };
  struct Fill {
    std::int64_t at_ns;
    std::uint32_t topic;
    std::uint64_t frames;
  };
  struct Mark {
    std::int64_t at_ns;
    std::uint32_t stage;
    std::string name, arguments;
  };
  bool has_space();
  void write_all(std::int64_t now_ns);

  const std::string path_, device_;
  const Topology& topology_;
  const RunMemory& memory_;
  std::ofstream out_;
  std::vector<Change> changes_;
  std::vector<Fill> fills_;
  std::vector<Mark> marks_;
  std::vector<Change> last_;              // of stages; their time is when they were last seen so
  std::vector<std::uint64_t> last_fill_;  // of topics
  std::uint64_t dropped_ = 0;
};

}  // namespace esker::pipeline::detail
