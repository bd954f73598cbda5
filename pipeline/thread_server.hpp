// How threads of the host serve a stage: by turns.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>
#include <esker/pipeline/idle_time.hpp>
#include <esker/pipeline/stage_work.hpp>
#include <esker/pipeline/thread_team.hpp>

namespace esker::pipeline::detail {

/// What a thread's turn at a stage came to.
enum class Turn : std::uint32_t { kWorked, kNothing, kEnded };

ESKER_PASS_BEGIN

/// Contract One thread at a time, but for has_work().
/// Protocol Threads are few, and take turns: they claim the oldest frame that they see published, and
///          only if what they make of it would find room.
class ThreadServer : StageWork<ThreadTeam> {
 public:
  /// `index`: of the team among the stage's.
  ThreadServer(ThreadTeam& team, const RunView& run, std::uint32_t stage, std::uint32_t index)
      : StageWork{team, run, stage, index} {}

  /// One frame, or the calls of a source until it has published one. `stays`: until there is nothing to do.
  template <class Node>
  Turn take_turn(const Node& node, bool stays) {
    Turn turn = take_one(node);
    if (stays && turn == Turn::kWorked) {
      do {
        turn = take_one(node);
      } while (turn == Turn::kWorked);
      if (turn == Turn::kNothing) turn = Turn::kWorked;  // it had something to do
    }
    if (working_since_ != 0) {
      busy_ns_ += ThreadTeam::now_ns() - working_since_;
      working_since_ = 0;
    }
    if (turn == Turn::kEnded) {
      if (view().n_inputs == 1) (void)state().starved_ns[0].fetch_add_relaxed(idle_.starved_ns);
      add_counts(busy_ns_ + idle_.blocked_ns);
      leave(node);
    }
    return turn;
  }
  /// take_turn() would find something to do.
  template <class Node>
  bool has_work(const Node&) const {
    if (run_.is_over()) return true;
    const StageView& stage = view();
    if constexpr (Node::kKind == StageKind::kSource) return is_drained() || has_room_in_any();
    std::uint32_t n_ended = 0;
    for (std::uint32_t i = 0; i < stage.n_inputs; ++i) {
      const TopicView& topic = run_.topics[stage.inputs[i].topic];
      const std::uint64_t frame = stage.inputs[i].next->word.load_relaxed() / stage.parts;
      std::uint32_t items = 0;
      if (topic.sees(frame, items)) {
        if (has_room_for(frame)) return true;
      } else if (topic.has_ended_before(frame)) {
        ++n_ended;
      }
    }
    return n_ended == stage.n_inputs;
  }

 private:
  bool is_drained() const { return run_.drain->word.load_relaxed() != 0; }

  template <class Node>
  Turn take_one(const Node& node) {
    if (run_.is_over()) return end(0);
    if constexpr (Node::kKind == StageKind::kSource) {
      if (is_drained()) return end(0);
      if (!has_room_in_any()) return rest(true, 0);
      begin_work(0);
      return call(node) ? Turn::kWorked : Turn::kEnded;
    } else {
      const StageView& stage = view();
      std::uint32_t n_ended = 0, last = 0;
      bool is_blocked = false;
      for (std::uint32_t i = 0; i < stage.n_inputs; ++i) {
        const SubscriptionView& input = stage.inputs[i];
        const TopicView& topic = run_.topics[input.topic];
        std::uint64_t oldest = input.next->word.load_relaxed();
        const std::uint64_t frame = oldest / stage.parts;
        std::uint32_t items = 0;
        if (!topic.sees(frame, items)) {
          if (!topic.has_ended_before(frame)) continue;
          ++n_ended;
          last = i;
        } else if (!has_room_for(frame)) {
          is_blocked = true;
          last = i;
        } else if (input.next->word.compare_exchange_relaxed(oldest, oldest + 1)) {
          begin_work(i);
          const FrameWords& words = topic.words[topic.slot_of(frame)];
          take(node, i, oldest, items, {frame, words.tag, words.born_ns});
          return Turn::kWorked;
        }
      }
      return n_ended == stage.n_inputs ? end(last) : rest(is_blocked, last);
    }
  }
  /// Calls a source until it has published a frame. False: there is no more.
  template <class Node>
  bool call(const Node& node) {
    const Input none{};
    const std::uint64_t before = frames_reserved();
    do {
      Stage<ThreadTeam> self(team_, run_, number_, none);
      ++frames_;
      if (!node.function(self)) return false;
    } while (frames_reserved() == before && !run_.is_over() && !is_drained());
    return true;
  }

  // --- Room: what the stage publishes next would find some at once. Those that never wait do not look.

  bool has_room(std::uint32_t number, std::uint64_t frame) const {
    const TopicView& topic = run_.topics[number];
    if (topic.drops_from != nullptr || (view().inside >> number & 1u) != 0) return true;
    return topic.is_in_loop == 0 ? topic.has_room(frame) : topic.has_room_outside(frame);
  }
  bool has_room_for(std::uint64_t frame) const {
    return view().maps_to == kNone ? has_room_in_any() : has_room(view().maps_to, frame);
  }
  bool has_room_in_any() const { return view().outputs == 0 || output_with_room() != kNone; }
  std::uint32_t output_with_room() const {
    for (std::uint32_t left = view().outputs; left != 0; left &= left - 1) {
      const auto t = static_cast<std::uint32_t>(__builtin_ctz(left));
      const TopicView& topic = run_.topics[t];
      const std::uint64_t position = topic.tail->word.load_relaxed();
      if ((position & (topic.positions() - 1)) != 0 || has_room(t, position >> topic.shift)) return t;
    }
    return kNone;
  }
  std::uint64_t frames_reserved() const {
    std::uint64_t n = 0;
    for (std::uint32_t left = view().outputs; left != 0; left &= left - 1) {
      const TopicView& topic = run_.topics[__builtin_ctz(left)];
      n += topic.tail->word.load_relaxed() >> topic.shift;
    }
    return n;
  }

  // --- Times. Input `i` has come, has ended, or has come and waits for room.

  void begin_work(std::uint32_t i) {
    if (!idle_.is_idle() && working_since_ != 0) return;
    const std::uint64_t now = ThreadTeam::now_ns();
    end_idle(i, now);
    if (working_since_ == 0) working_since_ = now;
  }
  Turn end(std::uint32_t i) {
    end_idle(i, ThreadTeam::now_ns());
    return Turn::kEnded;
  }
  Turn rest(bool for_room, std::uint32_t i) {
    const StageView& stage = view();
    const std::uint64_t now = ThreadTeam::now_ns();
    if (!idle_.is_idle() || idle_.is_for_room != for_room) {
      end_idle(i, now);
      idle_.begin(now, for_room);
    }
    if (stage.outputs != 0 && now - idle_.since >= stage.flush_ns) flush_outputs();
    // One team is enough: while it has something to do its loop has not ended.
    if (stage.loop != kNone && row_ == 0) (void)run_.try_end_loop(stage.loop);
    return Turn::kNothing;
  }
  void end_idle(std::uint32_t i, std::uint64_t now) {
    if (!idle_.is_idle()) return;
    const std::uint64_t ns = idle_.end(now);
    if (idle_.is_for_room) {
      (void)state().blocked_ns[output_waited_for()].fetch_add_relaxed(ns);
    } else if (view().n_inputs > 1) {
      (void)state().starved_ns[i].fetch_add_relaxed(ns);
    }
  }
  /// Of several outputs the first one that has room now.
  std::uint32_t output_waited_for() const {
    if (view().maps_to != kNone) return view().maps_to;
    const std::uint32_t found = output_with_room();
    return found != kNone ? found : static_cast<std::uint32_t>(__builtin_ctz(view().outputs));
  }

  std::uint64_t working_since_ = 0;  // in its turn
  std::uint64_t busy_ns_ = 0;
  IdleTime idle_;
};

ESKER_PASS_END

}  // namespace esker::pipeline::detail
