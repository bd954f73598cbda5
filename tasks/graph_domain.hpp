// A domain of a task graph: takes batches from channels until the run ends.
#pragma once

#include <cstdint>
#include <new>

#include <esker/device/platform.hpp>
#include <esker/tasks/graph_node.hpp>
#include <esker/tasks/graph_state.hpp>
#include <esker/tasks/graph_task.hpp>
#include <esker/tasks/lanes.hpp>
#include <esker/tasks/level.hpp>

namespace esker::tasks {

namespace detail {

/// What all domains of a run are told.
struct GraphParameters {
  std::uint32_t channels = 0;  // outputs, too
  std::uint32_t nodes = 0;
  std::uint32_t buffer = 0;
  std::uint32_t domains = 0;
  Progress progress;
  std::uint64_t seed = 0;  // of tests' decisions at random
  std::uint8_t by_priority[kMostChannels] = {};
};

ESKER_PASS_BEGIN

/// State    working -> idle -> working, until the run has ended.
/// Contract All lanes of the domain call, converged. What a member holds is the same in all of them.
/// Protocol A domain runs what is on its stacks first: elements that found a channel full. Then the channel
///          of the highest priority that has a full batch; when none has, that of the highest priority that
///          has anything (the predicate of the thesis, 4.1.1). It knows what its own buffers have; what
///          domains share it looks at every few batches, and when it has nothing. Then it asks, in its
///          mailbox, and sleeps: thousands that look at the same words would hold up those that work. One
///          that works looks for some that ask, shares what it can spare, and wakes one of them. A domain
///          that sleeps shares nothing that it has not looked for itself: nothing depends on being woken.
template <class Shape, class Nodes>
class GraphDomain {
  using Lanes = DomainLanes;
  static constexpr std::uint32_t kBatch = Shape::kBatch;

 public:
  ESKER_HD GraphDomain(const Lanes& lanes, const GraphPlace& place, const GraphParameters& parameters,
                       const Nodes& nodes)
      : lanes_{lanes},
        place_{place},
        parameters_{parameters},
        nodes_{nodes},
        state_{*Lanes::in_memory(place.state)},
        window_{place.domain / Mailboxes::kWindow},
        random_{parameters.seed * 1024 + place.domain} {}

  ESKER_HD void run() {
    begin();
    while (true) {
      const Choice choice = choose();
      if (choice.how == How::kEnded) break;
      if (choice.how == How::kNothing) {
        note(Doing::kAsks);
        if (!wait()) break;
        continue;
      }
      nodes_.visit(choice.channel, [&](const auto& node) { run_batch(node, choice); });
    }
    add_counts();
  }

 private:
  enum class How : std::uint32_t { kEnded, kNothing, kStack, kBuffer };
  struct Choice {
    How how;
    std::uint32_t channel;
    std::uint32_t own;     // elements that it takes of its own
    std::uint32_t shared;  // and of what domains share, at most
  };

  ESKER_HD void begin() {
    lanes_.for_each(Lanes::kSums, [&](std::uint32_t i) { place_.sums()[i] = 0; });
    lanes_.for_each(parameters_.channels, [&](std::uint32_t c) {
      place_.own(c) = OwnChannel{};
      place_.own(c).buffer_at = place_.channel(c).buffer_at;
    });
  }

  // --- Choosing.

  ESKER_HD Choice choose() {
    const bool looks = Shape::kRandom ? random(2) == 0 : ++rounds_ % kRoundsALook == 0;
    if (Shape::kRandom && random(32) == 0) Lanes::Pause::let_others_run();
    if (looks) {
      if (look()) return {How::kEnded, 0, 0, 0};
      help_others();
    }
    const std::uint32_t stacked = first([](const OwnChannel& own) { return own.stacked != 0; });
    if (stacked != kNone) return own_batch(How::kStack, stacked, place_.own(stacked).stacked);
    if (!looks) {
      std::uint32_t c = first([](const OwnChannel& own) { return own.count >= kBatch; });
      if (c == kNone) c = first([](const OwnChannel& own) { return own.count != 0; });
      if (c != kNone) return own_batch(How::kBuffer, c, place_.own(c).count);
      if (look()) return {How::kEnded, 0, 0, 0};
    }
    std::uint32_t c = first([](const OwnChannel& own) { return own.count + own.waiting >= kBatch; });
    if (c == kNone) c = first([](const OwnChannel& own) { return own.count + own.waiting != 0; });
    if (c == kNone) return {How::kNothing, 0, 0, 0};
    const OwnChannel& own = place_.own(c);
    Choice choice = own_batch(How::kBuffer, c, own.count);
    const std::uint32_t part = Lanes::fair_part(own.waiting, parameters_.domains);
    const std::uint32_t place = kBatch - choice.own;
    if (own.waiting != 0 && (choice.own == 0 || part >= kBatch)) choice.shared = part < place ? part : place;
    return choice;
  }
  /// The channel of the highest priority of which it is true; kNone: of none.
  template <class Function>
  ESKER_HD std::uint32_t first(const Function& function) const {
    const std::uint32_t rank = lanes_.find(parameters_.nodes, 0, [&](std::uint32_t r) {
      return function(place_.own(parameters_.by_priority[r]));
    });
    return rank == kNone ? kNone : parameters_.by_priority[rank];
  }
  ESKER_HD Choice own_batch(How how, std::uint32_t channel, std::uint32_t there) {
    std::uint32_t n = there < kBatch ? there : kBatch;
    // The least memory: as one processor would.
    if (how == How::kStack && 2 * there > place_.channel(channel).stack_capacity) n = 1;
    if (Shape::kRandom && n != 0) n = 1 + random(n);
    return {how, channel, n, 0};
  }

  /// Looks at what domains share. True: the run has ended.
  ESKER_HD bool look() {
    const std::uint32_t ended = lanes_.of_leader([&] { return state_.has_ended_or_should() ? 1u : 0u; });
    lanes_.for_each(parameters_.nodes, [&](std::uint32_t r) {
      const std::uint32_t c = parameters_.by_priority[r];
      see(place_.own(c), place_.channel(c));
    });
    return ended != 0;
  }
  ESKER_HD static void see(OwnChannel& own, const ChannelState& channel) {
    const std::uint64_t seeds = channel.seed_count != 0 ? channel.seeds_left() : 0;
    const std::uint64_t spilled = channel.spill.capacity() != 0 ? channel.spill.was_published() : 0;
    const std::uint64_t waiting = channel.ring.was_published() + spilled;
    if (waiting > own.most_waiting) own.most_waiting = static_cast<std::uint32_t>(waiting);
    own.has_seeds = seeds != 0 ? 1 : 0;
    const std::uint64_t all = waiting + seeds;
    own.waiting = all < 0x80000000u ? static_cast<std::uint32_t>(all) : 0x80000000u;
  }

  ESKER_HD bool channels_have_some() const {
    return first([](const OwnChannel& own) { return own.waiting != 0; }) != kNone;
  }
  /// Looks at some others, and wakes one that asks, if there is something for it.
  ESKER_HD void help_others() {
    const Mailboxes& mailboxes = state_.mailboxes;
    window_ = (window_ + 1) % mailboxes.windows();
    const std::uint32_t start = window_ * Mailboxes::kWindow;
    const std::uint32_t asks = lanes_.find(Mailboxes::kWindow, place_.domain % Mailboxes::kWindow,
                                           [&](std::uint32_t i) { return mailboxes.was_asking(start + i); });
    if (asks == kNone || (!share() && !channels_have_some())) return;
    lanes_.leader([&] {
      if (state_.mailboxes.try_promise(start + asks)) state_.mailboxes.put(start + asks);
    });
  }
  /// Gives the older half of each buffer, but for kKept. False: nothing.
  ESKER_HD bool share() {
    bool has_given = false;
    for (std::uint32_t r = 0; r < parameters_.nodes; ++r) {
      const std::uint32_t c = parameters_.by_priority[r];
      OwnChannel& own = place_.own(c);
      const std::uint32_t have = own.count;
      if (have <= Lanes::kKept) continue;
      const std::uint32_t kept = have / 2 > Lanes::kKept ? have / 2 : Lanes::kKept;
      const std::uint32_t n = have - kept < kBatch ? have - kept : kBatch;
      const ChannelState& channel = place_.channel(c);
      std::uint32_t given = 0;
      bool is_full = false;  // for one: what is given are the first ones
      lanes_.together(n, [&](auto& view, std::uint32_t i, bool active) {
        const bool gives = active && !is_full;
        const bool got = place_.put(view, channel.ring, gives, [&](std::uint32_t* at) {
          const std::uint32_t* const from = place_.buffer_of(own) + i;
          for (std::uint32_t w = 0; w < channel.words; ++w) at[w] = from[w * place_.buffer];
        });
        given += view.position_among(got).total;
        is_full = is_full || view.any(gives && !got);
      });
      for (std::uint32_t w = 0; w < channel.words; ++w)
        lanes_.shift(place_.buffer_of(own) + w * place_.buffer, given, have - given);
      lanes_.leader([&] {
        own.count = have - given;
        own.counts[kShared] += given;
      });
      has_given = has_given || given != 0;
    }
    return has_given;
  }

  // --- Running.

  template <class T, class Function>
  ESKER_HD void run_batch(const Node<T, Function>& node, const Choice& choice) {
    OwnChannel& own = place_.own(choice.channel);
    ChannelState& channel = place_.channel(choice.channel);
    const bool is_stack = choice.how == How::kStack;
    const std::uint32_t left = (is_stack ? own.stacked : own.count) - choice.own;
    // Those that have waited longest: others may need what they will spawn.
    const bool is_oldest = !is_stack && left <= choice.own;
    std::uint32_t* const buffer = place_.buffer_of(own);
    const bool has_seeds = own.has_seeds != 0;
    lanes_.leader([&] { (is_stack ? own.stacked : own.count) = left; });
    note(Doing::kRuns, choice.channel, choice.own + choice.shared);
    const std::uint32_t n = lanes_.template load_and_run<kBatch, T>(
        choice.own + choice.shared,
        [&](auto& view, std::uint32_t i, T* to) {
          bool has = i < choice.own;
          if (has) {
            put_at(to, is_stack ? load_columns<T>(place_.stacked(channel, left + i), 1)
                                : load_columns<T>(buffer + (is_oldest ? i : left + i), place_.buffer));
          }
          if (is_oldest && i < left)  // the next ones move up; nobody else reads or writes the two places
            store_columns(buffer + i, place_.buffer, load_columns<T>(buffer + choice.own + i, place_.buffer));
          if (choice.shared == 0) return has;
          bool wants = !has && i < choice.own + choice.shared;
          const bool wanted = wants;
          if (has_seeds) take_seed(view, channel, wants, to);
          take(view, channel.ring, wants, to);
          if (channel.spill.capacity() != 0) take(view, channel.spill, wants, to);
          const bool got = wanted && !wants;
          owed_ += view.position_among(got).total;
          return has || got;
        },
        [&](std::uint32_t i, const T& element) {
          GraphTask task(place_, choice.channel, node.graph, node.targets, i);
          node.function(task, element);
        });
    tidy();
    note(Doing::kSchedules);
    if (n != 0) pause_ = {};
    lanes_.leader([&] {
      own.counts[kElements] += n;
      own.counts[kBatches] += n != 0 ? 1 : 0;
      own.counts[kFullBatches] += n == kBatch ? 1 : 0;
    });
  }
  template <class T>
  ESKER_HD static void put_at(T* to, const T& value) {
    new (to) T(value);
  }
  /// `wants` is false afterwards in lanes that got one.
  template <class View, class T>
  ESKER_HD static void take(View& view, const Ring& ring, bool& wants, T* to) {
    if (!view.any(wants)) return;
    std::uint32_t element = 0;
    const bool got = ring.try_take(view, element, wants);
    if (got) put_at(to, load_columns<T>(reinterpret_cast<const std::uint32_t*>(&ring[element]), 1));
    view.sync();
    ring.free(view, element, got);
    wants = wants && !got;
  }
  template <class View, class T>
  ESKER_HD static void take_seed(View& view, ChannelState& channel, bool& wants, T* to) {
    const Position mine = view.position_among(wants);
    if (mine.total == 0) return;
    std::uint64_t first = 0;
    if (wants && mine.index == 0) first = channel.next.fetch_add_relaxed(mine.total);
    const std::uint64_t seed = view.of_first(wants, first) + mine.index;
    if (!wants || seed >= channel.seed_count) return;
    put_at(to, reinterpret_cast<const T*>(channel.seeds)[seed]);
    wants = false;
  }

  /// After a batch: what found a buffer full went elsewhere.
  ESKER_HD void tidy() {
    lanes_.for_each(parameters_.channels, [&](std::uint32_t c) {
      OwnChannel& own = place_.own(c);
      const ChannelState& channel = place_.channel(c);
      if (own.count > place_.buffer) {
        own.count = place_.buffer;
        see(own, channel);
      }
      if (own.stacked != 0) {
        if (own.stacked > channel.stack_capacity) own.stacked = channel.stack_capacity;  // the run has ended
        if (own.stacked > own.most_stacked) own.most_stacked = own.stacked;
      }
    });
  }

  /// Of runs that are watched for hangs.
  ESKER_HD void note(Doing doing, std::uint32_t channel = 0, std::uint32_t elements = 0) const {
    if (!place_.progress.is_on()) return;
    lanes_.for_each(parameters_.channels, [&](std::uint32_t c) {
      const OwnChannel& own = place_.own(c);
      place_.progress.note(std::size_t{place_.domain} * parameters_.channels + c)
          .store_relaxed(own.count + own.stacked);
    });
    lanes_.first([&] { place_.progress.is_doing(place_.domain, doing, channel, elements, 0); });
  }

  // --- Idle.

  /// False: the run has ended.
  ESKER_HD bool wait() {
    if (owed_ != 0) {
      lanes_.leader([&] {
        if (state_.open.fetch_add_acq_rel(0 - owed_) == owed_) (void)state_.end(Outcome::kDone);
      });
      owed_ = 0;
    }
    ++waits_;
    Mailboxes& mailboxes = state_.mailboxes;
    while (!look()) {
      if (channels_have_some()) {
        // It asks no more, unless it is being woken: then it will find that when it has nothing again.
        asks_ = asks_ && lanes_.of_leader([&] {
          mailboxes.withdraw(place_.domain);
          return mailboxes.has_asked(place_.domain) ? 1u : 0u;
        }) != 0;
        return true;
      }
      if (asks_) {
        sleep();
      } else {  // and looks again: what was shared before it has asked wakes nobody
        lanes_.leader([&] { mailboxes.ask(place_.domain); });
        asks_ = true;
      }
    }
    return false;
  }
  /// Until it is woken, or the run has ended, or for a while.
  ESKER_HD void sleep() {
    for (std::uint32_t left = pause_.is_long() ? 16 : 4; left != 0; --left) {
      pause_.once();
      const std::uint32_t news = lanes_.of_leader([&] {
        if (state_.mailboxes.try_get(place_.domain)) return 1u;
        return left % 4 == 1 && state_.has_ended() ? 2u : 0u;
      });
      if (news == 1) {
        asks_ = false;
        rounds_ = kRoundsALook - 1;  // then it looks for others that ask, too
      }
      if (news != 0) return;
    }
  }

  ESKER_HD void add_counts() {
    const std::uint64_t sum = lanes_.sum(Lanes::kSums, [&](std::uint32_t i) { return place_.sums()[i]; });
    lanes_.leader([&] {
      if (sum != 0) (void)state_.sum.fetch_add_relaxed(sum);
      if (waits_ != 0) (void)state_.waits.fetch_add_relaxed(waits_);
    });
    lanes_.for_each(parameters_.channels, [&](std::uint32_t c) {
      const OwnChannel& own = place_.own(c);
      ChannelState& channel = place_.channel(c);
      for (std::uint32_t i = 0; i < kChannelCounts; ++i) {
        if (own.counts[i] != 0) (void)channel.counts[i].fetch_add_relaxed(own.counts[i]);
      }
      keep_most(channel.most_waiting, own.most_waiting);
      keep_most(channel.most_stacked, own.most_stacked);
    });
  }
  ESKER_HD static void keep_most(DeviceAtomic<std::uint32_t>& most, std::uint32_t mine) {
    std::uint32_t now = most.load_relaxed();
    while (now < mine && !most.compare_exchange_relaxed(now, mine)) {
    }
  }
  /// Below `below`.
  ESKER_HD std::uint32_t random(std::uint32_t below) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(random_ >> 33) % below;
  }

  static constexpr std::uint32_t kRoundsALook = 8;

  const Lanes lanes_;
  const GraphPlace place_;
  const GraphParameters& parameters_;
  const Nodes& nodes_;
  GraphState& state_;
  std::uint32_t rounds_ = kRoundsALook - 1;
  std::uint64_t owed_ = 0;  // elements that it has taken, and not settled
  std::uint64_t waits_ = 0;
  bool asks_ = false;  // its mailbox is not kBusy
  std::uint32_t window_;
  typename Lanes::Pause pause_;  // grows until the domain gets something
  std::uint64_t random_;
};

ESKER_PASS_END

}  // namespace detail

}  // namespace esker::tasks
