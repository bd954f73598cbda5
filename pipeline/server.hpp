// How a team serves a stage: takes what is published for it, calls its function, and leaves when all has
// ended (XeFlow, Algorithm 1).
#pragma once

#include <cstdint>
#include <type_traits>

#include <esker/device/platform.hpp>
#include <esker/pipeline/frame.hpp>
#include <esker/pipeline/node.hpp>
#include <esker/pipeline/run_view.hpp>
#include <esker/pipeline/stage.hpp>

namespace esker::pipeline::detail {

ESKER_PASS_BEGIN

/// One lane of a team, on its own: for what a stage does at its end.
template <class Team>
class OneLane {
 public:
  static constexpr bool kIsAtEnd = true;
  static constexpr bool kIsThread = Team::kIsThread;

  ESKER_HD explicit OneLane(Team& team) : team_{team} {}
  ESKER_HD std::uint32_t lane() const { return 0; }
  ESKER_HD std::uint32_t lanes() const { return 1; }
  ESKER_HD void sync() const {}
  template <class Function>
  ESKER_HD void leader(Function&& function) const {
    function();
  }
  template <class Function>
  ESKER_HD std::uint64_t of_leader(Function&& function) const {
    return function();
  }
  ESKER_HD static LoneLane converged() { return {}; }
  ESKER_HD void ring() const { team_.ring(); }
  template <class Ready, class Over>
  ESKER_HD bool wait(const Ready& ready, const Over& over) {
    return team_.wait(ready, over);
  }
  ESKER_HD static std::uint64_t now_ns() { return Team::now_ns(); }
  ESKER_HD static std::uint64_t birth_ns() { return Team::birth_ns(); }

 private:
  Team& team_;
};

/// What a thread's turn at a stage came to.
enum class Turn : std::uint32_t { kWorked, kNothing, kEnded };

/// Contract All lanes of the team call, together. Members are the same in all of them, but for tickets and
///          times, which the leader has.
/// Protocol A GPU's team claims the next frame of each of its inputs before it is published, and polls that
///          frame's words alone: so thousands of teams wait for thousands of frames without competing for one
///          word. A frame that a team has claimed is its own until it is done, or will not come. Threads of
///          the host, which are few and take turns, claim what they see published.
template <class Team>
class Server {
 public:
  /// `index`: of the team among those that its first stage began with. `row`: of the stage's staging.
  ESKER_HD Server(Team& team, const RunView& run, std::uint32_t index, std::uint32_t row)
      : team_{team}, run_{run}, index_{index}, row_{row} {}

  template <class Node>
  ESKER_HD void begin(const Node& node) {
    number_ = node.number;
    for (std::uint32_t i = 0; i < kMostInputs; ++i) tickets_[i] = kNoTicket;
  }
  /// Of a GPU: until the stage has ended for this team, or the run is over: kNone; or another stage needs the
  /// team more: that one; or neither: kGone.
  template <class Node>
  ESKER_HD std::uint32_t serve(const Node& node) {
    begin(node);
    std::uint32_t next = kNone;
    const std::uint64_t began = Team::now_ns();
    while (true) {
      const std::uint64_t got = team_.of_leader([&] { return poll(); });
      if (got == kNothing) continue;
      if (got == kOver || got == kEnded) break;
      take(node, static_cast<std::uint32_t>(got >> 32) - kFirstInput, static_cast<std::uint32_t>(got));
      if (view().most_teams != 0 && index_ != 0 && frames_ % kFramesALook == 0) {
        next = static_cast<std::uint32_t>(team_.of_leader([&] { return std::uint64_t{move()}; }));
        if (next != kNone) break;  // to `next`, which may be kGone
      }
    }
    if (team_.lane() == 0) {
      busy_ns_ = Team::now_ns() - began - idle_ns_[0];
      add_counts();
    }
    if (next == kNone) leave(node);
    return next;
  }

  // --- A thread's turn, which ends with one frame, or stays until there is nothing to do.

  template <class Node>
  Turn take_turn(const Node& node, bool stays) {
    Turn turn = Turn::kNothing;
    do {
      const std::uint64_t got = next<Node>();
      if (got == kOver || got == kEnded) {
        turn = Turn::kEnded;
        break;
      }
      if (got == kNothing) break;
      turn = Turn::kWorked;
      if constexpr (Node::kKind == StageKind::kSource) {
        if (!call_source(node)) turn = Turn::kEnded;
      } else {
        take(node, static_cast<std::uint32_t>(got >> 32) - kFirstInput, static_cast<std::uint32_t>(got));
      }
    } while (stays && turn == Turn::kWorked);
    if (working_since_ != 0) {
      busy_ns_ += Team::now_ns() - working_since_;
      working_since_ = 0;
    }
    if (turn == Turn::kEnded) {
      add_counts();
      leave(node);
    }
    return turn;
  }
  template <class Node>
  bool has_work(const Node&) const {
    if (run_.is_over()) return true;
    const StageView& stage = view();
    if constexpr (Node::kKind == StageKind::kSource) return is_drained() || has_room_in_any(stage);
    std::uint32_t n_ended = 0;
    for (std::uint32_t i = 0; i < stage.n_inputs; ++i) {
      const TopicView& topic = run_.topics[stage.inputs[i].topic];
      const std::uint64_t frame = stage.inputs[i].next->word.load_relaxed() / stage.parts;
      std::uint32_t items = 0;
      if (topic.sees(frame, items)) {
        if (has_room_for(stage, frame)) return true;
      } else if (tickets_[i] == kTicketEnded || topic.has_ended_before(frame)) {
        ++n_ended;
      }
    }
    return n_ended == stage.n_inputs;
  }

 private:
  static constexpr std::uint64_t kNoTicket = ~std::uint64_t{0}, kTicketEnded = kNoTicket - 1;
  static constexpr std::uint64_t kNothing = 0, kEnded = 1, kOver = 2, kCall = 3;
  static constexpr std::uint32_t kFarPolls = 16;  // so seldom it looks for the end
  static constexpr std::uint32_t kFewTeams = 16, kFramesALook = 4;
  static constexpr std::uint32_t kRestsALook = Team::kIsThread ? 1 : 8;
  static constexpr std::uint32_t kFirstInput = 1;  // in the upper half

  ESKER_HD const StageView& view() const { return run_.stages[number_]; }
  ESKER_HD void count(StageCount what, std::uint64_t n) const {
    (void)run_.states[number_]->counts[what].fetch_add_relaxed(n);
  }

  /// Once, at the end: a team keeps its counts, and looks at the clock only when it has nothing to do.
  ESKER_HD void add_counts() const {
    if (view().n_inputs == 1) (void)run_.states[number_]->starved_ns[0].fetch_add_relaxed(idle_ns_[0]);
    count(kBusyNs, busy_ns_ + idle_ns_[1]);
    count(kFrames, frames_);
    count(kItems, items_);
    count(kSkipped, skipped_);
  }

  // --- Taking. The leader calls.

  ESKER_HD std::uint64_t poll() {
    const StageView& stage = view();
    if (run_.is_over()) {
      end_idle(stage, 0, Team::now_ns());
      return kOver;
    }
    std::uint32_t n_ended = 0, last = 0;
    bool is_waiting = false;  // a frame, for room
    for (std::uint32_t i = 0; i < stage.n_inputs; ++i) {
      if (tickets_[i] == kTicketEnded) {
        ++n_ended;
        continue;
      }
      std::uint32_t items = 0;
      Poll found = Poll::kNothing;
      if constexpr (Team::kIsThread) {
        found = claim_published(stage, i, items);
      } else {
        found = poll_input(stage, i, items);
      }
      if (found == Poll::kEnded) {
        tickets_[i] = kTicketEnded;
        ++n_ended;
        last = i;
      } else if (found == Poll::kFrame) {
        claimed_ = tickets_[i];
        tickets_[i] = kNoTicket;
        begin_work(stage, i);
        return std::uint64_t{kFirstInput + i} << 32 | items;
      } else if (found == Poll::kBlocked) {
        is_waiting = true;
        last = i;
      }
    }
    if (n_ended == stage.n_inputs) {
      end_idle(stage, last, Team::now_ns());
      return kEnded;
    }
    rest(stage, is_waiting, last);
    return kNothing;
  }
  /// The time without work is over, or goes on for another cause. Input `i` has come, or has ended.
  ESKER_HD void end_idle(const StageView& stage, std::uint32_t i, std::uint64_t now) {
    if (idle_since_ == 0) return;
    const std::uint64_t ns = now - idle_since_;
    idle_since_ = 0;
    idle_ns_[is_idle_for_room_ ? 1 : 0] += ns;
    if constexpr (Team::kIsThread) {
      if (is_idle_for_room_) {
        (void)run_.states[number_]->blocked_ns[topic_with_room(stage)].fetch_add_relaxed(ns);
        return;
      }
    }
    if (stage.n_inputs > 1) (void)run_.states[number_]->starved_ns[i].fetch_add_relaxed(ns);
  }
  ESKER_HD void begin_work(const StageView& stage, std::uint32_t i) {
    if (idle_since_ != 0) {
      const std::uint64_t now = Team::now_ns();
      end_idle(stage, i, now);
      if (Team::kIsThread && working_since_ == 0) working_since_ = now;
    } else if (Team::kIsThread && working_since_ == 0) {
      working_since_ = Team::now_ns();
    }
    if constexpr (!Team::kIsThread) team_.has_worked();
  }
  enum class Poll { kNothing, kBlocked, kFrame, kEnded };
  ESKER_HD Poll poll_input(const StageView& stage, std::uint32_t i, std::uint32_t& items) {
    const SubscriptionView& input = stage.inputs[i];
    const TopicView& topic = run_.topics[input.topic];
    if (tickets_[i] == kNoTicket) {
      tickets_[i] = input.next->word.fetch_add_relaxed(1);
      has_room_ = false;
    }
    const std::uint64_t frame = tickets_[i] / stage.parts;
    if (input.is_far(frame)) {
      return ++far_polls_ % kFarPolls == 0 && topic.has_ended_before(frame) ? Poll::kEnded : Poll::kNothing;
    }
    // While it waits a map learns that its output has room, too: that may take a round trip over the bus.
    if (stage.maps_to != kNone && !has_room_) has_room_ = run_.topics[stage.maps_to].has_room(frame);
    // Many teams look before they acquire, for each other's caches (is_ready()); of few none pays the round
    // trip.
    if ((stage.teams <= kFewTeams || topic.was_published(frame)) && topic.sees(frame, items)) {
      input.has_seen(frame);
      return Poll::kFrame;
    }
    return topic.has_ended_before(frame) ? Poll::kEnded : Poll::kNothing;
  }
  /// There is nothing to do, or no room for what is done (`for_room`) since
  /// `input` has come.
  ESKER_HD void rest(const StageView& stage, bool for_room, std::uint32_t input) {
    const std::uint64_t now = Team::now_ns();
    if (idle_since_ == 0 || is_idle_for_room_ != for_room) {
      end_idle(stage, input, now);
      idle_since_ = now;
      is_idle_for_room_ = for_room;
    }
    if (stage.outputs != 0 && now - idle_since_ >= stage.flush_ns) flush_outputs(stage);
    // One team is enough: while it has something to do its loop has not ended. It reads words of both sides.
    if (stage.loop != kNone && index_ == 0 && ++rests_ % kRestsALook == 0)
      (void)run_.try_end_loop(stage.loop);
    if constexpr (!Team::kIsThread) {
      team_.idle(
          [&] {
            if (run_.is_over()) return true;
            for (std::uint32_t i = 0; i < stage.n_inputs; ++i) {
              if (tickets_[i] >= kTicketEnded) continue;
              std::uint32_t items = 0;
              const TopicView& topic = run_.topics[stage.inputs[i].topic];
              if (topic.sees(tickets_[i] / stage.parts, items)) return true;
              if (topic.has_ended_before(tickets_[i] / stage.parts)) return true;
            }
            return false;
          },
          stage.teams);
    }
  }

  // --- Of threads.

  bool is_drained() const { return run_.drain->word.load_relaxed() != 0; }
  template <class Node>
  std::uint64_t next() {
    if constexpr (Node::kKind != StageKind::kSource) {
      return poll();
    } else {
      const StageView& stage = view();
      if (run_.is_over() || is_drained()) {
        end_idle(stage, 0, Team::now_ns());
        return run_.is_over() ? kOver : kEnded;
      }
      if (!has_room_in_any(stage)) {
        rest(stage, true, 0);
        return kNothing;
      }
      begin_work(stage, 0);
      return kCall;
    }
  }
  /// The oldest frame that no team has, if it is published.
  Poll claim_published(const StageView& stage, std::uint32_t i, std::uint32_t& items) {
    const SubscriptionView& input = stage.inputs[i];
    const TopicView& topic = run_.topics[input.topic];
    std::uint64_t oldest = input.next->word.load_relaxed();
    const std::uint64_t frame = oldest / stage.parts;
    if (!topic.sees(frame, items)) return topic.has_ended_before(frame) ? Poll::kEnded : Poll::kNothing;
    if (!has_room_for(stage, frame)) return Poll::kBlocked;
    tickets_[i] = oldest;
    return input.next->word.compare_exchange_relaxed(oldest, oldest + 1) ? Poll::kFrame : Poll::kNothing;
  }
  /// A frame of this number would find room at once. Those that never wait do not look.
  bool has_room(const StageView& stage, std::uint32_t number, std::uint64_t frame) const {
    const TopicView& topic = run_.topics[number];
    if (topic.drops_from != nullptr || (stage.inside >> number & 1u) != 0) return true;
    return topic.is_in_loop == 0 ? topic.has_room(frame) : topic.has_room_outside(frame);
  }
  bool has_room_for(const StageView& stage, std::uint64_t frame) const {
    return stage.maps_to == kNone ? has_room_in_any(stage) : has_room(stage, stage.maps_to, frame);
  }
  bool has_room_in_any(const StageView& stage) const {
    for (std::uint32_t left = stage.outputs; left != 0; left &= left - 1) {
      const auto t = static_cast<std::uint32_t>(__builtin_ctz(left));
      const TopicView& topic = run_.topics[t];
      const std::uint64_t position = topic.tail->word.load_relaxed();
      if ((position & (topic.positions() - 1)) != 0 || has_room(stage, t, position >> topic.shift))
        return true;
    }
    return stage.outputs == 0;
  }
  /// The output for which a team has waited, of several the first one that has room now.
  std::uint32_t topic_with_room(const StageView& stage) const {
    if (stage.maps_to != kNone) return stage.maps_to;
    for (std::uint32_t left = stage.outputs; left != 0; left &= left - 1) {
      const auto t = static_cast<std::uint32_t>(__builtin_ctz(left));
      const TopicView& topic = run_.topics[t];
      if (has_room(stage, t, topic.tail->word.load_relaxed() >> topic.shift)) return t;
    }
    return static_cast<std::uint32_t>(__builtin_ctz(stage.outputs));
  }
  /// Until it has published a frame. False: its function says that there is no more.
  template <class Node>
  bool call_source(const Node& node) {
    const Input none{};
    const std::uint64_t before = frames_reserved();
    do {
      Stage<Team> self(team_, run_, number_, none);
      ++frames_;
      if (!node.function(self)) return false;
    } while (frames_reserved() == before && !run_.is_over() && !is_drained());
    return true;
  }
  std::uint64_t frames_reserved() const {
    std::uint64_t n = 0;
    for (std::uint32_t left = view().outputs; left != 0; left &= left - 1) {
      const TopicView& topic = run_.topics[__builtin_ctz(left)];
      n += topic.tail->word.load_relaxed() >> topic.shift;
    }
    return n;
  }
  ESKER_HD void flush_outputs(const StageView& stage) const {
    for (std::uint32_t t = 0; t < run_.n_topics; ++t) {
      if ((stage.outputs >> t & 1u) != 0) run_.topics[t].flush();
    }
    team_.ring();
  }

  // --- Moving. The leader calls, when the team holds no ticket.

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
  /// Where a quarter of the stage's teams waits for input, or the next one would for room: to a stage with
  /// room for which an eighth as many frames wait as it has teams: that one. kNone: it stays. kGone: neither
  /// has a place for it, since both have ended.
  ESKER_HD std::uint32_t move() const {
    StageState& mine = *run_.states[number_];
    const std::uint64_t teams = mine.active.word.load_relaxed();
    if (teams < 2 || (!is_blocked(view()) && !has_idle(view(), teams / 4 + 1))) return kNone;
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
  /// Adds to the number of a stage's teams, if it is `least` or more.
  ESKER_HD static bool try_change(PolledWord& active, std::uint64_t least, std::uint64_t change) {
    std::uint64_t n = active.word.load_relaxed();
    while (n >= least) {
      if (active.word.compare_exchange_acq_rel(n, n + change)) return true;  // [ended]
    }
    return false;
  }

  // --- Working. All lanes call.

  template <class Node>
  ESKER_HD void take(const Node& node, std::uint32_t i, std::uint32_t items) {
    using Item = typename Node::Item;
    const StageView& stage = view();
    const SubscriptionView& input = stage.inputs[i];
    const TopicView& topic = run_.topics[input.topic];
    const std::uint64_t ticket = team_.of_leader([&] { return claimed_; });
    const std::uint64_t number = ticket / stage.parts;
    const FrameWords& words = topic.words[topic.slot_of(number)];
    const Input from{number, words.tag, words.born_ns};
    const bool has_failed = (items & TopicView::kFailedBit) != 0;
    const Frame<const Item> frame{stage.staging == nullptr ? topic.items<const Item>(number)
                                                           : staged(stage, topic.items<const Item>(number),
                                                                    items & ~TopicView::kFailedBit),
                                  items & ~TopicView::kFailedBit,
                                  topic.capacity,
                                  number,
                                  from.tag,
                                  from.born_ns};
    if constexpr (Node::kKind == StageKind::kMap) {
      if (!map(node, input, topic, ticket, frame, from, has_failed)) return;
    } else {
      if (!has_failed) {
        Stage<Team> self(team_, run_, number_, from);
        if constexpr (Node::kKind == StageKind::kFrames) {
          node.function(self, frame);
        } else {
          for (std::uint32_t k = team_.lane(); k < frame.count; k += team_.lanes())
            node.function(self, frame.data[k]);
        }
      }
      team_.leader([&] { finish(input, topic, number); });
    }
    ++frames_;
    items_ += frame.count;
    skipped_ += has_failed ? 1 : 0;
    if constexpr (Team::kIsThread) {
      if (stage.outputs == 0 && stage.maps_to == kNone && frame.born_ns != 0)
        add_latency(Team::now_ns() - frame.born_ns);
    }
  }
  /// A copy of the frame, in the GPU's memory.
  template <class Item>
  ESKER_HD const Item* staged(const StageView& stage, const Item* from, std::uint32_t items) const {
    struct alignas(16) Part {
      std::uint64_t words[2];
    };
    auto* const to = reinterpret_cast<Part*>(stage.staging + row_ * stage.staging_stride);
    const auto n =
        static_cast<std::uint32_t>((std::uint64_t{items} * sizeof(Item) + sizeof(Part) - 1) / sizeof(Part));
    for (std::uint32_t i = team_.lane(); i < n; i += team_.lanes())
      to[i] = reinterpret_cast<const Part*>(from)[i];
    team_.sync();
    return reinterpret_cast<const Item*>(to);
  }
  void add_latency(std::uint64_t ns) const {
    StageState& state = *run_.states[number_];
    (void)state.latencies[LatencyBuckets::of(ns)].fetch_add_relaxed(1);
    std::uint64_t longest = state.longest_ns.load_relaxed();
    while (longest < ns && !state.longest_ns.compare_exchange_relaxed(longest, ns)) {
    }
  }
  /// The leader calls, after the team's last read.
  ESKER_HD void finish(const SubscriptionView& input, const TopicView& topic, std::uint64_t number) const {
    if constexpr (Team::kIsThread) {
      topic.release(input.index, number);
      (void)input.done->word.fetch_add_acq_rel(1);
      if (topic.rings_release != 0) team_.ring();
    } else {
      fence_system();
      finish_after_fence(input, topic, number);
    }
  }
  ESKER_HD void finish_after_fence(const SubscriptionView& input, const TopicView& topic,
                                   std::uint64_t number) const {
    topic.release_after_fence(input.index, number);
    (void)input.done->word.fetch_add_relaxed(1);  // after the fence, too
  }

  /// False: the run is over.
  template <class Node>
  ESKER_HD bool map(const Node& node, const SubscriptionView& input, const TopicView& topic,
                    std::uint64_t ticket, const Frame<const typename Node::Item>& frame, const Input& from,
                    bool was_failed) {
    using Out = typename Node::OutItem;
    const StageView& stage = view();
    const TopicView& to = run_.topics[stage.maps_to];
    Stage<Team> self(team_, run_, number_, from);
    const auto await_room = [&] {
      return has_room_ || self.wait_for_room(stage.maps_to, frame.number) ? 1u : 0u;
    };
    if (team_.of_leader(await_room) == 0) return false;
    Frame<Out> out{to.items<Out>(frame.number), 0, to.capacity, frame.number, frame.tag, frame.born_ns};
    out.count = frame.count < out.capacity ? frame.count : out.capacity;
    if (stage.parts > 1) {
      // A part of the items, from a multiple of 64 on, of both frames.
      const auto part = static_cast<std::uint32_t>(ticket % stage.parts);
      const std::uint32_t each = ((out.count + stage.parts - 1) / stage.parts + 63) / 64 * 64;
      const std::uint32_t first = part * each < out.count ? part * each : out.count;
      const std::uint32_t n = out.count - first < each ? out.count - first : each;
      if (!was_failed) {
        const Frame<const typename Node::Item> some{frame.data + first, n,         n,
                                                    frame.number,       frame.tag, frame.born_ns};
        Frame<Out> some_out{out.data + first, n, n, out.number, out.tag, out.born_ns};
        node.function(self, some, some_out);
      }
    } else if (!was_failed) {
      node.function(self, frame, out);
    }
    const bool has_failed = was_failed || team_.any(self.has_failed());
    team_.leader([&] {
      if (has_failed) to.notes[to.slot_of(frame.number)].voids.store_relaxed(1);  // of a map: it has failed
      if (!to.add_filled_part(frame.number, stage.parts)) return;
      SlotNotes& notes = to.notes[to.slot_of(frame.number)];
      const bool failed = notes.voids.load_relaxed() != 0;
      if (failed) notes.voids.store_relaxed(0);
      if constexpr (Team::kIsThread) {
        (void)to.tail->word.fetch_add_acq_rel(to.positions());
        to.publish(frame.number, out.count, out.tag, out.born_ns, failed);
        if (to.rings_publish != 0) team_.ring();
        finish(input, topic, frame.number);
      } else {
        (void)to.tail->word.fetch_add_relaxed(to.positions());
        to.describe(frame.number, out.tag, out.born_ns);
        fence_system();
        to.publish_after_fence(frame.number, out.count, failed);
        finish_after_fence(input, topic, frame.number);
      }
    });
    return true;
  }

  // --- Leaving. The last team ends the stage.

  template <class Node>
  ESKER_HD void leave(const Node& node) {
    team_.leader([&] {
      if (run_.is_over()) return;
      StageState& state = *run_.states[number_];
      if (state.active.word.fetch_add_acq_rel(~std::uint64_t{0}) != 1) return;  // [ended]
      if constexpr (Node::kHasEnd) {
        const Input none{};
        OneLane<Team> alone(team_);
        Stage<OneLane<Team>> self(alone, run_, number_, none);
        node.at_end(self);
      }
      close_outputs();
      team_.ring();
    });
  }
  ESKER_HD void close_outputs() const {
    const StageView& stage = view();
    const std::uint32_t outputs = stage.outputs | (stage.maps_to != kNone ? 1u << stage.maps_to : 0u);
    for (std::uint32_t t = 0; t < run_.n_topics; ++t) {
      if ((outputs >> t & 1u) == 0) continue;
      const TopicView& topic = run_.topics[t];
      if (topic.is_in_loop != 0 && stage.loop != kNone && run_.is_inside(t, stage.loop))
        continue;  // it has ended
      topic.flush();
      if (topic.is_in_loop != 0) {
        (void)run_.outside_producers[t]->word.fetch_add_acq_rel(~std::uint64_t{0});
      } else if (run_.open_producers[t]->word.fetch_add_acq_rel(~std::uint64_t{0}) == 1) {
        topic.flush();
        topic.close(topic.tail->word.load_acquire() >> topic.shift);
      }
    }
  }

  Team& team_;
  const RunView& run_;
  const std::uint32_t index_, row_;
  std::uint32_t number_ = 0;
  std::uint64_t tickets_[kMostInputs];
  std::uint64_t claimed_ = 0;
  std::uint32_t far_polls_ = 0, rests_ = 0;
  bool has_room_ = false;            // of a map: for the frame that it has claimed
  std::uint64_t idle_since_ = 0;     // 0: it has something to do
  std::uint64_t working_since_ = 0;  // of a thread, in its turn
  bool is_idle_for_room_ = false;
  std::uint64_t idle_ns_[2] = {0, 0};  // for want of input, and of room
  std::uint64_t busy_ns_ = 0, frames_ = 0, items_ = 0, skipped_ = 0;
};

ESKER_PASS_END

}  // namespace esker::pipeline::detail
