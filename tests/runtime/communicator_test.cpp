// Runtimes whose PEs are threads of a process, as programs make them.
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <esker/config.hpp>
#include <esker/runtime.hpp>

#include <gtest/gtest.h>

#include "ways.hpp"

namespace esker::testing {
namespace {

/// Runs `body` once a PE, on a thread of its own.
void on_threads(std::uint32_t n, const std::function<void(std::uint32_t)>& body) {
  std::vector<std::jthread> threads;
  for (std::uint32_t pe = 0; pe < n; ++pe) threads.emplace_back([&, pe] { body(pe); });
}

void count(Runtime& rt, std::uint64_t lanes) {
  const auto words = rt.heap().allocate<std::uint64_t>(1);
  rt.launch(lanes * rt.n_pes(), [=](WorkItem item) {
    shmem_inc(item, &words[0], static_cast<std::uint32_t>(item.global_id() % item.n_pes()));
  });
  rt.barrier_all();
  EXPECT_EQ(words[0], lanes * rt.n_pes());
  rt.heap().free(words);
}

TEST(ThreadCommunicator, IsForRuntimesOneAfterTheOther) {
  const std::vector<Communicator> pes = Communicator::threads(3);
  for (int round = 0; round < 3; ++round) {
    on_threads(3, [&](std::uint32_t pe) {
      Runtime rt(pes[pe], tiny_config());
      EXPECT_EQ(rt.pe(), pe);
      EXPECT_EQ(rt.n_pes(), 3u);
      EXPECT_EQ(rt.transport_name(), "loopback");
      count(rt, 200);
    });
  }
}

TEST(ThreadCommunicator, IsForSeveralRuntimesAtATimeThatHavePesInCommon) {
  const std::vector<Communicator> all = Communicator::threads(4);
  const std::vector<Communicator> even = Communicator::threads(2), odd = Communicator::threads(2);
  on_threads(4, [&](std::uint32_t pe) {
    Runtime everybody(all[pe], tiny_config());
    Runtime half((pe % 2 == 0 ? even : odd)[pe / 2], tiny_config());
    Runtime again(all[pe], tiny_config());
    EXPECT_EQ(half.n_pes(), 2u);
    for (Runtime* rt : {&half, &again, &everybody, &half}) count(*rt, 100);
  });
}

// What is refused for its settings has met nobody: the next one meets the others' first.
TEST(ThreadCommunicator, IsForAnotherRuntimeAfterOneThatIsRefused) {
  const std::vector<Communicator> pes = Communicator::threads(2);
  on_threads(2, [&](std::uint32_t pe) {
    Config bad = tiny_config();
    bad.package_bytes = 100;
    if (pe == 0) EXPECT_THROW(Runtime(pes[pe], bad), Error);
    Config config = tiny_config();
    config.hang_seconds = 5;
    Runtime rt(pes[pe], config);
    count(rt, 100);
  });
}

TEST(ThreadCommunicator, EndsBeforeItsRuntimes) {
  std::vector<Communicator> pes = Communicator::threads(1);
  Runtime rt(pes[0], tiny_config());
  pes.clear();
  count(rt, 10);
}

TEST(ThreadCommunicator, OfNobodyIsRefusedAndSoIsATransportOfProcesses) {
  EXPECT_THROW(Communicator::threads(0), Error);
  EXPECT_THROW(Communicator::threads(1u << 30), Error);
  const std::vector<Communicator> one = Communicator::threads(1);
  Config config = tiny_config();
  config.transport = TransportKind::kMpi;
  try {
    Runtime rt(one[0], config);
    ADD_FAILURE() << "threads are reached by MPI";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kConfiguration);
    EXPECT_NE(std::string(error.what()).find("threads"), std::string::npos) << error.what();
  }
  Runtime rt(one[0], tiny_config());  // as if that had not been
  count(rt, 10);
}

}  // namespace
}  // namespace esker::testing
