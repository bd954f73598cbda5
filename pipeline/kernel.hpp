// All of a pipeline's stages on a GPU, in one kernel that ends with the pipeline (XeFlow, section 5.1). On
// several GPUs each runs the same kernel, and groups serve its own stages.
#pragma once

#include <cstdint>
#include <tuple>

#include <esker/device/group.hpp>
#include <esker/device/platform.hpp>
#include <esker/pipeline/election.hpp>
#include <esker/pipeline/group_server.hpp>
#include <esker/pipeline/group_team.hpp>
#include <esker/pipeline/run_view.hpp>
#include <esker/tasks/graph_node.hpp>

namespace esker::pipeline::detail {

ESKER_PASS_BEGIN

/// In scratchpad. One type for all kernels: a compiler for AMD's GPUs adds up what different ones declare
/// there.
struct RunViewCopy {
  std::uint32_t words[sizeof(RunView) / 4];
};

/// One of the nodes elects by a status array.
template <class Nodes>
inline constexpr bool kHasStatusArray = false;
template <class... Nodes>
inline constexpr bool kHasStatusArray<tasks::detail::NodeList<Nodes...>> =
    (... || std::is_same_v<typename ElectionOf<decltype(Nodes::function)>::Type, StatusArray>);

/// Groups [0, ends[0]) serve the first stage of the list, the next ones the second, and so on.
template <class Nodes>
struct StageKernel {
  const RunView* run;
  std::uint32_t stages[kMostStages];
  std::uint32_t ends[kMostStages];
  Nodes nodes;

  ESKER_HD void operator()([[maybe_unused]] GroupLane& lane) const {
#if !defined(ESKER_ON_CPU)
    // In scratchpad: each poll would otherwise drop it from the cache.
    RunViewCopy& copy = lane.scratch<RunViewCopy>();
    const auto* const from = reinterpret_cast<const std::uint32_t*>(run);
    for (std::uint32_t w = lane.lane(); w < sizeof(RunView) / 4; w += lane.group_lanes())
      copy.words[w] = from[w];
    if constexpr (kHasStatusArray<Nodes>) (void)lane.scratch<GroupStatusWords>();
    lane.group().sync();
    const RunView& view = reinterpret_cast<const RunView&>(copy);
    GroupTeam team(lane);
    const auto group = static_cast<std::uint32_t>(lane.group_id());
    std::uint32_t i = 0;
    while (group >= ends[i]) ++i;
    const std::uint32_t index = i == 0 ? group : group - ends[i - 1];
    std::uint32_t stage = stages[i];
    do {
      nodes.visit(stage, [&](const auto& node) {
        GroupServer server(team, view, stage, index, view.stages[stage].most_teams == 0 ? index : group);
        stage = server.serve(node);
      });
    } while (stage < kGone);
#endif
  }
};

ESKER_PASS_END
static_assert(sizeof(RunView) % 4 == 0);

/// The nodes of those stages that name the device.
template <class... Nodes>
auto device_nodes(std::uint32_t, const std::tuple<Nodes...>& found) {
  return std::apply(
      [](const auto&... nodes) {
        return tasks::detail::NodeList<std::decay_t<decltype(nodes)>...>(nodes...);
      },
      found);
}
template <class... Nodes, class First, class... Rest>
auto device_nodes(std::uint32_t number, const std::tuple<Nodes...>& found, const First& first,
                  const Rest&... rest) {
  if constexpr (First::kSide == Side::kDevice) {
    return device_nodes(number + 1, std::tuple_cat(found, std::make_tuple(first.node(number))), rest...);
  } else {
    return device_nodes(number + 1, found, rest...);
  }
}

}  // namespace esker::pipeline::detail
