// put_block and get_block over loopback, in several shapes of the runtime.
#include "blocks.hpp"

#include <atomic>
#include <cstring>
#include <stdexcept>

#include <esker/aggregator/wire.hpp>

#include "pes.hpp"

namespace esker::testing {
namespace {

std::vector<Way> shapes() {
  if (kOnGpu) return gpu_ways();
  const auto shape = [](std::uint32_t n_pes, std::uint32_t helpers) {
    return way(std::to_string(helpers) + " helpers", n_pes,
               [=](Config& config) { config.apply_helpers = helpers; });
  };
  return {shape(1, 0), shape(2, 0), shape(2, 2), shape(3, 1), shape(4, 0), shape(8, 0)};
}

class Blocks : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, Blocks, ::testing::ValuesIn(shapes()));

// A frame of these settings holds 896 bytes.
TEST_P(Blocks, PutsOfAnySizeArriveWhole) {
  run_pes(GetParam(), [](Runtime& rt) {
    for (const std::uint64_t size : {0u, 1u, 7u, 895u, 896u, 897u, 1792u, 100'000u}) check_puts(rt, size);
  });
}

// A frame of these settings has space for 960 bytes: seven lines and a half.
TEST_P(Blocks, OfAnySizeFitInBuffersThatAreNoWholeLines) {
  Way way = GetParam();
  way.config.node_buffer_bytes = 1088;
  run_pes(way, [](Runtime& rt) {
    for (const std::uint64_t size : {896u, 960u, 961u, 1919u, 1920u, 2879u}) {
      check_puts(rt, size);
      check_block_gets(rt, size);
    }
  });
}

TEST_P(Blocks, GetsOfAnySizeAreThereAfterQuiet) {
  run_pes(GetParam(), [](Runtime& rt) {
    for (const std::uint64_t size : {0u, 1u, 7u, 896u, 897u, 60'000u}) check_block_gets(rt, size);
  });
}

TEST_P(Blocks, PiecesLieAsTheirStridesSay) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_pieces(rt, {1, 500, 3, 2});
    check_pieces(rt, {3, 100, 0, 7});
    check_pieces(rt, {5, 100, 6, 0});
    check_pieces(rt, {300, 7, 301, 1000});
    check_pieces(rt, {224, 9, 224, 225});
    check_pieces(rt, {4, 1, 0, 0});
  });
}

TEST_P(Blocks, OfGroupsOfLanesArriveWhole) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_blocks_of_groups(rt, 0, 0);
    check_blocks_of_groups(rt, 1000, 0);
    check_blocks_of_groups(rt, 1003, 8);
    check_blocks_of_groups(rt, 517, 3);
  });
}

TEST_P(Blocks, ManyAreUnderWayAtATime) {
  run_pes(GetParam(), [](Runtime& rt) {
    constexpr std::uint64_t kWords = kIsSlow ? 300 : 1000;
    const auto words = rt.heap().allocate<std::uint64_t>(kWords * rt.n_pes());
    std::vector<std::uint64_t> source(kWords), result(kWords * rt.n_pes());
    for (std::uint64_t i = 0; i < kWords; ++i) source[i] = rt.pe() * kWords + i;
    for (std::uint64_t i = 0; i < kWords; ++i) {
      for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe)
        rt.put_block(&words[rt.pe() * kWords + i], &source[i], 1, pe);
    }
    rt.barrier_all();
    const std::uint32_t other = (rt.pe() + 1) % rt.n_pes();
    for (std::uint64_t i = 0; i < result.size(); ++i) rt.get_block(&result[i], &words[i], 1, other);
    rt.quiet();
    for (std::uint64_t i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], i);
  });
}

TEST_P(Blocks, TravelBesideMessages) { run_pes(GetParam(), check_beside_messages); }

TEST_P(Blocks, AreDoneWhenQuietReturnsThoughOthersAreElsewhere) {
  run_pes(GetParam(), [](Runtime& rt) {
    constexpr std::uint64_t kBytes = 30'000;
    const auto heap = rt.heap().allocate<std::uint8_t>(kBytes);
    std::vector<std::uint8_t> source(kBytes, 1), result(kBytes);
    const std::uint32_t last = rt.n_pes() - 1;
    for (std::uint8_t round = 1; round < 5 && rt.pe() == 0; ++round) {
      rt.put_block(heap.data(), source.data(), kBytes, last);
      rt.quiet();
      source.assign(kBytes, 0);  // the block has left it
      rt.get_block(result.data(), heap.data(), kBytes, last);
      rt.quiet();
      EXPECT_EQ(result, std::vector<std::uint8_t>(kBytes, round));
      source.assign(kBytes, static_cast<std::uint8_t>(round + 1));
    }
    rt.barrier_all();
  });
}

TEST_P(Blocks, GoWithTheirRuntime) {
  run_pes(GetParam(), [](Runtime& rt) {
    static const std::vector<std::uint8_t> source(50'000, 3);
    const auto heap = rt.heap().allocate<std::uint8_t>(source.size());
    rt.put_block(heap.data(), source.data(), source.size(), (rt.pe() + 1) % rt.n_pes());
  });
}

#if !defined(ESKER_TEST_SANITIZED)
using BlocksDeathTest = Blocks;
INSTANTIATE_TEST_SUITE_P(Ways, BlocksDeathTest, ::testing::Values(shapes().front()));

TEST_P(BlocksDeathTest, OutsideTheHeapEndsTheJobWithTheValues) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto aim = [&](const std::function<void(Runtime&, SymmetricArray<std::uint32_t>)>& call) {
    run_pes(GetParam(), [&](Runtime& rt) { call(rt, rt.heap().allocate<std::uint32_t>(32)); });
  };
  std::uint32_t here[64] = {};
  EXPECT_DEATH(aim([&](Runtime& rt, auto array) { rt.put_block(&array[1], here, 32, 0); }),
               "Runtime::put_block: a target of 128 bytes in pieces of 128 every 128 at heap offset 4, for "
               "PE 0, is outside "
               "the symmetric heap of 128 bytes");
  EXPECT_DEATH(aim([&](Runtime& rt, auto array) { rt.put_block(&array[0] - 1, here, 1, 0); }),
               "Runtime::put_block: a target .* at heap offset -4");
  EXPECT_DEATH(aim([&](Runtime& rt, auto array) {
                 rt.get_block(here, &array[0], {2, 9, 0, 4}, 0);
               }),
               "Runtime::get_block: a source of 72 bytes in pieces of 8 every 16 at heap offset 0");
  EXPECT_DEATH(aim([&](Runtime& rt, auto array) { rt.get_block(here, &array[0], 1, rt.n_pes()); }),
               "Runtime::get_block: PE 1 is not below 1");
  EXPECT_DEATH(aim([&](Runtime& rt, auto array) {
                 rt.put_block(&array[0], here, {4, 2, 3, 0}, 0);
               }),
               "Runtime::put_block: pieces of 4 elements overlap where they are stored, 3 elements apart");
  EXPECT_DEATH(aim([&](Runtime& rt, auto array) { rt.put_block(&array[0], here, ~0ull, 0); }),
               "Runtime::put_block: .* are more than memory can hold");
}
#endif

// Not on a GPU whose PEs reach each other: there is no frame that could be lost or damaged.
#if !defined(ESKER_TEST_CUDA) && !defined(ESKER_TEST_HIP) && !defined(ESKER_TEST_SIMULATED)

TEST(BlocksOfAJobThatFails, APeThatLeavesIsNamed) {
  Pes pes(2);
  const auto failed = pes.run_and_catch([](Runtime& rt) {
    const auto heap = rt.heap().allocate<std::uint8_t>(1'000'000);
    if (rt.pe() == 1) throw std::runtime_error("enough");
    for (int i = 0; i < 1000; ++i) {  // until this PE hears of it
      std::vector<std::uint8_t> source(1'000'000), result(1'000'000);
      rt.put_block(heap.data(), source.data(), source.size(), 1);
      rt.get_block(result.data(), heap.data(), result.size(), 1);
      rt.quiet();
    }
    rt.barrier_all();
  });
  ASSERT_TRUE(failed[0]);
  EXPECT_NE(failed[0]->message.find("PE 1"), std::string::npos) << failed[0]->message;
}

struct BlockDamage {
  const char* name;
  wire::Kind kind;
  std::size_t at;  // in the block's header
  std::uint64_t value;
  const char* message;
};

TEST(BlocksOfAJobThatFails, ADamagedFrameIsAnErrorEverywhere) {
  using wire::BlockHeader, wire::Kind;
  const BlockDamage damages[] = {
      {"offset", Kind::kBlock, offsetof(BlockHeader, offset), 1ull << 40, "is outside"},
      {"offset below", Kind::kBlockRequest, offsetof(BlockHeader, offset), ~0ull, "is outside"},
      {"bytes", Kind::kBlock, offsetof(BlockHeader, bytes), 1, "damaged"},
      {"first", Kind::kBlock, offsetof(BlockHeader, first), ~0ull, "damaged"},
      {"piece", Kind::kBlock, offsetof(BlockHeader, piece_bytes), 0, "damaged"},
      {"stride", Kind::kBlockRequest, offsetof(BlockHeader, stride), 1, "damaged"},
      {"number", Kind::kBlockReply, offsetof(BlockHeader, number), 77, "which there is not"},
      {"reply's bytes", Kind::kBlockReply, offsetof(BlockHeader, bytes), 1ull << 40, "which there is not"},
      {"reserved", Kind::kBlock, offsetof(BlockHeader, reserved), 1, "reserved"},
  };
  for (const BlockDamage& damage : damages) {
    for (const std::uint32_t helpers : {0u, 2u}) {
      Config config = tiny_config();
      config.apply_helpers = helpers;
      Pes pes(2, config);
      std::atomic<bool> done{false};
      pes.world().set_tamper([&](std::uint32_t, std::uint32_t, std::vector<std::byte>& frame) {
        wire::FrameHeader header;
        std::memcpy(&header, frame.data(), sizeof header);
        if (header.kind == damage.kind && !done.exchange(true))
          std::memcpy(frame.data() + sizeof header + damage.at, &damage.value, sizeof damage.value);
        return loopback::Fate::kDeliver;
      });
      const auto failed = pes.run_and_catch([](Runtime& rt) {
        const auto heap = rt.heap().allocate<std::uint8_t>(5000);
        std::vector<std::uint8_t> here(5000);
        if (rt.pe() == 0) {
          rt.put_block(heap.data(), here.data(), here.size(), 1);
          rt.get_block(here.data(), heap.data(), here.size(), 1);
        }
        rt.barrier_all();
      });
      for (const auto& failure : failed) {
        ASSERT_TRUE(failure) << damage.name;
        EXPECT_NE(failure->message.find(damage.message), std::string::npos)
            << damage.name << ": " << failure->message;
      }
    }
  }
}

#endif

}  // namespace
}  // namespace esker::testing
