// The words of task graphs: what is wrong with one, why a run ended, what it did.
#include <esker/tasks/graph_options.hpp>

#include <fmt/format.h>

#include <atomic>

#include <esker/tasks/ending.hpp>
#include <esker/tasks/error.hpp>
#include <esker/tasks/options.hpp>

namespace esker::tasks {

namespace detail {

using Channels = std::vector<GraphReport::Channel>;

// Declared in graph.hpp and graph_channels.hpp, which hold device code.
struct NodeFacts {
  std::uint32_t graph, number, targets;
  bool is_mixed;
};
ESKER_API void check_nodes(const Channels& channels, std::uint32_t graph, const std::vector<NodeFacts>& nodes);
ESKER_API void check_channel(const Channels& channels, std::uint32_t graph, std::uint32_t channel_graph);
[[noreturn]] ESKER_API void throw_graph_outcome(const Ending& ending, const Channels& channels,
                                                const std::string& device, const Options& options);
[[noreturn]] ESKER_API void refuse_channel(const std::string& name, bool has_run);
[[noreturn]] ESKER_API void refuse_memory_of(const std::string& name, std::uint64_t memory_bytes);
ESKER_API std::uint32_t next_graph();
}  // namespace detail
}  // namespace esker::tasks
