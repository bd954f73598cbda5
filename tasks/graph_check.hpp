// What is wrong with a task graph, and how a run of it ended: in words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <esker/device/platform.hpp>
#include <esker/tasks/ending.hpp>
#include <esker/tasks/graph_options.hpp>
#include <esker/tasks/options.hpp>

namespace esker::tasks::detail {

/// What the host knows of a node.
struct NodeFacts {
  std::uint32_t graph, number, targets;
  bool is_mixed;
};

/// Another one for each graph of the process.
ESKER_API std::uint32_t next_graph();

// These throw Error{kConfiguration}.

/// Unless each channel has one node, no output has one, and nodes name channels of this graph.
ESKER_API void check_nodes(const std::vector<GraphReport::Channel>& channels, std::uint32_t graph,
                           const std::vector<NodeFacts>& nodes);
/// Unless the channel, or output, is this graph's.
ESKER_API void check_owner(std::uint32_t graph, std::uint32_t owner);
/// A channel too many, or one after the first run.
[[noreturn]] ESKER_API void refuse_channel(const std::string& name, bool has_run);
/// There is not place for one element.
[[noreturn]] ESKER_API void refuse_memory_of(const std::string& name, std::uint64_t memory_bytes);

/// Throws the TaskError of a run that has not ended well.
[[noreturn]] ESKER_API void throw_graph_outcome(const RunEnd& how,
                                                const std::vector<GraphReport::Channel>& channels,
                                                const std::string& device, const Options& options);

}  // namespace esker::tasks::detail
