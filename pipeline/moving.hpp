// Teams of a GPU that move to the stage that holds others up, while a pipeline runs (XeFlow, section 5.3,
// asks for a division that fits; here it is found by whether frames or teams wait).
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>
#include <esker/pipeline/run_view.hpp>

namespace esker::pipeline::detail {

ESKER_PASS_BEGIN

/// Contract The leader of a team calls, when the team holds no ticket. Stages whose most_teams is not 0 have
///          one input.
/// Ordering [ended] what a team did for a stage that it leaves happens before that stage's end.
class Moving {
 public:
  ESKER_HD Moving(const RunView& run, std::uint32_t stage) : run_{run}, number_{stage} {}

  /// Where a quarter of the stage's teams waits for input, or the next one would for room: to a stage with
  /// room for which an eighth as many frames wait as it has teams: that one. kNone: it stays. kGone: neither
  /// has a place for it, since both have ended.
  ESKER_HD std::uint32_t next_stage() const {
    StageState& mine = *run_.states[number_];
    const std::uint64_t teams = mine.active.word.load_relaxed();
    if (teams < 2 || (!is_blocked(run_.stages[number_]) && !has_idle(run_.stages[number_], teams / 4 + 1)))
      return kNone;
    for (std::uint32_t i = 1; i < run_.n_stages; ++i) {
      const std::uint32_t other = (number_ + i) % run_.n_stages;
      const StageView& stage = run_.stages[other];
      if (stage.most_teams == 0) continue;
      StageState& its = *run_.states[other];
      const std::uint64_t there = its.active.word.load_relaxed();
      if (there == 0 || there >= stage.most_teams || !has_waiting(stage, there / 8 + 1) || is_blocked(stage))
        continue;
      if (!try_change(mine.active, 2, ~std::uint64_t{0})) return kNone;  // the last team of a stage ends it
      if (try_change(its.active, 1, 1)) {
        (void)its.counts[kJoined].fetch_add_relaxed(1);
        (void)mine.counts[kLeft].fetch_add_relaxed(1);
        return other;
      }
      return try_change(mine.active, 1, 1) ? kNone : kGone;
    }
    return kNone;
  }

 private:
  /// What a team of the stage does next would find no room.
  ESKER_HD bool is_blocked(const StageView& stage) const {
    if (stage.maps_to != kNone)
      return !run_.topics[stage.maps_to].has_room(stage.inputs[0].next->word.load_relaxed() / stage.parts);
    for (std::uint32_t t = 0; t < run_.n_topics; ++t) {
      const TopicView& topic = run_.topics[t];
      if ((stage.outputs >> t & 1u) != 0 && !topic.has_room(topic.tail->word.load_relaxed() >> topic.shift))
        return true;
    }
    return false;
  }
  /// Of the stage's teams, which have tickets up to `next`, so many at least wait for frames.
  ESKER_HD bool has_idle(const StageView& stage, std::uint64_t teams) const {
    const SubscriptionView& input = stage.inputs[0];
    const std::uint64_t next = input.next->word.load_relaxed();
    return next >= teams && !run_.topics[input.topic].was_published((next - teams) / stage.parts);
  }
  /// Frames that nobody has claimed wait, so many at least.
  ESKER_HD bool has_waiting(const StageView& stage, std::uint64_t frames) const {
    const SubscriptionView& input = stage.inputs[0];
    return run_.topics[input.topic].was_published((input.next->word.load_relaxed() + frames - 1) /
                                                  stage.parts);
  }
  /// Adds to the number of a stage's teams, if it is `least` or more.
  ESKER_HD static bool try_change(PolledWord& active, std::uint64_t least, std::uint64_t change) {
    std::uint64_t n = active.word.load_relaxed();
    while (n >= least) {
      if (active.word.compare_exchange_acq_rel(n, n + change)) return true;  // [ended]
    }
    return false;
  }

  const RunView& run_;
  const std::uint32_t number_;
};

ESKER_PASS_END

}  // namespace esker::pipeline::detail
