// Kernels that send in divergent code, one for each way to elect.
#pragma once

#include <cstdint>
#include <esker/device/election/by_destination.hpp>
#include <esker/device/election/fine_grain.hpp>
#include <esker/device/election/per_lane.hpp>
#include <esker/device/election/per_wave.hpp>
#include <esker/device/election/predicated.hpp>
#include <esker/device/group_packer.hpp>

#include "delivery.hpp"

namespace esker::testing {

inline constexpr std::uint32_t kMaxMessages = 11;
inline constexpr std::uint32_t kShort = 7, kLong = 9;  // commands: 1 word and 3 words a message

/// Which lanes send what: random trip counts, and a branch to one of two commands.
struct Traffic {
  std::uint64_t seed;
  ESKER_HD std::uint32_t messages(std::uint64_t lane) const {
    return static_cast<std::uint32_t>(random_at(seed, lane, 31) % (kMaxMessages + 1));
  }
  ESKER_HD bool is_long(std::uint64_t lane, std::uint32_t number) const {
    return random_at(seed, lane, number) % 3 == 0;
  }

  /// Sends message `number` with `style`.
  template <class Style, class AnyLane>
  ESKER_HD void send(Style style, AnyLane& lane, QueueSink& sink, std::uint32_t number) const {
    const std::uint64_t id = message_id(lane.global_id(), number);
    if (is_long(lane.global_id(), number)) {
      const std::uint64_t words[] = {id, message_word(id, 1), message_word(id, 2)};
      style.send(lane, sink, kLong, words);
    } else {
      const std::uint64_t words[] = {id};
      style.send(lane, sink, kShort, words);
    }
  }
  /// For styles with an `active` flag: both commands are called by all.
  template <class Style>
  ESKER_HD void send_predicated(GroupLane& lane, QueueSink& sink, std::uint32_t number, bool active) const {
    const std::uint64_t id = message_id(lane.global_id(), number);
    const bool is_long_one = is_long(lane.global_id(), number);
    const std::uint64_t long_words[] = {id, message_word(id, 1), message_word(id, 2)};
    Style{active && is_long_one}.send(lane, sink, kLong, long_words);
    const std::uint64_t short_words[] = {id};
    Style{active && !is_long_one}.send(lane, sink, kShort, short_words);
  }

  void expect_each_once(Arrivals& arrivals, std::uint64_t lanes) const {
    std::size_t wanted = 0;
    for (std::uint64_t lane = 0; lane < lanes; ++lane) {
      for (std::uint32_t m = 0; m < messages(lane); ++m, ++wanted) {
        const bool is_long_one = is_long(lane, m);
        arrivals.expect_once(message_id(lane, m), is_long_one ? kLong : kShort, is_long_one ? 3 : 1);
      }
    }
    EXPECT_EQ(arrivals.messages(), wanted);
  }
};

struct SendPerLane {
  Traffic traffic;
  QueueSink sink;
  ESKER_HD void operator()(Lane lane) const {
    QueueSink to = sink;
    for (std::uint32_t m = 0; m < traffic.messages(lane.global_id()); ++m)
      traffic.send(PerLane{}, lane, to, m);
  }
};

struct SendPerConvergedWave {
  Traffic traffic;
  QueueSink sink;
  ESKER_HD void operator()(GroupLane& lane) const {
    QueueSink to = sink;
    for (std::uint32_t m = 0; m < traffic.messages(lane.global_id()); ++m) {
      traffic.send(PerConvergedWave{}, lane, to, m);
    }
  }
};

struct SendPerWave {
  Traffic traffic;
  QueueSink sink;
  ESKER_HD void operator()(GroupLane& lane) const {
    QueueSink to = sink;
    const std::uint32_t mine = traffic.messages(lane.global_id());
    const std::uint32_t most = lane.wave().reduce(mine, Max{});
    for (std::uint32_t m = 0; m < most; ++m) traffic.send_predicated<PerWave>(lane, to, m, m < mine);
  }
};

struct SendPredicated {
  Traffic traffic;
  QueueSink sink;
  ESKER_HD void operator()(GroupLane& lane) const {
    QueueSink to = sink;
    const std::uint32_t mine = traffic.messages(lane.global_id());
    if (mine == 0) return;  // it no longer takes part
    const std::uint32_t most = lane.group().reduce(mine, Max{});
    for (std::uint32_t m = 0; m < most; ++m) traffic.send_predicated<Predicated>(lane, to, m, m < mine);
  }
};

/// Destinations are made up of the messages' numbers; the queue's reader cannot tell.
struct SendByDestination {
  static constexpr std::uint32_t kDestinations = 5;
  Traffic traffic;
  QueueSink sink;
  ESKER_HD void operator()(GroupLane& lane) const {
    QueueSink to = sink;
    const std::uint64_t id = lane.global_id();
    auto& counts = lane.scratch<DestinationCounts>();
    const std::uint32_t mine = traffic.messages(id);
    const std::uint32_t most = lane.group().reduce(mine, Max{});
    for (std::uint32_t m = 0; m < most; ++m) {
      const auto destination =
          static_cast<std::uint32_t>(random_at(traffic.seed, id, 40 + m) % kDestinations);
      const std::uint64_t word = message_id(id, m);
      const bool is_long = traffic.is_long(id, m);
      const std::uint64_t longs[] = {word, message_word(word, 1), message_word(word, 2)};
      ByDestination{counts, kDestinations, destination, m < mine && is_long}.send(lane, to, kLong, longs);
      const std::uint64_t shorts[] = {word};
      ByDestination{counts, kDestinations, destination, m < mine && !is_long}.send(lane, to, kShort, shorts);
    }
  }
};

struct SendFineGrain {
  struct Barriers {
    FineGrainState<> loop, longs, shorts;
  };
  Traffic traffic;
  QueueSink sink;
  ESKER_HD void operator()(GroupLane& lane) const {
    QueueSink to = sink;
    const std::uint64_t id = lane.global_id();
    Barriers& scratch = lane.scratch<Barriers>();
    FineGrainBarrier<> loop(lane, scratch.loop), longs(lane, scratch.longs), shorts(lane, scratch.shorts);
    loop.join();
    lane.group().sync();
    for (std::uint32_t m = 0; m < traffic.messages(id); ++m) {
      // The branch has a barrier for each side; who takes which is known before either is used.
      const bool is_long = traffic.is_long(id, m);
      if (is_long) {
        longs.join();
      } else {
        shorts.join();
      }
      loop.wait();
      if (is_long) {
        traffic.send(FineGrain<>{longs}, lane, to, m);
        longs.leave();
      } else {
        traffic.send(FineGrain<>{shorts}, lane, to, m);
        shorts.leave();
      }
      loop.wait();
    }
    loop.leave();
  }
};

struct SendAutoGrouped {
  struct Style {
    GroupPacker<QueueSink>& packer;
    template <std::uint32_t Words>
    ESKER_HD void send(GroupLane&, QueueSink&, std::uint32_t command, const std::uint64_t (&words)[Words]) {
      packer.append(command, words);
    }
  };
  Traffic traffic;
  QueueSink sink;
  ESKER_HD void operator()(GroupLane& lane) const {
    QueueSink to = sink;
    GroupPacker packer(lane, to);
    for (std::uint32_t m = 0; m < traffic.messages(lane.global_id()); ++m) {
      traffic.send(Style{packer}, lane, to, m);
    }
    packer.close();
  }
};

}  // namespace esker::testing
