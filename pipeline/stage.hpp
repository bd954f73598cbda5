// What a stage's function is given: its place in its team, and its ways out.
#pragma once

#include <cstdint>
#include <type_traits>

#include <esker/device/lane_group.hpp>
#include <esker/device/platform.hpp>
#include <esker/pipeline/election.hpp>
#include <esker/pipeline/frame.hpp>
#include <esker/pipeline/run_view.hpp>

namespace esker::pipeline {

namespace detail {
ESKER_PASS_BEGIN
template <class Team>
class StageWork;
ESKER_PASS_END
/// A source has no input: number and tag are 0.
struct Input {
  std::uint64_t number, tag, born_ns;
};

}  // namespace detail

ESKER_PASS_BEGIN

/// Contract One call's of a stage's function, in all lanes of a team. emit(), fail() and fail_frame()
///          may be called by any lane in any branch; sync(), open() and publish() by all lanes of the
///          team, together.
/// Progress emit() and open() wait until the topic has room, which its subscribers make: they do not
///          depend on this team, unless both are in one loop, where a frame that finds no room ends the
///          run. When the run is over, they return at once, and what was emitted is dropped.
/// `Election`: how lanes that emit at a time share a topic's counter (pipeline/election.hpp).
template <class Team, class Election = PerConvergedWave>
class Stage {
 public:
  ESKER_HD Stage(Team& team, const detail::RunView& run, std::uint32_t number, const detail::Input& input)
      : team_{team}, run_{run}, number_{number}, input_{input} {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// This lane's place in its team: of a GPU's group; 0 of 1 on the host.
  ESKER_HD std::uint32_t lane() const { return team_.lane(); }
  ESKER_HD std::uint32_t lanes() const { return team_.lanes(); }
  /// All lanes of the team have come here. What they did before happens before what they do next.
  ESKER_HD void sync() const { team_.sync(); }
  /// What `function` returns in one lane, as 64 bits, for all of them. It is a sync(), too.
  template <class Function>
  ESKER_HD std::uint64_t of_leader(Function&& function) const {
    return team_.of_leader(function);
  }
  /// The run has been stopped or has failed: long functions may look, and return.
  ESKER_HD bool stop_requested() const { return run_.is_over(); }

  /// Ends the run: run() throws an Error with this code and these values. The function should return.
  ESKER_HD void fail(std::int32_t code, std::uint64_t a = 0, std::uint64_t b = 0) const {
    run_.end(detail::Outcome::kFailed, number_, code, a, b);
  }
  /// Marks the frame that the function works on: it is reported, and no later stage gets what map() makes of
  /// it. One lane calls.
  ESKER_HD void fail_frame(std::int32_t code, std::uint64_t a = 0, std::uint64_t b = 0) {
    has_failed_ = true;
    run_.add_failure(number_, code, input_.number, input_.tag, a, b);
  }
  ESKER_HD bool has_failed() const { return has_failed_; }

  /// One item into a topic that the stage names as an output. Items go together, in frames that are full, or
  /// when flush_after has passed.
  template <class T>
  ESKER_ALWAYS_INLINE ESKER_HD void emit(const Topic<T>& to, const std::type_identity_t<T>& item) {
    if (!may_publish_into(to)) return;
    auto together = lanes_together();
    bool is_left = true;
    while (together.any(is_left)) {
      const std::uint32_t topic = together.of_first(is_left, to.number);
      bool active = is_left && to.number == topic;
      if constexpr (std::is_same_v<Election, PerLane>) {  // one after the other, where they run in lock step
        const Position among = together.position_among(active);
        active = active && among.index == 0;
      }
      const bool is_done = emit_into(together, topic, item, active);
      is_left = is_left && !is_done;
    }
  }

  /// A frame to be filled, of `capacity` items; data is null when the run is over.
  template <class T>
  ESKER_HD Frame<T> open(const Topic<T>& to) {
    const std::uint64_t frame =
        team_.of_leader([&] { return may_publish_into(to) ? reserve_frame(to.number) : kNoFrame; });
    if (frame == kNoFrame) return {};
    const detail::TopicView& topic = run_.topics[to.number];
    return {topic.items<T>(frame),
            0,
            topic.capacity,
            frame,
            input_.tag,
            input_.born_ns != 0 ? input_.born_ns : Team::birth_ns()};
  }
  /// `frame.count` items of it are there.
  template <class T>
  ESKER_HD void publish(const Topic<T>& to, const Frame<T>& frame) {
    if (frame.data == nullptr) return;
    team_.leader([&] {
      if (!may_publish_into(to) || !may_have(to.number, frame.count)) return;
      const detail::TopicView& topic = run_.topics[to.number];
      (void)topic.add_filled(frame.number, topic.positions());
      topic.publish(frame.number, frame.count, frame.tag, frame.born_ns, false);
      if (topic.rings_publish != 0) team_.ring();
    });
  }

 private:
  template <class>
  friend class detail::StageWork;
  static constexpr std::uint64_t kNoFrame = ~std::uint64_t{0};

  ESKER_ALWAYS_INLINE ESKER_HD auto lanes_together() const {
    if constexpr (std::is_same_v<Election, PerLane>) {
      return team_.lockstep();
    } else {
      return Team::converged();
    }
  }
  /// Of some lanes one: as many positions of the topic, whichever frames they are in.
  ESKER_HD std::uint64_t reserve(std::uint32_t number, std::uint32_t positions) const {
    const auto add = [&](std::uint32_t n) { return run_.topics[number].tail->word.fetch_add_relaxed(n); };
    if constexpr (std::is_same_v<Election, StatusArray>) {
      return team_.reserve_by_status(number, positions, add);
    } else {
      return add(positions);
    }
  }
  template <class T>
  ESKER_HD bool may_publish_into(const Topic<T>& to) const {
    const std::uint32_t topic = to.number;
    if (to.pipeline != run_.pipeline) {
      run_.end(detail::Outcome::kMisuse, number_, detail::kOtherPipeline, topic, 0);
      return false;
    }
    if ((run_.stages[number_].outputs >> topic & 1u) == 0) {
      run_.end(detail::Outcome::kMisuse, number_, detail::kNotNamed, topic, 0);
      return false;
    }
    if constexpr (requires { Team::kIsAtEnd; }) {
      if ((run_.stages[number_].inside >> topic & 1u) != 0) {
        run_.end(detail::Outcome::kMisuse, number_, detail::kLoopHasEnded, topic, 0);
        return false;
      }
    }
    return true;
  }
  /// A frame of it has room for so many items.
  ESKER_HD bool may_have(std::uint32_t topic, std::uint32_t items) const {
    if (items <= run_.topics[topic].capacity) return true;
    run_.end(detail::Outcome::kMisuse, number_, detail::kTooManyItems, topic, items);
    return false;
  }
  /// The topic is in a loop, and this stage is not. It waits for room before it takes a position, not after:
  /// a stage of the loop may get the next one of the same frame, and would wait for a stage that waits for
  /// it.
  ESKER_HD bool feeds_loop(std::uint32_t topic) const {
    return run_.topics[topic].is_in_loop != 0 && (run_.stages[number_].inside >> topic & 1u) == 0;
  }
  /// Of a stage that feeds a loop, one lane: up to `most` positions from `first` on, of a frame that has
  /// room. What a stage inside has opened takes no more from outside than there is room for: with each of its
  /// items it may open another. 0: the run is over.
  ESKER_HD std::uint32_t reserve_outside(std::uint32_t number, std::uint32_t most,
                                         std::uint64_t& first) const {
    const detail::TopicView& topic = run_.topics[number];
    while (true) {
      const auto may_go = [&] {
        first = topic.tail->word.load_relaxed();
        return topic.has_room_outside(first >> topic.shift);
      };
      if (!wait_until(number, may_go)) return 0;
      const std::uint64_t left = topic.positions() - (first & (topic.positions() - 1));
      const std::uint32_t n = most < left ? most : static_cast<std::uint32_t>(left);
      std::uint64_t position = first;
      if (topic.tail->word.compare_exchange_relaxed(position, position + n)) return n;
    }
  }
  /// The slot of the frame is free. False: the run is over.
  ESKER_HD bool wait_for_room(std::uint32_t number, std::uint64_t frame) const {
    const detail::TopicView& topic = run_.topics[number];
    if (topic.is_in_loop != 0) {
      if (feeds_loop(number)) return wait_until(number, [&] { return topic.has_room_outside(frame); });
      if (topic.has_room(frame)) return true;
      run_.end(detail::Outcome::kFull, number_, 0, number, 0);
      return false;
    }
    if constexpr (Team::kIsThread) {
      if (topic.drops_from != nullptr) {
        return wait_until(number, [&] {
          if (!topic.has_room(frame)) topic.drop_oldest(frame);
          return topic.has_room(frame);
        });
      }
    }
    std::uint32_t polls = 0;
    return wait_until(number, [&] { return topic.finds_room(frame, polls++); });
  }
  /// Somebody else waits for room, and opens the frame.
  ESKER_HD bool wait_until_open(std::uint32_t number, std::uint64_t frame) const {
    return wait_until(number, [&] { return run_.topics[number].is_open(frame); });
  }
  template <class Ready>
  ESKER_HD bool wait_until(std::uint32_t topic, const Ready& ready) const {
    if (ready()) return true;
    const std::uint64_t began = Team::now_ns();
    const bool is_ready = team_.wait(ready, [&] { return run_.is_over(); });
    (void)run_.states[number_]->blocked_ns[topic].fetch_add_relaxed(Team::now_ns() - began);
    return is_ready;
  }
  /// One lane. All positions of a frame; what has been emitted before goes in a frame of its own.
  ESKER_HD std::uint64_t reserve_frame(std::uint32_t number) const {
    const detail::TopicView& topic = run_.topics[number];
    while (true) {
      std::uint64_t position = topic.tail->word.load_relaxed();
      const std::uint64_t frame = position >> topic.shift;
      if ((position & (topic.positions() - 1)) != 0) {
        // What goes round a loop is flushed by those inside it, when they are idle: they may sleep.
        if (feeds_loop(number)) {
          team_.ring();
        } else {
          topic.flush();
        }
        const auto is_gone = [&] {  // or whoever opens it waits for room
          return topic.tail->word.load_relaxed() >> topic.shift != frame ||
                 (!feeds_loop(number) && topic.is_open(frame));
        };
        if (!wait_until(number, is_gone)) return kNoFrame;
        continue;
      }
      if (feeds_loop(number) && !wait_for_room(number, frame)) return kNoFrame;
      if (!topic.tail->word.compare_exchange_relaxed(position, position + topic.positions())) continue;
      return wait_for_room(number, frame) ? frame : kNoFrame;
    }
  }

  /// Lanes that are here together, and of which the active ones emit into one topic. True: this one has, or
  /// is to drop its item.
  template <class View, class T>
  ESKER_ALWAYS_INLINE ESKER_HD bool emit_into(View& together, std::uint32_t number, const T& item,
                                              bool active) {
    const detail::TopicView& topic = run_.topics[number];
    const Position mine = together.position_among(active);
    std::uint64_t first = 0;
    if (feeds_loop(number)) {
      std::uint32_t n = 0;
      if (active && mine.index == 0) n = reserve_outside(number, mine.total, first);
      n = together.of_first(active, n);
      if (n == 0) return active;
      active = active && mine.index < n;
    } else if (active && mine.index == 0) {
      first = reserve(number, mine.total);
    }
    const std::uint64_t position = together.of_first(active, first) + mine.index;
    const std::uint64_t frame = position >> topic.shift, place = position & (topic.positions() - 1);
    // Frame by frame, the oldest first: it may have to be published before the next one has room.
    bool is_left = active;
    while (together.any(is_left)) {
      const std::uint64_t chosen = together.of_first(is_left, frame);
      const bool is_mine = is_left && frame == chosen;
      const Position among = together.position_among(is_mine);
      std::uint32_t ready = 0;
      if (is_mine && among.index == 0) ready = make_ready(number, frame, place) ? 1 : 0;
      ready = together.of_first(is_mine, ready);
      if (ready != 0 && is_mine) topic.items<T>(frame)[place] = item;
      together.sync();  // all of them have written
      if (ready != 0 && is_mine && among.index == 0 && topic.add_filled(frame, among.total)) {
        topic.publish_emitted(frame);
        if (topic.rings_publish != 0) team_.ring();
      }
      is_left = is_left && !is_mine;
    }
    return active;
  }
  /// For whoever has the first of some lanes' places in a frame. False: the run is over.
  ESKER_HD bool make_ready(std::uint32_t number, std::uint64_t frame, std::uint64_t place) const {
    const detail::TopicView& topic = run_.topics[number];
    if (place != 0) return wait_until_open(number, frame);
    if (!wait_for_room(number, frame)) return false;
    topic.open(frame, input_.born_ns != 0 ? input_.born_ns : Team::birth_ns(),
               Team::kIsThread ? 0 : Team::now_ns());
    return true;
  }

  Team& team_;
  const detail::RunView& run_;
  const std::uint32_t number_;
  const detail::Input& input_;
  bool has_failed_ = false;
};

ESKER_PASS_END

}  // namespace esker::pipeline
