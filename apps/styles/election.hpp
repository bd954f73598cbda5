// Ways to agree on a slot among lanes whose numbers of messages differ (thesis, Table 5-1): --election. They
// compare elections; the style that applications are for is the first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <esker/lane.hpp>

#include "message.hpp"
#include "superstep.hpp"

namespace styles {

/// Names as --election takes them: what the style does; the same by lanes of groups; by lane; by wave; by
/// group with predication; by group with a fine-grain barrier.
const std::vector<std::string>& elections();
/// Throws esker::UsageError unless the style leaves the election open.
void require_election(Style style, const std::string& election);

/// A source that knows, when it starts, how many messages the lane has: Table 5-1b's loop_cnt.
template <class S>
concept CountedSource = Source<S> && requires(const S& source, const typename S::State& state) {
  { source.messages(state) } -> std::same_as<std::uint32_t>;
};

/// Table 5-1a, where a kernel uses group operations beside.
template <class S>
struct SendFromGroup {
  S source;
  ESKER_HD void operator()(esker::GroupItem& item) const {
    auto state = source.start(item.global_id());
    for (typename S::Message message{}; source.next(state, message);) message.send(item);
  }
};

/// Table 5-1b: every lane of the view takes part as often as the one with the most messages. PerWave emulates
/// a GPU that tracks control flow by group (thesis, section 5.6.2).
template <class S, class Election>
struct SendPredicated {
  S source;
  std::byte* anywhere;  // an address in the heap
  ESKER_HD void operator()(esker::GroupItem& item) const {
    auto state = source.start(item.global_id());
    const std::uint32_t mine = source.messages(state);
    const std::uint32_t most = rounds(item, mine, Election{});
    for (std::uint32_t i = 0; i < most; ++i) {
      typename S::Message message{};
      const bool is_active = i < mine && source.next(state, message);
      if (!is_active) message.target = reinterpret_cast<decltype(message.target)>(anywhere);
      message.send(item, Election{is_active});
    }
  }

 private:
  ESKER_HD static std::uint32_t rounds(esker::GroupItem& item, std::uint32_t mine, esker::Predicated) {
    return item.group().reduce(mine, esker::Max{});
  }
  ESKER_HD static std::uint32_t rounds(esker::GroupItem& item, std::uint32_t mine, esker::PerWave) {
    return item.wave().reduce(mine, esker::Max{});
  }
};

/// Table 5-1c.
template <class S>
struct SendFineGrain {
  static constexpr std::uint32_t kMostLanes = 1024;
  S source;
  ESKER_HD void operator()(esker::GroupItem& item) const {
    auto& scratch = item.group_lane().template scratch<esker::FineGrainState<kMostLanes>>();
    esker::FineGrainBarrier<kMostLanes> members(item.group_lane(), scratch);
    members.join();
    item.group().sync();
    auto state = source.start(item.global_id());
    for (typename S::Message message{}; source.next(state, message);)
      message.send(item, esker::FineGrain<kMostLanes>{members});
    members.leave();
  }
};

/// Collective. Superstep::run() with one of elections(), which require_election() has seen.
template <CountedSource S>
void run_elected(esker::Runtime& rt, Superstep& superstep, const std::string& election, std::uint64_t lanes,
                 const S& source, const char* name) {
  if (election == "auto-group") {
    rt.launch(lanes, SendFromGroup<S>{source}, name);
  } else if (election == "per-lane") {
    rt.launch(lanes, SendEach<S, esker::PerLane>{source}, name);
  } else if (election == "per-wave") {
    rt.launch(lanes, SendPredicated<S, esker::PerWave>{source, rt.heap().base()}, name);
  } else if (election == "predicated") {
    rt.launch(lanes, SendPredicated<S, esker::Predicated>{source, rt.heap().base()}, name);
  } else if (election == "fine-grain") {
    rt.launch(lanes, SendFineGrain<S>{source}, name);
  } else {
    return superstep.run(lanes, source, name);
  }
  rt.barrier_all();
}

}  // namespace styles
