// What a node's function is given: it spawns elements into channels, or fails.
#pragma once

#include <cstdint>
#include <type_traits>

#include <esker/device/platform.hpp>
#include <esker/tasks/graph_state.hpp>
#include <esker/tasks/lanes.hpp>
#include <esker/tasks/level.hpp>

namespace esker::tasks {

ESKER_PASS_BEGIN

/// Contract One element's, for the time of one call of its channel's function. What the function writes to
///          memory can be read by what it spawns afterwards.
class GraphTask {
  using Lanes = detail::DomainLanes;

 public:
  /// `into` has a bit for each channel of `graph` that it may spawn into. `number` in its batch.
  ESKER_HD GraphTask(const detail::GraphPlace& place, std::uint32_t channel, std::uint32_t graph,
                     std::uint32_t into, std::uint32_t number)
      : place_{place}, channel_{channel}, graph_{graph}, into_{into}, number_{number} {}
  GraphTask(const GraphTask&) = delete;
  GraphTask& operator=(const GraphTask&) = delete;

  /// The channel's function runs for this element, at some time and on some lane. The node has named the
  /// channel: node(...).into(...); else the run ends with a TaskError that names both.
  template <class T>
  ESKER_ALWAYS_INLINE ESKER_HD void spawn(const GraphChannel<T>& to,
                                          const std::type_identity_t<T>& element) const {
    if (!may_spawn_into(to)) return;
    by_channel(to.number, [&](auto& together, std::uint32_t number, bool active) {
      detail::OwnChannel& own = place_.own(number);
      const Position mine = together.position_among(active);
      std::uint32_t first = 0;
      if (active && mine.index == 0) first = add_own(own.count, mine.total);
      const std::uint32_t i = together.of_first(active, first) + mine.index;
      const bool is_over = active && i >= place_.buffer;
      if (active && !is_over) detail::store_columns(place_.buffer_of(own) + i, place_.buffer, element);
      if (together.any(is_over)) overflow(together, number, element, is_over);
    });
  }
  /// The host reads it after the run. When the output is full the run ends with the reason.
  template <class T>
  ESKER_ALWAYS_INLINE ESKER_HD void spawn(const GraphOutput<T>& to,
                                          const std::type_identity_t<T>& element) const {
    if (!may_spawn_into(to)) return;
    by_channel(to.number, [&](auto& together, std::uint32_t number, bool active) {
      detail::ChannelState& output = place_.channel(number);
      const Position mine = together.position_among(active);
      std::uint64_t first = 0;
      if (active && mine.index == 0) first = output.next.fetch_add_relaxed(mine.total);
      const std::uint64_t at = together.of_first(active, first) + mine.index;
      if (!active) return;
      if (at < output.stack_capacity) {
        reinterpret_cast<T*>(output.stacks)[at] = element;
      } else {
        end(detail::Outcome::kFull, 0, number, 0);
      }
    });
  }

  /// Ends the run: run() throws an Error with this code and these values. The function should return.
  ESKER_HD void fail(std::int32_t code, std::uint64_t a = 0, std::uint64_t b = 0) const {
    end(detail::Outcome::kFailed, code, a, b);
  }
  /// Somebody has ended the run, or wants to: long functions may look, and return.
  ESKER_HD bool stop_requested() const { return place_.state->has_ended_or_should(); }
  /// Adds to the run's sum (GraphReport::sum). Cheaper than an atomic in memory: a domain keeps its part at
  /// hand.
  ESKER_HD void add(std::uint64_t value) const { place_.sums()[Lanes::sum_of(number_)] += value; }

 private:
  template <class Channel>
  ESKER_HD bool may_spawn_into(const Channel& to) const {
    const bool is_ours = to.graph == graph_;
    if (is_ours && (into_ >> to.number & 1u) != 0) return true;
    end(detail::Outcome::kMisuse, is_ours ? 0 : 1, to.number, 0);
    return false;
  }
  ESKER_HD void end(detail::Outcome how, std::int32_t code, std::uint64_t a, std::uint64_t b) const {
    place_.state->end(how, channel_, code, a, b);
  }

  /// Calls function(view, channel, active) in all lanes that are here, once for each channel that some of
  /// them name: those are active.
  template <class Function>
  ESKER_ALWAYS_INLINE ESKER_HD static void by_channel(std::uint32_t number, const Function& function) {
    auto together = Lanes::converged();
    bool is_left = true;
    while (together.any(is_left)) {
      const std::uint32_t chosen = together.of_first(is_left, number);
      const bool active = is_left && number == chosen;
      function(together, chosen, active);
      is_left = is_left && !active;
    }
  }

  /// True for lanes whose elements had no place: no element of the ring is free, or about to be.
  template <class View, class Store>
  ESKER_HD bool put_all(View& together, const detail::Ring& ring, bool is_left, const Store& store) const {
    while (true) {
      const bool got = place_.put(together, ring, is_left, store);
      is_left = is_left && !got;
      if (!together.any(is_left && ring.was_available() != 0)) return is_left;
      Lanes::Pause::let_others_run();
    }
  }
  /// The domain's own buffer is full: into the channel, or where full channels' elements go.
  template <class View, class T>
  ESKER_HD void overflow(View& together, std::uint32_t to, const T& element, bool is_over) const {
    detail::ChannelState& channel = place_.channel(to);
    const auto store = [&](std::uint32_t* at) { detail::store_columns(at, 1, element); };
    bool is_left = is_over;
    if (channel.when_full == WhenFull::kFail) {
      is_left = put_all(together, channel.ring, is_over, store);
    } else {
      const bool got = place_.put(together, channel.ring, is_over, store);
      is_left = is_over && !got;
    }
    count(together, to, detail::kShared, is_over && !is_left);
    if (!together.any(is_left)) return;
    if (channel.when_full == WhenFull::kSpill) {
      const bool has_no_place = put_all(together, channel.spill, is_left, store);
      count(together, to, detail::kSpilled, is_left && !has_no_place);
      if (has_no_place) end(detail::Outcome::kOutOfMemory, 0, to, 0);
    } else if (channel.when_full == WhenFull::kInline) {
      const Position mine = together.position_among(is_left);
      std::uint32_t first = 0;
      if (is_left && mine.index == 0) first = add_own(place_.own(to).stacked, mine.total);
      const std::uint32_t at = together.of_first(is_left, first) + mine.index;
      count(together, to, detail::kInlined, is_left);
      if (!is_left) return;
      if (at < channel.stack_capacity) {
        store(place_.stacked(channel, at));
      } else {
        end(detail::Outcome::kOutOfMemory, 0, to, 0);
      }
    } else if (is_left) {
      end(detail::Outcome::kFull, 0, to, 0);
    }
  }
  template <class View>
  ESKER_HD void count(View& together, std::uint32_t to, detail::ChannelCount what, bool is) const {
    const Position mine = together.position_among(is);
    if (is && mine.index == 0) (void)add_own(place_.own(to).counts[what], std::uint64_t{mine.total});
  }
  template <class T>
  ESKER_HD static T add_own(T& word, T value) {
#if defined(ESKER_ON_CPU)
    return (word += value) - value;  // a domain is one thread
#else
    return reinterpret_cast<GroupAtomic<T>&>(word).fetch_add_relaxed(value);
#endif
  }

  const detail::GraphPlace place_;
  const std::uint32_t channel_, graph_, into_, number_;
};

ESKER_PASS_END

}  // namespace esker::tasks
