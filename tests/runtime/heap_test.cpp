// The symmetric heap over loopback.
#include <cstdint>
#include <string>
#include <vector>

#include "../device/gtest.hpp"
#include "pes.hpp"
#include "seed.hpp"

namespace esker::testing {
namespace {

constexpr std::uint64_t kHeap = 2 << 20;  // tiny_config()'s

void expect_everywhere(const std::vector<std::optional<Failed>>& failed, Error::Kind kind) {
  for (const auto& failure : failed) {
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->kind, kind) << failure->message;
  }
}

/// Where the heap stands: on a GPU or on the host.
std::vector<Way> ways() {
  std::vector<Way> all{way("heap as it comes", 3, [](Config&) {})};
  if (kOnGpu)
    all.push_back(way("heap on the host", 3, [](Config& config) { config.heap = HeapKind::kHost; }));
  return all;
}
class Heap : public ::testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(Ways, Heap, ::testing::ValuesIn(ways()));

TEST_P(Heap, AlignsAsItIsAsked) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto offset_of = [&](const auto& array) {
      return reinterpret_cast<std::uintptr_t>(array.data()) -
             reinterpret_cast<std::uintptr_t>(rt.heap().base());
    };
    const auto small = rt.heap().allocate<std::uint8_t>(1);
    const auto aligned = rt.heap().allocate<std::uint8_t>(5000, 4096);
    const auto between = rt.heap().allocate<std::uint8_t>(100, 8);
    const auto next = rt.heap().allocate<std::uint64_t>(1, 1024);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned.data()) % 4096, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(next.data()) % 1024, 0u);
    EXPECT_EQ(offset_of(between), SymmetricHeap::kAlignment);  // the space in front is not lost
    EXPECT_EQ(offset_of(next), 1024u);
    const auto whole = rt.heap().allocate<std::uint8_t>(kHeap - 16384, 4096);
    EXPECT_EQ(offset_of(whole), 12288u);
    rt.heap().free(whole);
    rt.heap().free(aligned);
    const auto again = rt.heap().allocate<std::uint8_t>(kHeap - 16384, 4096);
    EXPECT_EQ(offset_of(again), 4096u);
    for (const auto& array : {again, between, small}) rt.heap().free(array);
    rt.heap().free(next);
  });
}

TEST_P(Heap, GivesCopiesOfBools) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto array = rt.heap().allocate<bool>(3);
    const bool values[] = {true, false, true};
    rt.heap().write(array, 0, std::span<const bool>(values));
    EXPECT_EQ(rt.heap().read(array), (std::vector<bool>{true, false, true}));
  });
}

TEST_P(Heap, GivesEveryPeTheLargestNumberThatOneAsksFor) {
  run_pes(GetParam(), [](Runtime& rt) {
    const auto array = rt.heap().allocate_largest<std::uint64_t>(100 * (rt.pe() + 1));
    EXPECT_EQ(array.size(), 100u * rt.n_pes());
    EXPECT_EQ(rt.heap().read(array), std::vector<std::uint64_t>(array.size()));
    const auto behind = rt.heap().allocate<std::uint8_t>(1);
    EXPECT_GE(reinterpret_cast<std::uintptr_t>(behind.data()), reinterpret_cast<std::uintptr_t>(array.end()));
    rt.heap().free(behind);
    rt.heap().free(array);
  });
}

TEST(HeapCalls, OfDifferentKindsAndAlignmentsAreRefusedOnEveryPe) {
  Pes pes(2);
  auto failed = pes.run_and_catch([](Runtime& rt) {
    if (rt.pe() == 0)
      rt.heap().allocate<std::uint8_t>(1);
    else
      rt.heap().allocate_largest<std::uint8_t>(1);
  });
  expect_everywhere(failed, Error::Kind::kContract);
  failed = Pes(2).run_and_catch(
      [](Runtime& rt) { rt.heap().allocate<std::uint8_t>(1, std::size_t{256} << rt.pe()); });
  expect_everywhere(failed, Error::Kind::kContract);
  EXPECT_NE(failed[0]->message.find("aligned to 512 and 256 bytes"), std::string::npos) << failed[0]->message;
}

TEST_P(Heap, GivesZeroedMemoryAtTheSameOffsetOnEveryPe) {
  run_pes(GetParam(), [](Runtime& rt) {
    std::uint64_t random = seed();
    struct Block {
      SymmetricArray<std::uint8_t> array;
      std::uint8_t fill;
    };
    std::vector<Block> blocks;
    std::byte* const base = rt.heap().base();
    for (int step = 0; step < 300; ++step) {
      random = mix(random);  // the same on every PE
      if (blocks.size() < 20 && random % 3 != 0) {
        const auto array = rt.heap().allocate<std::uint8_t>(random / 8 % 20'000);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.data()) % SymmetricHeap::kAlignment, 0u);
        for (const std::uint8_t byte : rt.heap().read(array)) ASSERT_EQ(byte, 0u);
        std::uint64_t offset[2] = {
            static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(array.data()) - base), 0};
        offset[1] = offset[0];
        rt.all_reduce(std::span(offset, 1), Reduction::kMin);
        EXPECT_EQ(offset[0], offset[1]);
        const auto fill = static_cast<std::uint8_t>(random >> 56 | 1);
        const std::vector<std::uint8_t> filled(array.size(), fill);
        rt.heap().write(array, 0, std::span<const std::uint8_t>(filled));
        blocks.push_back({array, fill});
      } else if (!blocks.empty()) {
        const std::size_t which = random / 8 % blocks.size();
        for (const std::uint8_t byte : rt.heap().read(blocks[which].array))
          ASSERT_EQ(byte, blocks[which].fill);
        rt.heap().free(blocks[which].array);
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(which));
      }
    }
    for (const Block& block : blocks) rt.heap().free(block.array);
    EXPECT_EQ(rt.heap().allocated_bytes(), 0u);
  });
}

void reuse_what_was_freed(Runtime& rt) {
  const auto first = rt.heap().allocate<std::uint64_t>(3000);
  rt.launch(3000, [=] ESKER_LAMBDA(WorkItem item) {
    shmem_put(item, &first[item.global_id()], 9, (item.pe() + 1) % item.n_pes());
  });
  rt.barrier_all();
  EXPECT_EQ(rt.heap().read(first)[2999], 9u);
  rt.heap().free(first);
  const auto second = rt.heap().allocate<std::uint64_t>(2500);
  EXPECT_EQ(second.data(), first.data());
  for (const std::uint64_t word : rt.heap().read(second)) ASSERT_EQ(word, 0u);
}
TEST_P(Heap, ReusesWhatWasFreedAndZeroesIt) { run_pes(GetParam(), reuse_what_was_freed); }

void read_and_write_parts(Runtime& rt) {
  EXPECT_EQ(rt.heap().on_host(), !kOnGpu || rt.config().heap == HeapKind::kHost);
  const auto words = rt.heap().allocate<std::uint64_t>(100);
  const std::vector<std::uint64_t> some{3, 4, 5};
  rt.heap().write(words, 40, std::span<const std::uint64_t>(some));
  rt.launch(100, [=] ESKER_LAMBDA(WorkItem item) { words[item.global_id()] += item.global_id(); });
  std::vector<std::uint64_t> got(5);
  rt.heap().read(words, 39, std::span(got));  // waits for the kernel
  EXPECT_EQ(got, (std::vector<std::uint64_t>{39, 43, 45, 47, 43}));
}
TEST_P(Heap, IsReadAndWrittenInPartsByTheHost) { run_pes(GetParam(), read_and_write_parts); }

TEST(SymmetricHeap, FullIsAnErrorEverywhereThatChangesNothing) {
  run_pes(2, [](Runtime& rt) {
    EXPECT_EQ(rt.heap().limit_bytes(), kHeap);
    const auto most = rt.heap().allocate<std::uint8_t>(kHeap - 4096);
    for (const std::uint64_t too_many : {std::uint64_t{4097}, kHeap, ~std::uint64_t{0}}) {
      try {
        rt.heap().allocate<std::uint8_t>(too_many);
        ADD_FAILURE() << too_many;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::kOutOfMemory);
        EXPECT_NE(std::string(error.what()).find("--heap-bytes"), std::string::npos) << error.what();
      }
    }
    EXPECT_THROW(rt.heap().allocate<std::uint64_t>(~std::uint64_t{0} / 4), Error);  // wraps around in bytes
    EXPECT_EQ(rt.heap().allocated_bytes(), kHeap - 4096);
    const auto rest = rt.heap().allocate<std::uint8_t>(4096);
    const std::uint8_t one[1] = {1};
    rt.heap().write(rest, 4095, std::span<const std::uint8_t>(one));
    EXPECT_EQ(rt.heap().read(rest)[4095], 1u);
    EXPECT_EQ(rt.heap().allocated_bytes(), kHeap);
    rt.heap().free(most);
    rt.heap().free(rest);
    EXPECT_EQ(rt.heap().allocate<std::uint8_t>(kHeap).size(), kHeap);
  });
}

TEST(SymmetricHeap, OfAnotherSizeOnAnotherPeIsAnErrorEverywhere) {
  Pes pes(3);
  pes.config(1).heap_bytes = 2 * kHeap;
  expect_everywhere(pes.run_and_catch([](Runtime&) { FAIL() << "constructed"; }),
                    Error::Kind::kConfiguration);
}

TEST(SymmetricHeap, DifferentSizesInOneAllocateAreAnErrorEverywhere) {
  expect_everywhere(
      Pes(3).run_and_catch([](Runtime& rt) { rt.heap().allocate<std::uint64_t>(rt.pe() == 2 ? 8 : 9); }),
      Error::Kind::kContract);
  // The same bytes, but not the same elements.
  expect_everywhere(Pes(2).run_and_catch([](Runtime& rt) {
    if (rt.pe() == 0)
      rt.heap().allocate<std::uint64_t>(8);
    else
      rt.heap().allocate<std::uint32_t>(16);
  }),
                    Error::Kind::kContract);
}

TEST(SymmetricHeap, DifferentArraysInOneFreeAreAnErrorEverywhere) {
  expect_everywhere(Pes(2).run_and_catch([](Runtime& rt) {
    const auto a = rt.heap().allocate<std::uint64_t>(8);
    const auto b = rt.heap().allocate<std::uint64_t>(8);
    rt.heap().free(rt.pe() == 0 ? a : b);
  }),
                    Error::Kind::kContract);
}

}  // namespace
}  // namespace esker::testing
