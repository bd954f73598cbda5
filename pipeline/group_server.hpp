// How a group of a GPU serves a stage (XeFlow, Algorithm 1).
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>
#include <esker/pipeline/group_team.hpp>
#include <esker/pipeline/idle_time.hpp>
#include <esker/pipeline/moving.hpp>
#include <esker/pipeline/stage_work.hpp>

#if !defined(ESKER_ON_CPU)

namespace esker::pipeline::detail {

ESKER_PASS_BEGIN

/// Contract All lanes of the group call, together. Tickets and times are the leader's.
/// Protocol A team claims the next frame of each of its inputs before it is published, and polls that
///          frame's words alone: so thousands of teams wait for thousands of frames without competing for
///          one word. A frame that a team has claimed is its own until it is done, or will not come.
class GroupServer : StageWork<GroupTeam> {
 public:
  /// `index`: of the team among those that its first stage began with. `row`: of the stage's staging.
  ESKER_HD GroupServer(GroupTeam& team, const RunView& run, std::uint32_t stage, std::uint32_t index,
                       std::uint32_t row)
      : StageWork{team, run, stage, row}, index_{index}, claim_{team.shared<Claim>()} {
    for (std::uint32_t i = 0; i < kMostInputs; ++i) tickets_[i] = kNoTicket;
  }

  /// Until the stage has ended for this team, or the run is over: kNone; or another stage needs the team
  /// more: that one; or neither: kGone.
  template <class Node>
  ESKER_HD std::uint32_t serve(const Node& node) {
    std::uint32_t next = kNone;
    const std::uint64_t began = GroupTeam::now_ns();
    while (true) {
      const std::uint64_t got = team_.of_leader([&] { return poll(); });
      if (got == kNothing) continue;
      if (got == kEnded) break;
      const Claim claim = claim_;
      take(node, static_cast<std::uint32_t>(got >> 32) - kFirstInput, claim.ticket,
           static_cast<std::uint32_t>(got), claim.from);
      if (view().most_teams != 0 && index_ != 0 && frames_ % kFramesALook == 0) {
        next = static_cast<std::uint32_t>(
            team_.of_leader([&] { return std::uint64_t{Moving(run_, number_).next_stage()}; }));
        if (next != kNone) break;
      }
    }
    if (team_.lane() == 0) {
      if (view().n_inputs == 1) (void)state().starved_ns[0].fetch_add_relaxed(idle_.starved_ns);
      add_counts(GroupTeam::now_ns() - began - idle_.starved_ns);
    }
    if (next == kNone) leave(node);
    return next;
  }

 private:
  static constexpr std::uint64_t kNoTicket = ~std::uint64_t{0}, kTicketEnded = kNoTicket - 1;
  static constexpr std::uint64_t kNothing = 0, kEnded = 1;
  static constexpr std::uint32_t kFirstInput = 1;  // in the upper half
  /// What the leader tells the others.
  struct Claim {
    std::uint64_t ticket;
    Input from;
  };
  static constexpr std::uint32_t kFewTeams = 16, kFramesALook = 4, kRestsALook = 8;

  // The leader calls.

  ESKER_HD std::uint64_t poll() {
    const StageView& stage = view();
    if (run_.is_over()) {
      end_idle(stage, 0);
      return kEnded;
    }
    std::uint32_t n_ended = 0, last = 0;
    for (std::uint32_t i = 0; i < stage.n_inputs; ++i) {
      if (tickets_[i] == kTicketEnded) {
        ++n_ended;
        continue;
      }
      std::uint32_t items = 0;
      const Poll found = poll_input(stage, i, items);
      if (found == Poll::kEnded) {
        tickets_[i] = kTicketEnded;
        ++n_ended;
        last = i;
      } else if (found == Poll::kFrame) {
        tickets_[i] = kNoTicket;
        end_idle(stage, i);
        team_.has_worked();
        return std::uint64_t{kFirstInput + i} << 32 | items;
      }
    }
    if (n_ended == stage.n_inputs) {
      end_idle(stage, last);
      return kEnded;
    }
    rest(stage);
    return kNothing;
  }
  enum class Poll { kNothing, kFrame, kEnded };
  ESKER_HD Poll poll_input(const StageView& stage, std::uint32_t i, std::uint32_t& items) {
    const SubscriptionView& input = stage.inputs[i];
    const TopicView& topic = run_.topics[input.topic];
    if (tickets_[i] == kNoTicket) {
      tickets_[i] = input.next->word.fetch_add_relaxed(1);
      has_room_ = false;
    }
    const std::uint64_t frame = tickets_[i] / stage.parts, slot = topic.slot_of(frame);
    const bool is_first = tickets_[i] % stage.parts == 0;
    // The word of a host's frame is read by one team: the bus serves readers of a line one after the other.
    const FrameWords& words = is_first || input.copies == nullptr ? topic.words[slot] : input.copies[slot];
    bool is_next = true;  // of all teams: it looks for the end
    if (input.seen.at != nullptr) {
      const std::uint64_t seen = input.seen.get();
      if ((seen & Progress::kEndedBit) != 0 && frame >= (seen & ~Progress::kEndedBit)) return Poll::kEnded;
      is_next = is_first && frame == seen;
      if (is_first && frame >= seen + Progress::kWindow && ++far_polls_ % Progress::kFarPolls != 0)
        return Poll::kNothing;
    }
    // While it waits a map learns that its output has room, too.
    const bool asks_for_room = stage.maps_to != kNone && !has_room_ && is_first;
    bool is_there = false, may_have_ended = false;
    if (stage.teams <= kFewTeams) {
      // Of few teams each round trip over the bus counts: all words in one, and one fence for what they say.
      const TopicView& to = run_.topics[asks_for_room ? stage.maps_to : input.topic];
      const bool looks = asks_for_room && to.subscriptions == 1;
      const std::uint64_t freed = looks ? to.freed[to.slot_of(frame)].load_relaxed() : 0;
      const std::uint64_t end = topic.end->word.load_relaxed();
      const std::uint64_t published = words.published.load_relaxed();
      may_have_ended = is_next && end <= frame;
      is_there = topic.says_published(published, frame);
      const bool has_room = looks && freed >= to.round_of(frame);
      if (is_there || has_room) fence_system();  // [fill] [reuse]
      has_room_ = has_room_ || has_room;
      items = static_cast<std::uint32_t>(published);
    } else {
      if (asks_for_room) has_room_ = run_.topics[stage.maps_to].finds_room(frame, far_polls_);
      // Both reads are under way at a time.
      may_have_ended = is_next && topic.end->word.load_relaxed() <= frame;
      // Many look before they acquire, for each other's caches (is_ready()).
      is_there = topic.was_published(words, frame) && topic.sees(words, frame, items);
    }
    if (is_there) {
      claim_ = {tickets_[i], {frame, words.tag, words.born_ns}};
      if (is_first) {
        input.seen.reach(frame);
        if (input.copies != nullptr) copy_words(topic, input.copies[slot], claim_.from, items);
      }
      return Poll::kFrame;
    }
    if (!may_have_ended || !topic.has_ended_before(frame)) return Poll::kNothing;
    input.seen.end(topic.end->word.load_relaxed());
    return Poll::kEnded;
  }
  ESKER_HD static void copy_words(const TopicView& topic, FrameWords& to, const Input& from,
                                  std::uint32_t items) {
    to.tag = from.tag;
    to.born_ns = from.born_ns;
    to.published.store_release(topic.published_word(from.number, items, false));  // [fill]
  }
  /// There is nothing to do.
  ESKER_HD void rest(const StageView& stage) {
    const std::uint64_t now = GroupTeam::now_ns();
    if (!idle_.is_idle()) idle_.begin(now, false);
    if (stage.outputs != 0 && now - idle_.since >= stage.flush_ns) flush_outputs();
    // One team is enough: while it has something to do its loop has not ended. It reads words of both sides.
    if (stage.loop != kNone && index_ == 0 && ++rests_ % kRestsALook == 0)
      (void)run_.try_end_loop(stage.loop);
    team_.idle(stage.teams);
  }
  /// Input `i` has come, or has ended.
  ESKER_HD void end_idle(const StageView& stage, std::uint32_t i) {
    if (!idle_.is_idle()) return;
    const std::uint64_t ns = idle_.end(GroupTeam::now_ns());
    if (stage.n_inputs > 1) (void)state().starved_ns[i].fetch_add_relaxed(ns);
  }

  const std::uint32_t index_;
  Claim& claim_;
  std::uint64_t tickets_[kMostInputs];
  std::uint32_t far_polls_ = 0, rests_ = 0;
  IdleTime idle_;
};

ESKER_PASS_END

}  // namespace esker::pipeline::detail

#endif
