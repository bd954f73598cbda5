// Active messages of any size to handlers on the host.
#include <cstring>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../device/gtest.hpp"
#include "blocks.hpp"
#include "pes.hpp"

namespace esker::testing {
namespace {

std::vector<Way> shapes() {
  if (kOnGpu) return {way("heap on the host", 2, [](Config& config) { config.heap = HeapKind::kHost; })};
  const auto shape = [](std::uint32_t n_pes, std::uint32_t threads, std::uint32_t helpers) {
    return way(std::to_string(threads) + " lane threads, " + std::to_string(helpers) + " helpers", n_pes,
               [=](Config& config) {
                 config.cpu_threads = threads;
                 config.apply_helpers = helpers;
               });
  };
  return {shape(1, 1, 0), shape(2, 1, 0), shape(2, 2, 2), shape(3, 1, 1), shape(4, 1, 0), shape(8, 1, 0)};
}

class Bytes : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, Bytes, ::testing::ValuesIn(shapes()));

constexpr std::uint64_t kMost = 1024 - 96;  // with tiny_config()

struct Seen {
  std::uint64_t calls, wrong, bytes;
};

std::vector<std::byte> message(std::uint32_t from, std::uint32_t to, std::uint64_t size) {
  std::vector<std::byte> bytes(size);
  for (std::uint64_t i = 0; i < size; ++i) bytes[i] = std::byte{block_byte(size, from, to, i)};
  return bytes;
}

auto register_check(Runtime& rt) {
  return rt.register_bytes_handler<Seen>(
      "check", [](HandlerContext& context, Seen& seen, std::span<const std::byte> bytes) {
        const std::vector<std::byte> expected = message(context.source(), context.pe(), bytes.size());
        ++seen.calls;
        seen.bytes += bytes.size();
        seen.wrong += std::equal(bytes.begin(), bytes.end(), expected.begin(), expected.end()) ? 0 : 1;
        seen.wrong += reinterpret_cast<std::uintptr_t>(bytes.data()) % 8;
      });
}

void expect_seen(Runtime& rt, SymmetricArray<Seen> seen, std::uint64_t calls, std::uint64_t bytes) {
  const Seen found = rt.heap().read(seen)[0];
  EXPECT_EQ(found.calls, calls) << "on PE " << rt.pe();
  EXPECT_EQ(found.wrong, 0u);
  EXPECT_EQ(found.bytes, bytes);
}

TEST_P(Bytes, OfEverySizeComeWithOneCall) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto seen = rt.heap().allocate<Seen>(1);
    const auto check = register_check(rt);
    std::uint64_t calls = 0, bytes = 0;
    for (const std::uint64_t size : {0ul, 1ul, 7ul, 8ul, 9ul, 100ul, kMost - 1, kMost}) {
      for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe)
        rt.call_bytes(check, seen.data(), message(rt.pe(), pe, size), pe);
      calls += rt.n_pes();
      bytes += size * rt.n_pes();
    }
    rt.barrier_all();
    expect_seen(rt, seen, calls, bytes);
  });
}

#if defined(ESKER_ON_CPU)
TEST_P(Bytes, FromLanesComeOnceEach) {
  if (kOnGpu) GTEST_SKIP() << "lanes on a GPU have no such call";
  run_pes(GetParam(), [](Runtime& rt) {
    constexpr std::uint64_t kLanes = 300;
    const auto seen = rt.heap().allocate<Seen>(1);
    const auto check = register_check(rt);
    rt.launch(kLanes, [=](WorkItem item) {
      const auto pe = static_cast<std::uint32_t>(item.global_id() % item.n_pes());
      shmem_am_bytes(item, check, seen.data(), message(item.pe(), pe, item.global_id()), pe);
    });
    rt.launch(kLanes, [=](GroupItem& item) {
      const auto pe = static_cast<std::uint32_t>(item.global_id() % item.n_pes());
      shmem_am_bytes(item, check, seen.data(), message(item.pe(), pe, item.global_id()), pe);
    });
    rt.barrier_all();
    std::uint64_t calls = 0, bytes = 0;
    for (std::uint64_t k = rt.pe(); k < kLanes; k += rt.n_pes()) {
      calls += 2 * rt.n_pes();
      bytes += 2 * rt.n_pes() * k;
    }
    expect_seen(rt, seen, calls, bytes);
  });
}
#endif

TEST_P(Bytes, QuietAndBarrierWaitForThemAndWhatTheirHandlersSend) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto count = rt.heap().allocate<std::uint64_t>(1);
    const auto handler = rt.register_bytes_handler<std::uint64_t>(
        "answer", [](HandlerContext& context, std::uint64_t& at, std::span<const std::byte> bytes) {
          shmem_add(context, &at, bytes.size(), context.source());
        });
    const std::vector<std::byte> bytes(10);
    for (std::uint64_t round = 1; round < 20; ++round) {
      for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) rt.call_bytes(handler, count.data(), bytes, pe);
      if (round % 2 == 0) rt.quiet();
      rt.barrier_all();
      EXPECT_EQ(rt.heap().read(count)[0], round * 10 * rt.n_pes());
      rt.barrier_all();
    }
  });
}

#if defined(ESKER_TEST_CUDA) || defined(ESKER_TEST_HIP) || defined(ESKER_TEST_SIMULATED)
TEST(BytesOnAGpu, AreRefusedWhereTheHeapIsThere) {
  const auto failed = Pes(2).run_and_catch([](Runtime& rt) { register_check(rt); });
  for (const auto& failure : failed) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind, Error::Kind::kHandler);
    EXPECT_NE(failure->message.find("run on the host, and the heap is in the memory of"), std::string::npos)
        << failure->message;
  }
}
#else
TEST(BytesCalls, AHandlerThatThrowsEndsTheJob) {
  const auto failed = Pes(2).run_and_catch([](Runtime& rt) {
    const auto word = rt.heap().allocate<std::uint64_t>(1);
    const auto handler = rt.register_bytes_handler<std::uint64_t>(
        "refuse", [](HandlerContext&, std::uint64_t&, std::span<const std::byte>) {
          throw std::runtime_error("not these");
        });
    if (rt.pe() == 0) rt.call_bytes(handler, word.data(), {}, 1);
    rt.barrier_all();
  });
  for (const auto& failure : failed) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind, Error::Kind::kHandler);
    EXPECT_NE(failure->message.find("handler 'refuse' threw on PE 1 for a message of PE 0: not these"),
              std::string::npos)
        << failure->message;
  }
}

#if !defined(ESKER_TEST_SANITIZED)
TEST(BytesDeathTest, MisuseEndsTheJobWithTheValues) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto aim = [&](std::uint64_t bytes, std::uint64_t at, std::uint32_t pe, bool has_handler) {
    run_pes(1, [&](Runtime& rt) {
      const auto words = rt.heap().allocate<std::uint64_t>(16);
      BytesHandler<std::uint64_t> handler;
      if (has_handler)
        handler = rt.register_bytes_handler<std::uint64_t>(
            "none", [](HandlerContext&, std::uint64_t&, std::span<const std::byte>) {});
      rt.call_bytes(handler, &words[at], std::vector<std::byte>(bytes), pe);
    });
  };
  EXPECT_DEATH(aim(kMost + 1, 0, 0, true),
               "Runtime::call_bytes: a message with 929 bytes is longer than a node buffer allows, 928");
  EXPECT_DEATH(aim(1, 16, 0, true), "Runtime::call_bytes: a target of 8 bytes at heap offset 128 is outside");
  EXPECT_DEATH(aim(1, 0, 3, true), "Runtime::call_bytes: PE 3 is not below 1");
  EXPECT_DEATH(aim(1, 0, 0, false), "Runtime::call_bytes: the Handler is a default one");
}
#endif
#endif

}  // namespace
}  // namespace esker::testing
