// Aggregators under load: producers that help, a network that dawdles, each message counted.
#include <esker/aggregator/aggregator.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <esker/queue/waiting.hpp>

#include "one_pe.hpp"
#include "seed.hpp"

namespace esker {
namespace {

using namespace std::chrono_literals;

struct Package {
  Command command;
  std::uint32_t words;
  std::vector<std::uint64_t> address_words;
};

/// Everything that a producer will send, entered into the ledger before any thread starts.
std::vector<Package> plan(std::mt19937_64& random, Ledger& ledger, std::uint32_t n_pes,
                          std::uint32_t payload_bytes, int packages) {
  std::vector<Package> all;
  for (int i = 0; i < packages; ++i) {
    Package package;
    package.words = static_cast<std::uint32_t>(1 + draw(random, draw(random, 4) == 0 ? kMaxMessageWords : 2));
    package.command = active_message(static_cast<std::uint16_t>(package.words));
    const auto count = 1 + draw(random, payload_bytes / (8 * package.words));
    const bool one_destination = draw(random, 8) == 0;
    for (std::uint64_t m = 0; m < count; ++m) {
      const auto pe = one_destination ? 0 : static_cast<std::uint32_t>(draw(random, n_pes));
      package.address_words.push_back(address_word(pe, ledger.add(pe, package.command)));
    }
    all.push_back(std::move(package));
  }
  return all;
}

void produce(OnePe& pe, const std::vector<Package>& packages) {
  PackageQueue queue = pe.memory.queue();
  Doorbell nobody_rings;
  for (const Package& package : packages) {
    const std::uint64_t ticket = queue.reserve();
    Backoff backoff{100us};
    while (!queue.was_empty(ticket)) {
      if (pe.aggregators.help()) {
        backoff.reset();
      } else {
        backoff.wait(nobody_rings, [&] { return queue.was_empty(ticket); });
      }
    }
    publish(queue, ticket, package.command, package.words, package.address_words);
  }
}

void run_round(std::uint64_t seed) {
  constexpr std::uint32_t kPayloadBytes = 1024;
  constexpr int kPackages = 300;
  std::mt19937_64 random(seed);
  const auto n_pes = static_cast<std::uint32_t>(1 + draw(random, 5));
  const std::uint32_t buffer_bytes = 152u << draw(random, 5);
  const AggregatorSettings settings{.threads = static_cast<std::uint32_t>(1 + draw(random, 3)),
                                    .pe = OnePe::kSource,
                                    .n_pes = n_pes,
                                    .buffer_bytes = buffer_bytes,
                                    .buffers = n_pes + static_cast<std::uint32_t>(draw(random, 3)),
                                    .timeout = 1us * draw(random, 200),
                                    .max_age = 1ms};
  Ledger ledger(OnePe::kSource, std::max(n_pes, OnePe::kSource + 1));
  std::vector<std::vector<Package>> plans;
  for (int i = 0; i < 3; ++i) plans.push_back(plan(random, ledger, n_pes, kPayloadBytes, kPackages));
  OnePe pe(settings, 1u << draw(random, 5), kPayloadBytes);
  pe.aggregators.set_producing(draw(random, 2) == 0);

  std::atomic<int> running{3};
  std::vector<std::jthread> producers;
  for (const auto& packages : plans) {
    producers.emplace_back([&] {
      produce(pe, packages);
      running.fetch_sub(1, std::memory_order_release);
    });
  }
  Doorbell nobody_rings;
  Backoff backoff{100us};
  const auto receive_or_rest = [&](auto holds) {
    while (!holds()) {
      bool moved = draw(random, 4) != 0 && pe.receive_one(ledger);
      if (draw(random, 8) == 0) moved |= pe.aggregators.help();
      if (draw(random, 64) == 0) pe.aggregators.request_flush();
      if (moved) {
        backoff.reset();
      } else {
        backoff.wait(nobody_rings, holds);
      }
    }
  };
  receive_or_rest([&] { return running.load(std::memory_order_acquire) == 0; });
  const std::uint64_t epoch = pe.aggregators.request_flush();
  receive_or_rest([&] { return pe.aggregators.flushed(epoch); });
  while (pe.receive_one(ledger)) {
  }
  EXPECT_EQ(pe.aggregators.messages(), ledger.sent());
  EXPECT_EQ(pe.aggregators.packages(), 3u * kPackages);
  ledger.expect_each_exactly_once();
}

TEST(AggregatorsUnderLoad, DeliverEachMessageOnceAmongThreadsAndHelpers) {
  for (std::uint64_t round = 0; round < 12 && !HasFailure(); ++round) {
    SCOPED_TRACE(testing::Message() << "round " << round << " of seed " << test_seed());
    run_round(test_seed() + round);
  }
}

}  // namespace
}  // namespace esker
