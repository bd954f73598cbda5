// Which stage feeds which: checked before a run, with the loops that stages form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
    bool has_device_producer = false, has_device_subscriber = false, has_host_subscriber = false;
    bool is_in_loop = false;
    bool crosses() const { return has_device_producer ? has_host_subscriber : has_device_subscriber; }
  };
  std::vector<TopicFacts> topics;
  std::vector<StageFacts> stages;
  std::vector<TopicEnds> ends;       // of topics
  std::vector<std::uint32_t> loop;   // of stages: its number; kNone
  std::vector<std::uint32_t> depth;  // of stages: how many are between it and the sources
  std::uint32_t n_loops = 0;

  /// Errors Error{kConfiguration}: says what is wrong with the pipeline.
  static Topology check(std::uint32_t pipeline, const std::vector<TopicFacts>& topics,
                        const std::vector<StageFacts>& stages, bool has_gpu);
  /// Of a GPU, that are of use to a stage: a half of its frames waits while teams work on the other. With
  /// more teams than that each would wait for the ring to come round (docs/lab/pipelines.md).
  std::uint32_t most_teams(std::uint32_t stage) const;
  bool is_inside(std::uint32_t topic, std::uint32_t loop_number) const;
};

}  // namespace esker::pipeline::detail
