// A call that names a PE or an address that does not exist ends the job, and says who made it; so does a PE
// that leaves while lanes elsewhere wait for it.
#include <stdexcept>
#include <string>

#include "../device/gtest.hpp"
#include "pes.hpp"

namespace esker::testing {
namespace {

constexpr std::uint64_t kFar = std::uint64_t{1} << 40;  // bytes

struct Aim {
  SymmetricArray<std::uint64_t> words;
  bool at_nobody;

  /// A good message, or, if `wrong`, a bad one.
  template <class Context>
  ESKER_HD void operator()(Context&& context, std::uint64_t index, bool wrong) const {
    std::uint64_t* const target = &words[index];
    if (at_nobody)
      shmem_inc(context, target, wrong ? 9 : 0);
    else
      shmem_put(context, wrong ? target + kFar / sizeof *target : target, 1, 0);
  }
};

void aim_from_a_lane(Runtime& rt, bool at_nobody) {
  const Aim aim{rt.heap().allocate<std::uint64_t>(100), at_nobody};
  rt.launch(
      100, [=] ESKER_LAMBDA(WorkItem item) { aim(item, item.global_id(), item.global_id() == 70); },
      "archery");
  rt.barrier_all();
}

void aim_from_a_group(Runtime& rt, bool at_nobody) {
  const Aim aim{rt.heap().allocate<std::uint64_t>(100), at_nobody};
  rt.launch(
      100, [=] ESKER_LAMBDA(GroupItem & item) { aim(item, item.global_id(), item.global_id() == 70); },
      "archery");
  rt.barrier_all();
}

void aim_from_a_handler(Runtime& rt, bool at_nobody) {
  const Aim aim{rt.heap().allocate<std::uint64_t>(100), at_nobody};
  const auto handler = rt.register_handler<std::uint64_t, std::uint32_t>(
      "archer", [=] ESKER_LAMBDA(HandlerContext & context, std::uint64_t&, const std::uint32_t& index) {
        aim(context, index, index == 70);
      });
  rt.launch(100, [=] ESKER_LAMBDA(WorkItem item) {
    shmem_am(item, handler, &aim.words[0], static_cast<std::uint32_t>(item.global_id()), 0);
  });
  rt.barrier_all();
}

using Aimer = void (*)(Runtime&, bool at_nobody);

/// Lane 70 is lane 6 of group 2; on a GPU, where calls come back later, the message names the kernel too.
const std::string kWho = std::string(" by lane 6 of group 2") + (kOnGpu ? " of kernel 'archery'" : "");

void expect_to_die_of(const std::string& who, Aimer aim) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(run_pes(1, [=](Runtime& rt) { aim(rt, true); }), "shmem_inc" + who + ": PE 9 is not below 1");
  EXPECT_DEATH(
      run_pes(1, [=](Runtime& rt) { aim(rt, false); }),
      "shmem_put" + who + ": a target of 8 bytes at heap offset 10995116[0-9]* is outside the symmetric");
}

TEST(BadTargetDeathTest, NamesTheLane) { expect_to_die_of(kWho, aim_from_a_lane); }
TEST(BadTargetDeathTest, NamesTheLaneOfAGroupKernel) { expect_to_die_of(kWho, aim_from_a_group); }
TEST(BadTargetDeathTest, NamesTheHandler) { expect_to_die_of(" in a handler", aim_from_a_handler); }

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

}  // namespace
}  // namespace esker::testing
