// Active messages over loopback.
#include <string>

#include "messages.hpp"
#include "pes.hpp"

namespace esker::testing {
namespace {

constexpr std::uint64_t kGranule = 4096;

// The parameter is the number of apply helpers.
class ActiveMessage : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  Config config() const {
    Config config = tiny_config();
    config.apply_helpers = GetParam();
    return config;
  }
};

TEST_P(ActiveMessage, EachRunsOnceWithItsOwnArgumentsOfZeroToSixtyFourBytes) {
  run_pes(3, config(), [](Runtime& rt) {
    check_arguments<0>(rt);
    check_arguments<1>(rt);
    check_arguments<7>(rt);
    check_arguments<8>(rt);
    check_arguments<9>(rt);
    check_arguments<24>(rt);
    check_arguments<63>(rt);
    check_arguments<64>(rt);
  });
}

TEST_P(ActiveMessage, BarrierWaitsForChainsOverThePes) {
  for (const std::uint32_t n : {1u, 2u, 4u}) {
    run_pes(n, config(), [](Runtime& rt) {
      check_chains(rt, 1);
      check_chains(rt, 9);
    });
  }
}

TEST_P(ActiveMessage, BarrierWaitsForFanOut) {
  run_pes(3, config(), [](Runtime& rt) { check_fan_out(rt, 9, 8); });
}

// Plain counters: a handler that is not alone on its granule loses counts, and ThreadSanitizer sees it.
TEST_P(ActiveMessage, HandlersAreAloneOnTheirGranule) {
  struct Granule {
    std::uint64_t calls;
    std::uint64_t targets[kGranule / 8 - 1];
  };
  constexpr std::uint64_t kMessages = 1000, kGranules = 5;
  run_pes(4, config(), [](Runtime& rt) {
    const auto granules = rt.heap().allocate<Granule>(kGranules);
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(granules.data()) % kGranule, 0u);
    const auto handler = rt.register_handler<std::uint64_t, std::uint32_t>(
        "count", [=](HandlerContext&, std::uint64_t& target, const std::uint32_t& granule) {
          ++target;
          ++granules[granule].calls;
        });
    rt.launch(kMessages, [=](WorkItem item) {
      const auto granule = static_cast<std::uint32_t>(item.global_id() % kGranules);
      const std::uint64_t word = item.global_id() % std::size(Granule{}.targets);
      for (std::uint32_t pe = 0; pe < item.n_pes(); ++pe) {
        shmem_am(item, handler, &granules[granule].targets[word], granule, pe);
      }
    });
    rt.barrier_all();
    for (const Granule& granule : granules) {
      EXPECT_EQ(granule.calls, rt.n_pes() * kMessages / kGranules);
      std::uint64_t sum = 0;
      for (const std::uint64_t target : granule.targets) sum += target;
      EXPECT_EQ(sum, granule.calls);
    }
  });
}

TEST_P(ActiveMessage, HandlerThatThrowsEndsEveryPesNextCallWithItsName) {
  const auto failed = Pes(3, config()).run_and_catch([](Runtime& rt) {
    const auto word = rt.heap().allocate<std::uint64_t>(1);
    const auto handler = rt.register_handler<std::uint64_t, std::uint32_t>(
        "brittle",
        [](HandlerContext&, std::uint64_t&, const std::uint32_t&) { throw std::runtime_error("cracked"); });
    rt.barrier_all();
    if (rt.pe() == 0) {
      rt.launch(1, [=](WorkItem item) { shmem_am(item, handler, word.data(), 1, 1); });
    }
    rt.barrier_all();
  });
  for (const auto& failure : failed) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind, Error::Kind::kHandler) << failure->message;
    for (const char* part : {"PE 1", "'brittle'", "cracked", "message of PE 0"}) {
      EXPECT_NE(failure->message.find(part), std::string::npos) << failure->message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Helpers, ActiveMessage, ::testing::Values(0, 1, 3));

TEST(Handler, KnowsWhereItRunsAndWhoSent) {
  struct Seen {
    std::uint32_t pe, n_pes, source;
  };
  run_pes(3, [](Runtime& rt) {
    const auto seen = rt.heap().allocate<Seen>(rt.n_pes());
    const auto handler = rt.register_handler<Seen, std::uint32_t>(
        "who", [](HandlerContext& context, Seen& s, const std::uint32_t&) {
          s = {context.pe(), context.n_pes(), context.source()};
        });
    rt.launch(rt.n_pes(), [=](WorkItem item) {
      shmem_am(item, handler, &seen[item.pe()], 0, static_cast<std::uint32_t>(item.global_id()));
    });
    rt.barrier_all();
    for (std::uint32_t source = 0; source < rt.n_pes(); ++source) {
      EXPECT_EQ(seen[source].pe, rt.pe());
      EXPECT_EQ(seen[source].n_pes, 3u);
      EXPECT_EQ(seen[source].source, source);
    }
  });
}

TEST(Handler, OfAnotherNameOrTypeOnAnotherPeIsAnErrorEverywhere) {
  const auto nothing = [](HandlerContext&, auto&, const auto&) {};
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

TEST(Handler, OneMoreThanTheLegalNumberIsAnErrorEverywhere) {
  const auto failed = Pes(2).run_and_catch([](Runtime& rt) {
    const auto hits = rt.heap().allocate<std::uint64_t>(1);
    const auto one = [](HandlerContext&, std::uint64_t& word, const std::uint32_t&) { ++word; };
    Handler<std::uint64_t, std::uint32_t> last;
    for (int i = 0; i < 1024; ++i)
      last = rt.register_handler<std::uint64_t, std::uint32_t>(std::to_string(i), one);
    rt.launch(1, [=](WorkItem item) { shmem_am(item, last, hits.data(), 0, 1 - item.pe()); });
    rt.barrier_all();
    EXPECT_EQ(hits[0], 1u);
    rt.register_handler<std::uint64_t, std::uint32_t>("too many", one);
  });
  for (const auto& failure : failed) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind, Error::Kind::kHandler);
    EXPECT_NE(failure->message.find("'too many': there are 1024"), std::string::npos) << failure->message;
  }
}

}  // namespace
}  // namespace esker::testing
