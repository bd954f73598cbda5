// Active messages over loopback: what handlers own, send and know. With travelling_messages.cpp one program.
#include <esker/device/atomic.hpp>
#include <span>
#include <string>
#include <vector>

#include "active_message.hpp"
#include "pes.hpp"

namespace esker::testing {
namespace {

constexpr std::uint64_t kBlock = 4096;
struct Granule {
  static constexpr std::uint64_t kTargets = kBlock / 8 - 1;
  std::uint64_t calls;
  std::uint64_t targets[kTargets];
};

// Plain counters: a handler that is not alone on its ownership block loses counts, and ThreadSanitizer sees
// it.
void count_in_ownership_blocks(Runtime& rt) {
  constexpr std::uint64_t kMessages = 1000, kBlocks = 5;
  const auto blocks = rt.heap().allocate<Granule>(kBlocks);
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(blocks.data()) % kBlock, 0u);
  const auto handler = rt.register_handler<std::uint64_t, std::uint32_t>(
      "count", [=] ESKER_LAMBDA(HandlerContext&, std::uint64_t & target, const std::uint32_t& block) {
        ++target;
        ++blocks[block].calls;
      });
  rt.launch(kMessages, [=] ESKER_LAMBDA(WorkItem item) {
    const auto block = static_cast<std::uint32_t>(item.global_id() % kBlocks);
    const std::uint64_t word = item.global_id() % Granule::kTargets;
    for (std::uint32_t pe = 0; pe < item.n_pes(); ++pe) {
      shmem_am(item, handler, &blocks[block].targets[word], block, pe);
    }
  });
  rt.barrier_all();
  for (const Granule& block : rt.heap().read(blocks)) {
    EXPECT_EQ(block.calls, rt.n_pes() * kMessages / kBlocks);
    std::uint64_t sum = 0;
    for (const std::uint64_t target : block.targets) sum += target;
    EXPECT_EQ(sum, block.calls);
  }
}
TEST_P(ActiveMessage, HandlersAreAloneOnTheirOwnershipBlock) {
  run_pes(GetParam(), count_in_ownership_blocks);
}

struct Pair {
  std::uint64_t first, second;
};
/// Plain counters too, side by side.
struct CountPair {
  static constexpr std::uint64_t kOwnershipBytes = sizeof(Pair);
  ESKER_HD void operator()(HandlerContext&, Pair& pair, const std::uint64_t& more) const {
    ++pair.first;
    pair.second += more;
  }
};
/// Calls for one target may run side by side.
struct CountTogether {
  static constexpr std::uint64_t kOwnershipBytes = 0;
  ESKER_HD void operator()(HandlerContext&, Pair& pair, const std::uint64_t& more) const {
    reinterpret_cast<DeviceAtomic<std::uint64_t>&>(pair.first).fetch_add_relaxed(1);
    reinterpret_cast<DeviceAtomic<std::uint64_t>&>(pair.second).fetch_add_relaxed(more);
  }
};
template <class Count>
void count_pairs(Runtime& rt) {
  constexpr std::uint64_t kMessages = 4000, kPairs = 3;
  const auto pairs = rt.heap().allocate<Pair>(kPairs);
  const auto handler = rt.register_handler<Pair, std::uint64_t>("pair", Count{});
  rt.launch(kMessages, [=] ESKER_LAMBDA(WorkItem item) {
    for (std::uint32_t pe = 0; pe < item.n_pes(); ++pe)
      shmem_am(item, handler, &pairs[item.global_id() % kPairs], 5, pe);
  });
  rt.barrier_all();
  std::uint64_t calls = 0;
  for (const Pair& pair : rt.heap().read(pairs)) {
    calls += pair.first;
    EXPECT_EQ(pair.second, 5 * pair.first);
  }
  EXPECT_EQ(calls, rt.n_pes() * kMessages);
}
TEST_P(ActiveMessage, HandlersAreAloneOnABlockAsSmallAsTheySay) {
  run_pes(GetParam(), count_pairs<CountPair>);
}

TEST_P(ActiveMessage, HandlersThatOwnNothingAreCalledOnceEach) {
  run_pes(GetParam(), count_pairs<CountTogether>);
}

/// Messages of one to eight words, to this PE and to others, from one handler: on a GPU each width is a
/// package of its own, which the next closes.
struct alignas(16) Sums {
  std::uint64_t put[2], inc, add, called;
};
struct Word7 {
  std::uint64_t words[7];
};
void send_all_widths(Runtime& rt) {
  constexpr std::uint64_t kMessages = 3000, kTargets = 512;
  const auto sums = rt.heap().allocate<Sums>(kTargets);
  const auto called = rt.register_handler<std::uint64_t, Word7>(
      "called", [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & word, const Word7& sent) {
        for (const std::uint64_t w : sent.words) word += w;
      });
  struct Sixteen {
    std::uint64_t halves[2];
  };
  const auto spread = rt.register_handler<Sums, std::uint32_t>(
      "spread", [=] ESKER_LAMBDA(HandlerContext & context, Sums & here, const std::uint32_t& k) {
        const std::uint32_t pe = (context.pe() + k) % context.n_pes();
        Sums* const there = &sums[static_cast<std::uint64_t>(&here - sums.data())];
        shmem_inc(context, &there->inc, pe);
        shmem_add(context, &there->add, 3, pe);
        shmem_put(context, reinterpret_cast<Sixteen*>(there->put), Sixteen{{5, 7}}, pe);
        shmem_am(context, called, &there->called, {{1, 0, 0, 1, 0, 0, 1}}, pe);
      });
  rt.launch(kMessages, [=] ESKER_LAMBDA(WorkItem item) {
    const auto id = static_cast<std::uint32_t>(item.global_id());
    shmem_am(item, spread, &sums[id % kTargets], id / kTargets, id % item.n_pes());
  });
  rt.barrier_all();
  Sums all{};
  for (const Sums& s : rt.heap().read(sums)) {
    all.inc += s.inc;
    all.add += s.add;
    all.called += s.called;
    EXPECT_TRUE(s.inc == 0 ? s.put[0] == 0 && s.put[1] == 0 : s.put[0] == 5 && s.put[1] == 7);
  }
  std::uint64_t totals[3] = {all.inc, all.add, all.called};
  rt.all_reduce(std::span<std::uint64_t>(totals), Reduction::kSum);
  EXPECT_EQ(totals[0], rt.n_pes() * kMessages);
  EXPECT_EQ(totals[1], 3 * rt.n_pes() * kMessages);
  EXPECT_EQ(totals[2], 3 * rt.n_pes() * kMessages);
}
TEST_P(ActiveMessage, HandlersSendMessagesOfAllWidths) { run_pes(GetParam(), send_all_widths); }

struct Least {
  std::uint64_t value;
  std::uint64_t calls;
};
struct LowerTo {
  static constexpr std::uint64_t kOwnershipBytes = sizeof(Least);
  ESKER_HD static DeviceAtomic<std::uint64_t>& word(std::uint64_t& value) {
    return reinterpret_cast<DeviceAtomic<std::uint64_t>&>(value);
  }
  ESKER_HD bool is_needless(const Least& least, const std::uint64_t& value) const {
    return value >= word(const_cast<std::uint64_t&>(least.value)).load_relaxed();
  }
  ESKER_HD void operator()(HandlerContext&, Least& least, const std::uint64_t& value) const {
    ++least.calls;
    if (value < least.value) word(least.value).store_relaxed(value);
  }
};
void lower(Runtime& rt) {
  constexpr std::uint64_t kMessages = 5000, kTargets = 3, kLeast = 7;
  const auto targets = rt.heap().allocate<Least>(kTargets);
  const std::vector<Least> start(kTargets, Least{~std::uint64_t{0}, 0});
  rt.heap().write(targets, 0, std::span<const Least>(start));
  const auto handler = rt.register_handler<Least, std::uint64_t>("least", LowerTo{});
  rt.launch(kMessages, [=] ESKER_LAMBDA(WorkItem item) {
    // Neither rising nor falling, and each target gets every remainder.
    const std::uint64_t value = kLeast + item.global_id() * 1237 % kMessages;
    for (std::uint64_t i = 0; i < kTargets; ++i) {
      for (std::uint32_t pe = 0; pe < item.n_pes(); ++pe) shmem_am(item, handler, &targets[i], value, pe);
    }
  });
  rt.barrier_all();
  for (const Least& least : rt.heap().read(targets)) {
    EXPECT_EQ(least.value, kLeast);
    EXPECT_GE(least.calls, 1u);
    EXPECT_LT(least.calls, rt.n_pes() * kMessages);
  }
}
TEST_P(ActiveMessage, CallsThatAreNeedlessAreNotMade) { run_pes(GetParam(), lower); }

/// Rounds with and without active messages, for one handler of three, from no PE, one PE or all: a barrier
/// waits for handlers where some PE has called one, and finds all of what has no handler where nobody has.
void some_rounds_call_handlers(Runtime& rt) {
  using Count = std::uint64_t;
  constexpr std::uint64_t kLanes = 300, kHandlers = 3, kRounds = kIsSlow ? 12 : 24;
  const auto plain = rt.heap().allocate<Count>(1);
  const auto called = rt.heap().allocate<Count>(kHandlers);
  std::vector<Handler<Count, Hop>> handlers;
  for (std::uint64_t h = 0; h < kHandlers; ++h) {
    handlers.push_back(rt.register_handler<Count, Hop>(
        "counts, and passes on " + std::to_string(h),
        [] ESKER_LAMBDA(HandlerContext & context, Count & count, const Hop& hop, Handler<Count, Hop> self) {
          ++count;
          if (hop.left > 0)
            shmem_am(context, self, &count, {hop.left - 1}, (context.pe() + 1) % context.n_pes());
        }));
  }
  Count plain_expected = 0;
  std::vector<Count> expected(kHandlers);
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const std::uint64_t h = round % kHandlers;
    // A chain visits each PE once, whoever starts it.
    const std::uint64_t callers = round % 4 == 1 ? 1 : round % 4 == 2 ? rt.n_pes() : 0;
    const bool calls = callers == rt.n_pes() || (callers == 1 && rt.pe() == round % rt.n_pes());
    const Handler<Count, Hop> handler = handlers[h];
    rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
      for (std::uint32_t pe = 0; pe < item.n_pes(); ++pe) shmem_inc(item, plain.data(), pe);
      if (calls) shmem_am(item, handler, &called[h], {item.n_pes() - 1}, (item.pe() + 1) % item.n_pes());
    });
    rt.barrier_all();
    plain_expected += kLanes * rt.n_pes();
    expected[h] += kLanes * callers;
    ASSERT_EQ(rt.heap().read(plain)[0], plain_expected) << "round " << round;
    ASSERT_EQ(rt.heap().read(called), expected) << "round " << round;
    rt.barrier_all();
  }
}
TEST_P(ActiveMessage, SomeRoundsCallHandlersAndSomeDoNot) { run_pes(GetParam(), some_rounds_call_handlers); }

struct Step {
  std::uint16_t left;   // calls that follow this one
  std::uint16_t first;  // handler of all
};
/// Messages for more handlers than a pass on a GPU tells apart wait side by side, and each handler passes on
/// to the next one, on the next PE.
void call_many_handlers(Runtime& rt) {
  using Count = std::uint64_t;
  constexpr std::uint16_t kHandlers = 70;
  constexpr std::uint16_t kSteps = kSimulated ? 2 : 3;
  const auto called = rt.heap().allocate<Count>(kHandlers);
  std::vector<Handler<Count, Step>> handlers;
  for (std::uint16_t h = 0; h < kHandlers; ++h) {
    handlers.push_back(rt.register_handler<Count, Step>(
        "next " + std::to_string(h),
        [=] ESKER_LAMBDA(HandlerContext & context, Count & count, const Step& step) {
          ++count;
          if (step.left == 0) return;
          const auto next = static_cast<std::uint16_t>((h + 1) % kHandlers);
          shmem_am(context, Handler<Count, Step>{static_cast<std::uint16_t>(step.first + next)},
                   &called[next], {static_cast<std::uint16_t>(step.left - 1), step.first},
                   (context.pe() + 1) % context.n_pes());
        }));
  }
  const std::uint16_t first = handlers[0].index;
  rt.launch(kHandlers, [=] ESKER_LAMBDA(WorkItem item) {
    const auto h = static_cast<std::uint16_t>(item.global_id());
    const Handler<Count, Step> handler{static_cast<std::uint16_t>(first + h)};
    shmem_am(item, handler, &called[h], {kSteps - 1, first}, (item.pe() + 1) % item.n_pes());
  });
  rt.barrier_all();
  EXPECT_EQ(rt.heap().read(called), std::vector<Count>(kHandlers, kSteps));
}
TEST_P(ActiveMessage, ManyHandlersCallEachOther) { run_pes(GetParam(), call_many_handlers); }

INSTANTIATE_TEST_SUITE_P(Ways, ActiveMessage, ::testing::ValuesIn(active_message_ways()));

struct Seen {
  std::uint32_t pe, n_pes, source;
};

void tell_who(Runtime& rt) {
  const auto seen = rt.heap().allocate<Seen>(rt.n_pes());
  const auto handler = rt.register_handler<Seen, std::uint32_t>(
      "who", [] ESKER_LAMBDA(HandlerContext & context, Seen & s, const std::uint32_t&) {
        s = {context.pe(), context.n_pes(), context.source()};
      });
  rt.launch(rt.n_pes(), [=] ESKER_LAMBDA(WorkItem item) {
    shmem_am(item, handler, &seen[item.pe()], 0, static_cast<std::uint32_t>(item.global_id()));
  });
  rt.barrier_all();
  const std::vector<Seen> got = rt.heap().read(seen);
  for (std::uint32_t source = 0; source < rt.n_pes(); ++source) {
    EXPECT_EQ(got[source].pe, rt.pe());
    EXPECT_EQ(got[source].n_pes, 3u);
    EXPECT_EQ(got[source].source, source);
  }
}
TEST(Handler, KnowsWhereItRunsAndWhoSent) { run_pes(3, tell_who); }

struct Nothing {
  template <class Target, class Arguments>
  ESKER_HD void operator()(HandlerContext&, Target&, const Arguments&) const {}
};

TEST(Handler, OfAnotherNameOrTypeOnAnotherPeIsAnErrorEverywhere) {
  const Nothing nothing;
  const auto expect_all = [](const auto& failed) {
    for (const auto& failure : failed) {
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->kind, Error::Kind::kHandler) << failure->message;
    }
  };
  expect_all(Pes(3).run_and_catch([&](Runtime& rt) {
    rt.register_handler<std::uint64_t, std::uint32_t>(rt.pe() == 1 ? "left" : "right", nothing);
  }));
  expect_all(Pes(3).run_and_catch([&](Runtime& rt) {
    if (rt.pe() == 2)
      rt.register_handler<std::uint64_t, std::uint32_t>("same", nothing);
    else
      rt.register_handler<std::uint64_t, Payload<24>>("same", nothing);
  }));
  expect_all(Pes(2).run_and_catch([&](Runtime& rt) {
    if (rt.pe() == 1)
      rt.register_handler<std::uint64_t, std::uint32_t>("same", nothing);
    else
      rt.register_handler<std::uint32_t, std::uint32_t>("same", nothing);
  }));
}

void register_one_too_many(Runtime& rt) {
  const auto hits = rt.heap().allocate<std::uint64_t>(1);
  const auto one = [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & word, const std::uint32_t&) { ++word; };
  Handler<std::uint64_t, std::uint32_t> last;
  for (int i = 0; i < 1024; ++i)
    last = rt.register_handler<std::uint64_t, std::uint32_t>(std::to_string(i), one);
  rt.launch(1, [=] ESKER_LAMBDA(WorkItem item) { shmem_am(item, last, hits.data(), 0, 1 - item.pe()); });
  rt.barrier_all();
  EXPECT_EQ(rt.heap().read(hits)[0], 1u);
  rt.register_handler<std::uint64_t, std::uint32_t>("too many", one);
}
TEST(Handler, OneMoreThanTheLegalNumberIsAnErrorEverywhere) {
  for (const auto& failure : Pes(2).run_and_catch(register_one_too_many)) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind, Error::Kind::kHandler);
    EXPECT_NE(failure->message.find("'too many': there are 1024"), std::string::npos) << failure->message;
  }
}

}  // namespace
}  // namespace esker::testing
