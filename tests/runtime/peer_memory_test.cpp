// What a PE changes, or takes away, while the kernels of others reach its memory.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "../device/gtest.hpp"
#include "pes.hpp"

#if defined(ESKER_TEST_SIMULATED)
#include <esker/net/gpu/pe_state.hpp>
#endif

namespace esker::testing {
namespace {

Config on_device() {
  Config config = tiny_config();
  config.heap = HeapKind::kDevice;
  return config;
}

using Counts = SymmetricArray<std::uint64_t>;

/// Each lane counts at each PE's word for this one.
void count_everywhere(Runtime& rt, const Counts& counts, std::uint64_t lanes) {
  rt.launch(lanes, [=] ESKER_LAMBDA(WorkItem item) {
    for (std::uint32_t pe = 0; pe < item.n_pes(); ++pe) shmem_inc(item, &counts[item.pe()], pe);
  });
}

using Add = Handler<std::uint64_t, std::uint32_t>;

Add register_add(Runtime& rt, const std::string& name) {
  return rt.register_handler<std::uint64_t, std::uint32_t>(
      name,
      [] ESKER_LAMBDA(HandlerContext&, std::uint64_t & count, const std::uint32_t& by) { count += by; });
}

/// The same by a handler; lanes that follow each other count at different words, from `first` on.
void call_everywhere(Runtime& rt, const Add& add, const Counts& counts, std::uint64_t first,
                     std::uint64_t words, std::uint64_t lanes) {
  rt.launch(lanes, [=] ESKER_LAMBDA(WorkItem item) {
    for (std::uint32_t pe = 0; pe < item.n_pes(); ++pe)
      shmem_am(item, add, &counts[first + item.global_id() % words], 1u, pe);
  });
}

/// Each lane asks the other PE of two for the number of those before it.
void ask_other(Runtime& rt, const Counts& results, const Counts& counter) {
  rt.launch(results.size(), [=] ESKER_LAMBDA(WorkItem item) {
    shmem_fetch_inc(item, &results[item.global_id()], counter.data(), 1 - item.pe());
  });
}

// Passes of a PE read what its lanes share while the heap's end changes in it.
TEST(PeerMemory, TheHeapGrowsWhilePeersSend) {
  constexpr std::uint32_t kRounds = 20;
  constexpr std::uint64_t kLanes = 500;
  run_pes(3, on_device(), [](Runtime& rt) {
    const auto counts = rt.heap().allocate<std::uint64_t>(rt.n_pes());
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      if (round % rt.n_pes() == rt.pe()) count_everywhere(rt, counts, kLanes);
      (void)rt.heap().allocate<std::uint64_t>(8);
    }
    rt.barrier_all();
    const std::vector<std::uint64_t> got = rt.heap().read(counts);
    for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
      const std::uint32_t its_rounds = kRounds / rt.n_pes() + (pe < kRounds % rt.n_pes() ? 1 : 0);
      EXPECT_EQ(got[pe], kLanes * its_rounds) << "of PE " << pe;
    }
  });
}

// PE 0 reaches the heap of PE 1, which sends its requests to a PE that sends none.
TEST(PeerMemory, RequestsTravelToAPeThatReachesTheOneThatAsks) {
  constexpr std::uint64_t kLanes = 300;
  Config config = on_device();
  config.direct_messages = 3;
  Pes pes(2, config);
  pes.config(1).direct_messages = 0;
  pes.run([](Runtime& rt) {
    const auto counter = rt.heap().allocate<std::uint64_t>(1);
    const auto results = rt.heap().allocate<std::uint64_t>(kLanes);
    ask_other(rt, results, counter);
    rt.quiet();
    std::vector<std::uint64_t> got = rt.heap().read(results);
    std::sort(got.begin(), got.end());
    for (std::uint64_t k = 0; k < kLanes; ++k) ASSERT_EQ(got[k], k) << "PE " << rt.pe();
    rt.barrier_all();
  });
}

// Passes are chosen and started among handlers that are known while more are being registered.
TEST(PeerMemory, HandlersAreRegisteredWhilePeersCallOthers) {
  constexpr std::uint32_t kHandlers = 60;
  constexpr std::uint64_t kLanes = 2000;
  run_pes(2, on_device(), [](Runtime& rt) {
    const auto counts = rt.heap().allocate<std::uint64_t>(8);
    Add add = register_add(rt, "add 0");
    call_everywhere(rt, add, counts, 0, counts.size(), kLanes);
    for (std::uint32_t i = 1; i < kHandlers; ++i) add = register_add(rt, "add " + std::to_string(i));
    call_everywhere(rt, add, counts, 0, counts.size(), kLanes);
    rt.barrier_all();
    for (const std::uint64_t count : rt.heap().read(counts))
      EXPECT_EQ(count, 2 * kLanes * rt.n_pes() / counts.size());
  });
}

#if defined(ESKER_TEST_SIMULATED)

// Only there can access be refused, and memory be freed without a wait for the kernels of the whole process.

/// Pairs of devices, and so of PEs, of which the first does not reach the second's memory.
class NoAccess {
 public:
  explicit NoAccess(const char* pairs) { setenv("SIMULATED_NO_ACCESS", pairs, 1); }
  ~NoAccess() { unsetenv("SIMULATED_NO_ACCESS"); }
  NoAccess(const NoAccess&) = delete;
  NoAccess& operator=(const NoAccess&) = delete;
};

class PeerMemoryWithout : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Pairs, PeerMemoryWithout, ::testing::Values("0-1", "1-0", "0-1,1-0"));

TEST_P(PeerMemoryWithout, AccessAPairUsesTheNetworkAtBothEndsAndOthersTheirLinks) {
  const NoAccess no_access(GetParam());
  static constexpr std::uint64_t kLanes = 300;
  Config config = on_device();
  config.direct_messages = 1;  // of three: the heap, and the mailbox
  run_pes(3, config, [](Runtime& rt) {
    const auto counts = rt.heap().allocate<std::uint64_t>(rt.n_pes());
    const auto calls = rt.heap().allocate<std::uint64_t>(rt.n_pes());
    const Add add = register_add(rt, "add");
    count_everywhere(rt, counts, kLanes);
    count_everywhere(rt, counts, kLanes);
    call_everywhere(rt, add, calls, rt.pe(), 1, kLanes);
    rt.barrier_all();
    for (const std::uint64_t count : rt.heap().read(counts)) EXPECT_EQ(count, 2 * kLanes);
    for (const std::uint64_t count : rt.heap().read(calls)) EXPECT_EQ(count, kLanes);
    for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
      const bool by_network =
          detail::ContextAccess::of(rt.device_context()).pe_state->bin(pe) == gpu::kNetwork;
      EXPECT_EQ(by_network, rt.pe() + pe == 1) << "from PE " << rt.pe() << " to PE " << pe;
    }
  });
}

TEST(PeerMemory, WhereItIsOnAPairWithoutAccessIsNamed) {
  const NoAccess no_access("0-1");
  Config config = on_device();
  config.peer_memory = PeerMemory::kOn;
  const auto failed = Pes(2, config).run_and_catch([](Runtime&) {});
  for (std::uint32_t pe = 0; pe < 2; ++pe) {
    ASSERT_TRUE(failed[pe]);
    EXPECT_EQ(failed[pe]->kind, Error::Kind::kDevice);
    const std::string expected = pe == 0
                                     ? "PE 0 does not reach the GPU of PE 1: opening its memory from GPU 0: "
                                       "ErrorPeerAccessUnsupported"
                                     : "PE 1 does not reach the GPU of PE 0: that one does not reach";
    EXPECT_NE(failed[pe]->message.find(expected), std::string::npos) << failed[pe]->message;
  }
}

// PE 0 leaves by an exception and is gone before lanes of PE 1 write into its heap and its inbox.
TEST(PeerMemory, OfAPeThatHasFailedStaysForThoseWhoStillWriteIntoIt) {
  constexpr std::uint64_t kLanes = 64;
  Config config = on_device();
  config.direct_messages = 2;
  loopback::World world(2);
  SystemAtomic<std::uint32_t> is_gone{0};
  const auto start = [&](std::uint32_t pe, const auto& body) {
    return std::jthread([&world, config, pe, body] {
      try {
        Runtime rt(config,
                   detail::Medium{[&](const TransportLimits& limits) { return world.connect(pe, limits); }});
        const auto counts = rt.heap().allocate<std::uint64_t>(8);
        rt.barrier_all();
        body(rt, counts);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), pe == 0 ? Error::Kind::kContract : Error::Kind::kNetwork) << error.what();
      }
    });
  };
  std::jthread stays = start(1, [gone = &is_gone](Runtime& rt, const Counts& counts) {
    rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
      while (gone->load_acquire() == 0) {
      }
      for (std::uint32_t i = 0; i < 10; ++i) shmem_inc(item, &counts[i % counts.size()], 0);
    });
    rt.barrier_all();
    ADD_FAILURE() << "PE 0 has come to the barrier";
  });
  start(0, [](Runtime&, const Counts&) { throw Error(Error::Kind::kContract, "enough"); }).join();
  is_gone.store_release(1);
}

#endif

}  // namespace
}  // namespace esker::testing
