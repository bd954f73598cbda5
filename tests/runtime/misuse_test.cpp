// A call that names a PE or an address that does not exist ends the job, and says who made it; so does a PE
// that leaves while lanes elsewhere wait for it.
#include <cstdint>
#include <stdexcept>
#include <string>

#include <esker/device/election/per_lane.hpp>

#include "../device/gtest.hpp"
#include "pes.hpp"

namespace esker::testing {
namespace {

constexpr std::uint64_t kFar = std::uint64_t{1} << 40;  // bytes

struct Pair {
  std::uint64_t first, second;
};

enum class Mistake { kNobody, kOutside, kMisaligned, kMisalignedByElection, kNoHandler };

struct Aim {
  SymmetricArray<std::uint64_t> words;
  Mistake mistake;

  /// A good message for the last PE, or, if `wrong`, a bad one.
  template <class Context>
  ESKER_HD void operator()(Context&& context, std::uint64_t index, bool wrong) const {
    std::uint64_t* const target = &words[index];
    const std::uint32_t pe = context.n_pes() - 1;
    if (!wrong || context.pe() != 0)
      shmem_inc(context, target, pe);
    else if (mistake == Mistake::kNobody)
      shmem_inc(context, target, 9);
    else if (mistake == Mistake::kOutside)
      shmem_put(context, target + kFar / sizeof *target, 1, pe);
    else if (mistake == Mistake::kNoHandler)
      shmem_am(context, Handler<std::uint64_t, std::uint32_t>{}, target, 1, pe);
    else
      shmem_put(context, reinterpret_cast<Pair*>(&words[1]), {1, 2}, pe);
  }
};

void aim_from_a_lane(Runtime& rt, Mistake mistake) {
  const Aim aim{rt.heap().allocate<std::uint64_t>(100), mistake};
  rt.launch(
      100, [=] ESKER_LAMBDA(WorkItem item) { aim(item, item.global_id(), item.global_id() == 70); },
      "archery");
  rt.barrier_all();
}

void aim_from_a_group(Runtime& rt, Mistake mistake) {
  const Aim aim{rt.heap().allocate<std::uint64_t>(100), mistake};
  if (mistake == Mistake::kMisalignedByElection) {
    rt.launch(
        100,
        [=] ESKER_LAMBDA(GroupItem & item) {
          const auto at = reinterpret_cast<std::uintptr_t>(&aim.words[1]);
          auto* const pair = reinterpret_cast<Pair*>(item.global_id() == 70 ? at : at - 8);
          shmem_put(item, pair, {1, 2}, item.n_pes() - 1, PerLane{});
        },
        "archery");
  } else {
    rt.launch(
        100, [=] ESKER_LAMBDA(GroupItem & item) { aim(item, item.global_id(), item.global_id() == 70); },
        "archery");
  }
  rt.barrier_all();
}

void aim_from_a_handler(Runtime& rt, Mistake mistake) {
  const Aim aim{rt.heap().allocate<std::uint64_t>(100), mistake};
  const auto handler = rt.register_handler<std::uint64_t, std::uint32_t>(
      "archer", [=] ESKER_LAMBDA(HandlerContext & context, std::uint64_t&, const std::uint32_t& index) {
        aim(context, index, index == 70);
      });
  rt.launch(100, [=] ESKER_LAMBDA(WorkItem item) {
    shmem_am(item, handler, &aim.words[0], static_cast<std::uint32_t>(item.global_id()), 0);
  });
  rt.barrier_all();
}

using Aimer = void (*)(Runtime&, Mistake);

/// Lane 70 is lane 6 of group 2.
const std::string kWho = " by lane 6 of group 2 of kernel 'archery'";

void expect_death(std::uint32_t n_pes, Aimer aim, Mistake mistake, const std::string& text) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_pes(n_pes, [=](Runtime& rt) { aim(rt, mistake); }), text);
}

/// On one PE, where a call may be applied at once, and for another.
void expect_to_die_of(const std::string& who, Aimer aim) {
  expect_death(1, aim, Mistake::kNobody, "shmem_inc" + who + ": PE 9 is not below 1");
  expect_death(1, aim, Mistake::kOutside,
               "shmem_put" + who + ": a target of 8 bytes at heap offset 10995116[0-9]* is outside the symm");
  for (const std::uint32_t n_pes : {1u, 2u}) {
    const std::string pe = std::to_string(n_pes - 1);
    expect_death(n_pes, aim, Mistake::kMisaligned,
                 "PE 0: shmem_put" + who + ": a target of 16 bytes at heap offset [0-9]*8, for PE " + pe +
                     ", is not aligned to 16 bytes");
    expect_death(n_pes, aim, Mistake::kNoHandler,
                 "PE 0: shmem_am" + who + ": the Handler is a default one, which stands for no handler");
  }
}

TEST(BadCallDeathTest, NamesTheLane) { expect_to_die_of(kWho, aim_from_a_lane); }
TEST(BadCallDeathTest, NamesTheLaneOfAGroupKernel) {
  expect_to_die_of(kWho, aim_from_a_group);
  expect_death(2, aim_from_a_group, Mistake::kMisalignedByElection,
               "shmem_put" + kWho + ".*for PE 1, is not aligned to 16 bytes");
}
TEST(BadCallDeathTest, NamesTheHandler) { expect_to_die_of(" in a handler", aim_from_a_handler); }

/// Every operation, at `shift` bytes into the heap.
template <class T>
ESKER_HD T* shifted(const SymmetricArray<std::uint64_t>& words, std::uint64_t shift) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(words.data()) + shift);
}
void send_shifted(Runtime& rt, int operation) {
  const auto words = rt.heap().allocate<std::uint64_t>(8);
  const auto handler = rt.register_handler<std::uint64_t, std::uint32_t>(
      "shifted", [] ESKER_LAMBDA(HandlerContext&, std::uint64_t&, const std::uint32_t&) {});
  // By value: a kernel captures what is local.
  const auto send = [=] ESKER_LAMBDA(WorkItem item) {
    const std::uint32_t pe = item.n_pes() - 1;
    shmem_put(item, shifted<std::uint8_t>(words, 3), std::uint8_t{1}, pe);  // everything is aligned to 1
    if (operation == 0) shmem_put(item, shifted<std::uint16_t>(words, 1), std::uint16_t{1}, pe);
    if (operation == 1) shmem_put(item, shifted<std::uint32_t>(words, 2), 1u, pe);
    if (operation == 2) shmem_put(item, shifted<std::uint64_t>(words, 4), std::uint64_t{1}, pe);
    if (operation == 3) shmem_inc(item, shifted<std::uint32_t>(words, 6), pe);
    if (operation == 4) shmem_add(item, shifted<double>(words, 12), 1.0, pe);
    if (operation == 5) shmem_max(item, shifted<std::uint32_t>(words, 1), 1u, pe);
    if (operation == 6) shmem_xor(item, shifted<std::uint64_t>(words, 2), std::uint64_t{1}, pe);
    if (operation == 7) shmem_am(item, handler, shifted<std::uint64_t>(words, 4), 1u, pe);
  };
  rt.launch(1, send, "shifted");
  rt.barrier_all();
}

TEST(BadCallDeathTest, NamesWhatIsNotAlignedInEveryOperation) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string expected[] = {"shmem_put .*of 2 bytes.*to 2 bytes", "shmem_put .*of 4 bytes.*to 4 bytes",
                                  "shmem_put .*of 8 bytes.*to 8 bytes", "shmem_inc .*of 4 bytes.*to 4 bytes",
                                  "shmem_add .*of 8 bytes.*to 8 bytes", "shmem_max .*of 4 bytes.*to 4 bytes",
                                  "shmem_xor .*of 8 bytes.*to 8 bytes", "shmem_am .*of 8 bytes.*to 8 bytes"};
  for (int operation = 0; operation < 8; ++operation) {
    EXPECT_DEATH(run_pes(2, [=](Runtime& rt) { send_shifted(rt, operation); }), expected[operation]);
  }
}

enum class BadRequest { kNobody, kSource, kResult, kMisalignedResult, kNoHandler, kTarget };

/// A request for the last PE whose reply goes where it cannot.
template <class Context>
ESKER_HD void ask_badly(Context&& context, SymmetricArray<std::uint64_t> words, BadRequest bad,
                        Handler<std::uint64_t, std::uint64_t> handler) {
  const std::uint32_t pe = context.n_pes() - 1;
  std::uint64_t* const far = words.data() + kFar / sizeof(std::uint64_t);
  auto* const shifted = reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(words.data()) + 4);
  if (bad == BadRequest::kNobody) shmem_get(context, &words[0], &words[1], 9);
  if (bad == BadRequest::kSource) shmem_fetch_add(context, &words[0], far, 1, pe);
  if (bad == BadRequest::kResult) shmem_compare_swap(context, far, &words[0], 1, 2, pe);
  if (bad == BadRequest::kMisalignedResult) shmem_swap(context, shifted, &words[0], 1, pe);
  if (bad == BadRequest::kTarget) shmem_fetch_xor(context, then(handler, far, {}), &words[0], 1, pe);
  if (bad == BadRequest::kNoHandler)
    shmem_fetch_inc(context, then(Handler<std::uint64_t, std::uint64_t>{}, &words[0], {}), &words[0], pe);
}

void ask_badly_from_a_lane(Runtime& rt, BadRequest bad) {
  const auto words = rt.heap().allocate<std::uint64_t>(8);
  const auto handler = rt.register_handler<std::uint64_t, std::uint64_t>(
      "none", [] ESKER_LAMBDA(HandlerContext&, std::uint64_t&, const std::uint64_t&) {});
  rt.launch(
      100,
      [=] ESKER_LAMBDA(WorkItem item) {
        if (item.global_id() == 70 && item.pe() == 0) ask_badly(item, words, bad, handler);
      },
      "archery");
  rt.barrier_all();
}
void ask_badly_from_a_handler(Runtime& rt, BadRequest bad) {
  const auto words = rt.heap().allocate<std::uint64_t>(8);
  const auto none = rt.register_handler<std::uint64_t, std::uint64_t>(
      "none", [] ESKER_LAMBDA(HandlerContext&, std::uint64_t&, const std::uint64_t&) {});
  const auto handler = rt.register_handler<std::uint64_t, std::uint32_t>(
      "asks", [=] ESKER_LAMBDA(HandlerContext & context, std::uint64_t&, const std::uint32_t&) {
        ask_badly(context, words, bad, none);
      });
  rt.launch(1, [=] ESKER_LAMBDA(WorkItem item) { shmem_am(item, handler, &words[0], 1u, 0); });
  rt.barrier_all();
}

/// On one PE, where a request may be done at once, and for another.
void expect_bad_requests_to_die(const std::string& who, void (*ask)(Runtime&, BadRequest)) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto expect = [&](std::uint32_t n_pes, BadRequest bad, const std::string& text) {
    EXPECT_DEATH(run_pes(n_pes, [=](Runtime& rt) { ask(rt, bad); }), text);
  };
  const std::string outside = " at heap offset 10995116[0-9]* is outside the symmetric heap of [0-9]* bytes";
  for (const std::uint32_t n_pes : {1u, 2u}) {
    expect(n_pes, BadRequest::kNobody, "shmem_get" + who + ": PE 9 is not below " + std::to_string(n_pes));
    expect(n_pes, BadRequest::kSource, "shmem_fetch_add" + who + ": a target of 8 bytes" + outside);
    expect(n_pes, BadRequest::kResult,
           "shmem_compare_swap" + who + ": the reply's target of 8 bytes" + outside);
    expect(n_pes, BadRequest::kMisalignedResult,
           "shmem_swap" + who +
               ": the reply's target of 8 bytes at heap offset [0-9]*, for PE 0, is not "
               "aligned to 8 bytes");
    expect(n_pes, BadRequest::kTarget, "shmem_fetch_xor" + who + ": the reply's target of 8 bytes" + outside);
    expect(n_pes, BadRequest::kNoHandler,
           "shmem_fetch_inc" + who + ": the Handler is a default one, which stands for no handler");
  }
}
TEST(BadRequestDeathTest, NamesTheLane) { expect_bad_requests_to_die(kWho, ask_badly_from_a_lane); }
TEST(BadRequestDeathTest, NamesTheHandler) {
  expect_bad_requests_to_die(" in a handler", ask_badly_from_a_handler);
}

/// PE 1 leaves; PE 0 sends to it until it hears of that.
template <class Item>
void leave_while_lanes_wait(Runtime& rt) {
  const auto word = rt.heap().allocate<std::uint64_t>(1);
  if (rt.pe() == 1) throw std::runtime_error("had enough");
  for (;;) {
    rt.launch(
        kSimulated ? 1000 : 5000,
        [=] ESKER_LAMBDA(Item item) {
          for (int i = 0; i < 100; ++i) shmem_inc(item, word.data(), 1);
        },
        "siege");
    rt.quiet();
  }
}
/// The same; PE 0 asks, and waits for replies that nobody sends.
void leave_while_lanes_ask(Runtime& rt) {
  const auto words = rt.heap().allocate<std::uint64_t>(5000);
  const auto counter = rt.heap().allocate<std::uint64_t>(1);
  if (rt.pe() == 1) throw std::runtime_error("had enough");
  for (;;) {
    rt.launch(
        kSimulated ? 1000 : 5000,
        [=] ESKER_LAMBDA(WorkItem item) {
          shmem_fetch_inc(item, &words[item.global_id()], counter.data(), 1);
        },
        "siege");
    rt.quiet();
  }
}
void expect_both_to_end(void (*body)(Runtime&)) {
  Config config = tiny_config();
  if (kOnGpu) config.peer_memory = PeerMemory::kOff;
  const auto failed = Pes(2, config).run_and_catch(body);
  ASSERT_TRUE(failed[0] && failed[1]);
  EXPECT_EQ(failed[0]->kind, Error::Kind::kNetwork) << failed[0]->message;
  EXPECT_NE(failed[0]->message.find("PE 1 has left the job by an exception"), std::string::npos)
      << failed[0]->message;
  EXPECT_EQ(failed[1]->message, "had enough");
}
TEST(APeThatLeaves, EndsThoseWhoseLanesWaitForIt) { expect_both_to_end(leave_while_lanes_wait<WorkItem>); }
TEST(APeThatLeaves, EndsThoseWhoseGroupsWaitForIt) { expect_both_to_end(leave_while_lanes_wait<GroupItem&>); }

TEST(APeThatLeaves, EndsThoseWhoseRequestsWaitForIt) { expect_both_to_end(leave_while_lanes_ask); }

}  // namespace
}  // namespace esker::testing
