// Which stage feeds which: checked before a run, with the loops that stages form.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/pipeline/node.hpp>
#include <esker/pipeline/options.hpp>

namespace esker::pipeline::detail {

struct TopicFacts {
  TopicOptions options;
  std::uint32_t item_bytes = 0;
};

struct Topology {
  struct TopicEnds {
    std::vector<std::uint32_t> producers, subscribers;  // stages
    std::uint32_t from = kHostSide;                     // its producers' side
    std::set<std::uint32_t> to;                         // its subscribers' sides
    bool is_in_loop = false;
    bool crosses() const { return to.size() > 1 || (to.size() == 1 && !to.contains(from)); }
  };
  std::vector<TopicFacts> topics;
  std::vector<StageFacts> stages;
  std::vector<TopicEnds> ends;       // of topics
  std::vector<std::uint32_t> loop;   // of stages: its number; kNone
  std::vector<std::uint32_t> depth;  // of stages: how many are between it and the sources
  std::uint32_t n_loops = 0, n_devices = 0;
  std::uint32_t pipeline = 0;  // its number

  /// Errors Error{kConfiguration}: says what is wrong with the pipeline.
  static Topology check(std::uint32_t pipeline, const std::vector<TopicFacts>& topics,
                        const std::vector<StageFacts>& stages, const std::vector<Device>& devices);
  /// "host", or "device", of several "device 1".
  std::string name_of(std::uint32_t side) const;
  /// Sides that have stages of a loop.
  std::set<std::uint32_t> sides_of(std::uint32_t loop_number) const;
  /// Of a GPU, that are of use to a stage: a half of its frames waits while teams work on the other. With
  /// more teams than that each would wait for the ring to come round (docs/lab/pipelines.md).
  std::uint32_t most_teams(std::uint32_t stage) const;
  bool is_inside(std::uint32_t topic, std::uint32_t loop_number) const;
};

}  // namespace esker::pipeline::detail
