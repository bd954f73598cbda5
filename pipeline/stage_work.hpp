// What a team does for its stage: calls its function for the frames that it gets, and ends the stage.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include <esker/device/platform.hpp>
#include <esker/pipeline/frame.hpp>
#include <esker/pipeline/node.hpp>
#include <esker/pipeline/one_lane.hpp>
#include <esker/pipeline/run_view.hpp>
#include <esker/pipeline/stage.hpp>

namespace esker::pipeline::detail {

ESKER_PASS_BEGIN

/// Contract All lanes of the team call, together. How a team gets frames is GroupServer's and ThreadServer's.
/// Progress A map whose output has no room for its frame waits for it, unless has_room_ says that it has.
template <class Team>
class StageWork {
 protected:
  /// `row`: of the stage's staging.
  ESKER_HD StageWork(Team& team, const RunView& run, std::uint32_t number, std::uint32_t row)
      : team_{team}, run_{run}, number_{number}, row_{row} {}

  ESKER_HD const StageView& view() const { return run_.stages[number_]; }
  ESKER_HD StageState& state() const { return *run_.states[number_]; }

  /// A frame of input `i`, which the team has claimed: `items` with TopicView::kFailedBit. `from` is what its
  /// words say: one lane has read them, for the others.
  template <class Node>
  ESKER_HD void take(const Node& node, std::uint32_t i, std::uint64_t ticket, std::uint32_t items,
                     const Input& from) {
    using Item = typename Node::Item;
    const StageView& stage = view();
    const SubscriptionView& input = stage.inputs[i];
    const TopicView& topic = run_.topics[input.topic];
    const std::uint64_t number = from.number;
    const bool has_failed = (items & TopicView::kFailedBit) != 0;
    const bool is_copied = is_copied_first(stage, topic);
    const Frame<const Item> frame{
        !is_copied ? topic.items<const Item>(number)
                   : staged(stage, topic.items<const Item>(number), items & ~TopicView::kFailedBit),
        items & ~TopicView::kFailedBit,
        topic.capacity,
        number,
        from.tag,
        from.born_ns};
    if constexpr (Team::kIsThread) {
      if (is_copied) free_slot(input, topic, number);
    }
    if constexpr (Node::kKind == StageKind::kMap) {
      if (!map(node, input, topic, ticket, frame, from, has_failed)) return;
    } else {
      if (!has_failed) {
        Stage<Team, typename ElectionOf<decltype(node.function)>::Type> self(team_, run_, number_, from);
        if constexpr (Node::kKind == StageKind::kFrames) {
          node.function(self, frame);
        } else {
          for (std::uint32_t k = team_.lane(); k < frame.count; k += team_.lanes())
            node.function(self, frame.data[k]);
        }
      }
      team_.leader([&] {
        finish(input, topic, number);
        flush_old();
      });
    }
    ++frames_;
    if (ticket % stage.parts == 0) items_ += frame.count;
    skipped_ += has_failed ? 1 : 0;
    if constexpr (Team::kIsThread) {
      if (stage.outputs == 0 && stage.maps_to == kNone && frame.born_ns != 0)
        add_latency(Team::now_ns() - frame.born_ns);
    }
  }
  /// The stage has ended for this team: for the last one it ends.
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

  /// What goes round a loop is flushed by those inside it: flushed by who waits for room there, too, each of
  /// its items might take a frame.
  ESKER_HD void flush_outputs() const {
    flush_each([&](std::uint32_t t, const TopicView& topic) {
      return (topic.is_in_loop == 0 || (view().inside >> t & 1u) != 0) && topic.flush();
    });
  }
  /// Of a GPU, while there is something to do: what is old, but in a loop, where each flush takes a frame and
  /// one without room ends the run. What threads emit the host's monitor flushes.
  ESKER_HD void flush_old() {
    if (Team::kIsThread || view().outputs == 0) return;
    const std::uint64_t now_ns = Team::now_ns();
    if (now_ns - looked_ns_ < kFlushLookNs) return;
    looked_ns_ = now_ns;
    flush_each([&](std::uint32_t, const TopicView& topic) {
      return topic.is_in_loop == 0 && topic.flush_old(now_ns);
    });
  }
  /// Once, by the leader: a team keeps its counts.
  ESKER_HD void add_counts(std::uint64_t busy_ns) const {
    count(kBusyNs, busy_ns);
    count(kFrames, frames_);
    count(kItems, items_);
    count(kSkipped, skipped_);
  }

  Team& team_;
  const RunView& run_;
  const std::uint32_t number_, row_;
  bool has_room_ = false;  // the leader's, of a map: for the frame that it has claimed
  std::uint64_t frames_ = 0;

 private:
  static constexpr std::uint64_t kFlushLookNs = 50'000;

  template <class Flush>
  ESKER_HD void flush_each(const Flush& flush) const {
    bool has_flushed = false;
    for (std::uint32_t t = 0; t < run_.n_topics; ++t) {
      if ((view().outputs >> t & 1u) != 0) has_flushed = flush(t, run_.topics[t]) || has_flushed;
    }
    if (has_flushed) team_.ring();
  }
  ESKER_HD void count(StageCount what, std::uint64_t n) const {
    (void)state().counts[what].fetch_add_relaxed(n);
  }

  /// A copy of the frame, on a GPU in its memory.
  template <class Item>
  ESKER_HD const Item* staged(const StageView& stage, const Item* from, std::uint32_t items) const {
    std::byte* const to = stage.staging + row_ * stage.staging_stride;
    if constexpr (Team::kIsThread) {
      std::memcpy(to, from, items * sizeof(Item));
    } else {
      struct alignas(16) Part {
        std::uint64_t words[2];
      };
      const auto n =
          static_cast<std::uint32_t>((std::uint64_t{items} * sizeof(Item) + sizeof(Part) - 1) / sizeof(Part));
      for (std::uint32_t i = team_.lane(); i < n; i += team_.lanes())
        reinterpret_cast<Part*>(to)[i] = reinterpret_cast<const Part*>(from)[i];
      team_.sync();
    }
    return reinterpret_cast<const Item*>(to);
  }
  void add_latency(std::uint64_t ns) const {
    StageState& state = *run_.states[number_];
    (void)state.latencies[LatencyBuckets::of(ns)].fetch_add_relaxed(1);
    std::uint64_t longest = state.longest_ns.load_relaxed();
    while (longest < ns && !state.longest_ns.compare_exchange_relaxed(longest, ns)) {
    }
  }
  /// The team works on a copy of the frame: on a GPU, of the host's that are staged; on the host, of those
  /// that producers would rather drop than wait for.
  ESKER_HD static bool is_copied_first(const StageView& stage, const TopicView& topic) {
    if constexpr (Team::kIsThread) return topic.drops_from != nullptr;
    return stage.staging != nullptr;
  }
  void free_slot(const SubscriptionView& input, const TopicView& topic, std::uint64_t number) const {
    topic.release(input.index, number);
    if (topic.rings_release != 0) team_.ring();
  }
  /// The leader calls, after the team's last read.
  ESKER_HD void finish(const SubscriptionView& input, const TopicView& topic, std::uint64_t number) const {
    if constexpr (Team::kIsThread) {
      if (!is_copied_first(view(), topic)) free_slot(input, topic, number);
      (void)input.done->word.fetch_add_acq_rel(1);
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
    Stage<Team, typename ElectionOf<decltype(node.function)>::Type> self(team_, run_, number_, from);
    // Of the parts of a frame the first one waits for room, and opens the frame for the others. Threads all
    // look: that costs them nothing.
    const bool is_first = Team::kIsThread || ticket % stage.parts == 0;
    const auto await_room = [&] {
      if (!is_first) return self.wait_until_open(stage.maps_to, frame.number) ? 1u : 0u;
      if (!has_room_ && !self.wait_for_room(stage.maps_to, frame.number)) return 0u;
      if (stage.parts > 1 && !Team::kIsThread) to.open(frame.number, frame.born_ns, 0);
      return 1u;
    };
    if (team_.of_leader(await_room) == 0) return false;
    Frame<Out> out{to.items<Out>(frame.number), 0, to.capacity, frame.number, frame.tag, frame.born_ns};
    out.count = frame.count < out.capacity ? frame.count : out.capacity;
    if (stage.parts > 1) {
      // A part of the items, from a multiple of 64 on, of both frames.
      const std::uint64_t part = ticket % stage.parts;
      const std::uint32_t each = ((out.count - 1) / stage.parts + 64) / 64 * 64;
      const std::uint32_t first =
          part * each < out.count ? static_cast<std::uint32_t>(part * each) : out.count;
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
      if (!self.may_have(stage.maps_to, out.count)) return;
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

  std::uint64_t items_ = 0, skipped_ = 0;
  std::uint64_t looked_ns_ = 0;  // the leader's: when it last looked for items that have waited too long
};

ESKER_PASS_END

}  // namespace esker::pipeline::detail
