// Blocks and what the heaps must hold after them, as collective checks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <esker/runtime.hpp>

#include "../device/gtest.hpp"
#include "updates.hpp"

namespace esker::testing {

/// Byte i of the block `stream` of PE `from` to PE `to`.
inline std::uint8_t block_byte(std::uint64_t stream, std::uint32_t from, std::uint32_t to, std::uint64_t i) {
  return static_cast<std::uint8_t>(mix(stream ^ (from * 64ull + to) << 40 ^ i / 8) >> i % 8 * 8);
}

/// Collective. Each PE puts a block of `size` bytes to every PE, itself included, some bytes off any
/// alignment.
inline void check_puts(Runtime& rt, std::uint64_t size) {
  const std::uint64_t stream = mix(seed() + size), n = rt.n_pes(), space = size + 13;
  const auto heap = rt.heap().allocate<std::uint8_t>(n * space);
  std::vector<std::vector<std::uint8_t>> sources;
  for (std::uint32_t pe = 0; pe < n; ++pe) {
    auto& source = sources.emplace_back(size);
    for (std::uint64_t i = 0; i < size; ++i) source[i] = block_byte(stream, rt.pe(), pe, i);
    rt.put_block(&heap[rt.pe() * space + 5], source.data(), size, pe);
  }
  rt.barrier_all();
  const std::vector<std::uint8_t> found = rt.heap().read(heap);
  std::uint64_t wrong = 0;
  for (std::uint32_t from = 0; from < n; ++from) {
    for (std::uint64_t i = 0; i < space; ++i) {
      const bool is_in = i >= 5 && i < 5 + size;
      wrong += found[from * space + i] != (is_in ? block_byte(stream, from, rt.pe(), i - 5) : 0) ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0u) << size << " bytes on PE " << rt.pe();
  rt.barrier_all();
  rt.heap().free(heap);
}

/// Collective. Each PE gets a block of every PE, into memory of the program's and into its heap.
inline void check_block_gets(Runtime& rt, std::uint64_t size) {
  const std::uint64_t stream = mix(seed() + size + 1), n = rt.n_pes();
  const auto heap = rt.heap().allocate<std::uint8_t>(size + 3);
  const auto results = rt.heap().allocate<std::uint8_t>(n * size + 1);
  std::vector<std::uint8_t> mine(size + 3);
  for (std::uint64_t i = 0; i < mine.size(); ++i) mine[i] = block_byte(stream, rt.pe(), 0, i);
  rt.heap().write(heap, 0, std::span<const std::uint8_t>(mine));
  rt.barrier_all();
  std::vector<std::vector<std::uint8_t>> here(n, std::vector<std::uint8_t>(size + 2));
  for (std::uint32_t pe = 0; pe < n; ++pe) {
    rt.get_block(here[pe].data() + 1, &heap[3], size, pe);
    rt.get_block(&results[pe * size], &heap[2], size, pe);
  }
  rt.quiet();
  const std::vector<std::uint8_t> there = rt.heap().read(results);
  std::uint64_t wrong = 0;
  for (std::uint32_t pe = 0; pe < n; ++pe) {
    for (std::uint64_t i = 0; i < size; ++i) {
      wrong += here[pe][1 + i] != block_byte(stream, pe, 0, 3 + i) ? 1 : 0;
      wrong += there[pe * size + i] != block_byte(stream, pe, 0, 2 + i) ? 1 : 0;
    }
    wrong += here[pe].front() + here[pe].back();
  }
  EXPECT_EQ(wrong, 0u) << size << " bytes on PE " << rt.pe();
  rt.barrier_all();
  rt.heap().free(results);
  rt.heap().free(heap);
}

/// Collective. Pieces with strides at both ends, to the next PE and back from it.
inline void check_pieces(Runtime& rt, const BlockShape& shape) {
  const std::uint64_t stream = mix(seed() + shape.elements * 64 + shape.pieces);
  const auto stride = [&](std::uint64_t wanted) { return wanted == 0 ? shape.elements : wanted; };
  const std::uint64_t to = stride(shape.target_stride), from = stride(shape.source_stride);
  const std::uint64_t heap_elements = shape.pieces * to, here_elements = shape.pieces * from;
  const auto heap = rt.heap().allocate<std::uint32_t>(heap_elements);
  std::vector<std::uint32_t> source(here_elements);
  for (std::uint64_t i = 0; i < here_elements; ++i)
    source[i] = static_cast<std::uint32_t>(mix(stream + rt.pe() * here_elements + i)) | 1;
  const std::uint32_t next = (rt.pe() + 1) % rt.n_pes(), before = (rt.pe() + rt.n_pes() - 1) % rt.n_pes();
  rt.put_block(heap.data(), source.data(), shape, next);
  rt.barrier_all();
  const std::vector<std::uint32_t> found = rt.heap().read(heap);
  std::vector<std::uint32_t> back(here_elements);
  rt.get_block(back.data(), heap.data(), {shape.elements, shape.pieces, from, to}, next);
  rt.quiet();
  std::uint64_t wrong = 0;
  for (std::uint64_t piece = 0; piece < shape.pieces; ++piece) {
    for (std::uint64_t i = 0; i < to; ++i) {
      const auto expected =
          static_cast<std::uint32_t>(mix(stream + before * here_elements + piece * from + i)) | 1;
      wrong += found[piece * to + i] != (i < shape.elements ? expected : 0) ? 1 : 0;
    }
    for (std::uint64_t i = 0; i < from; ++i)
      wrong += back[piece * from + i] != (i < shape.elements ? source[piece * from + i] : 0) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u) << shape.pieces << " pieces of " << shape.elements << " on PE " << rt.pe();
  rt.barrier_all();
  rt.heap().free(heap);
}

/// Collective. Groups of lanes put a part of an array each to the next PE, and get it back into another one.
inline void check_blocks_of_groups(Runtime& rt, std::uint64_t bytes, std::uint64_t offset) {
  constexpr std::uint64_t kGroups = 3;
  const std::uint64_t stream = mix(seed() + bytes), part = bytes + 32;
  const auto source = rt.heap().allocate<std::uint8_t>(kGroups * part);
  const auto target = rt.heap().allocate<std::uint8_t>(kGroups * part);
  const auto back = rt.heap().allocate<std::uint8_t>(kGroups * part);
  std::vector<std::uint8_t> mine(kGroups * part);
  for (std::uint64_t i = 0; i < mine.size(); ++i) mine[i] = block_byte(stream, rt.pe(), 0, i);
  rt.heap().write(source, 0, std::span<const std::uint8_t>(mine));
  rt.barrier_all();
  const std::uint64_t lanes = kGroups * rt.config().group_lanes;
  rt.launch(lanes, [=] ESKER_LAMBDA(GroupItem & item) {
    const std::uint64_t at = item.group_id() * part;
    const std::uint32_t next = (item.pe() + 1) % item.n_pes();
    shmem_put_block(item, &target[at], &source[at + offset], bytes, next);
  });
  rt.barrier_all();
  rt.launch(lanes, [=] ESKER_LAMBDA(GroupItem & item) {
    const std::uint64_t at = item.group_id() * part;
    const std::uint32_t next = (item.pe() + 1) % item.n_pes();
    shmem_get_block(item, &back[at + 1], &target[at], bytes, next);
  });
  rt.quiet();
  const std::vector<std::uint8_t> found = rt.heap().read(back);
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < found.size(); ++i) {
    const std::uint64_t in = i % part;
    const bool is_in = in >= 1 && in < 1 + bytes;
    wrong += found[i] != (is_in ? mine[i - 1 + offset] : 0) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u) << bytes << " bytes on PE " << rt.pe();
  rt.barrier_all();
  rt.heap().free(back);
  rt.heap().free(target);
  rt.heap().free(source);
}

/// Collective. Blocks in both directions while lanes increment words elsewhere in the heap.
inline void check_beside_messages(Runtime& rt) {
  constexpr std::uint64_t kLanes = 2000, kBytes = 40'000;
  const auto counts = rt.heap().allocate<std::uint32_t>(16);
  const auto heap = rt.heap().allocate<std::uint8_t>(kBytes);
  const std::uint32_t next = (rt.pe() + 1) % rt.n_pes();
  std::vector<std::uint8_t> source(kBytes), result(kBytes);
  for (std::uint64_t round = 0; round < 5; ++round) {
    for (std::uint64_t i = 0; i < kBytes; ++i) source[i] = block_byte(round, rt.pe(), 0, i);
    rt.put_block(heap.data(), source.data(), kBytes, next);
    rt.launch(kLanes, [=] ESKER_LAMBDA(WorkItem item) {
      const std::uint64_t k = item.global_id();
      shmem_inc(item, &counts[k % 16], static_cast<std::uint32_t>(k / 16 % item.n_pes()));
    });
    rt.quiet();
    rt.get_block(result.data(), heap.data(), kBytes, next);
    rt.barrier_all();
    EXPECT_EQ(result, source) << "round " << round;
  }
  std::uint64_t sum[1] = {};
  for (const std::uint32_t count : rt.heap().read(counts)) sum[0] += count;
  rt.all_reduce(sum, Reduction::kSum);
  EXPECT_EQ(sum[0], 5 * kLanes * rt.n_pes());
  rt.barrier_all();
  rt.heap().free(heap);
  rt.heap().free(counts);
}

}  // namespace esker::testing
