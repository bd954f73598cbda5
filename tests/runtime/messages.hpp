// Active messages that travel on: chains over the PEs, fan-out, and a count for each message.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include <esker/runtime/runtime.hpp>

#include "seed.hpp"

namespace esker::testing {

/// Arguments of N bytes that say which message they are, in the first and the last of them.
template <std::size_t N>
struct Payload {
  std::array<std::uint8_t, N> bytes;
  static Payload of(std::uint64_t message) {
    Payload payload;
    for (std::size_t i = 0; i < N; ++i) payload.bytes[i] = static_cast<std::uint8_t>(mix(message * 64 + i));
    return payload;
  }
};
template <>
struct Payload<0> {
  static Payload of(std::uint64_t) { return {}; }
};

struct Slot {
  std::uint32_t calls;
  std::uint32_t wrong;
};

/// Collective. Each message with N bytes of arguments must call the handler once, with its own arguments.
template <std::size_t N>
void check_arguments(Runtime& rt, std::uint64_t messages = 200) {
  const auto slots = rt.heap().allocate<Slot>(messages * rt.n_pes());
  const Slot* const first = slots.data();
  const auto handler = rt.register_handler<Slot, Payload<N>>(
      "arguments " + std::to_string(N), [first](HandlerContext&, Slot& slot, const Payload<N>& payload) {
        ++slot.calls;
        if constexpr (N > 0) {
          const auto expected = Payload<N>::of(static_cast<std::uint64_t>(&slot - first));
          slot.wrong += payload.bytes != expected.bytes ? 1 : 0;
        }
      });
  rt.launch(messages, [=](WorkItem item) {
    const std::uint64_t message = item.pe() * messages + item.global_id();
    const auto pe = static_cast<std::uint32_t>(mix(message) % item.n_pes());
    shmem_am(item, handler, &slots[message], Payload<N>::of(message), pe);
  });
  rt.barrier_all();
  std::uint64_t bad = 0;
  for (std::uint64_t message = 0; message < slots.size(); ++message) {
    const std::uint32_t expected = mix(message) % rt.n_pes() == rt.pe() ? 1 : 0;
    bad += slots[message].calls != expected || slots[message].wrong != 0 ? 1 : 0;
  }
  EXPECT_EQ(bad, 0u) << N << " bytes of arguments, PE " << rt.pe();
  rt.heap().free(slots);
}

struct Hop {
  std::uint32_t left;
};

/// Collective. Every lane starts a chain that visits the PEs in turn; barrier_all must wait for its end.
inline void check_chains(Runtime& rt, std::uint32_t hops, std::uint64_t chains = 64) {
  using Count = std::uint64_t;
  const auto visits = rt.heap().allocate<Count>(chains);
  const auto handler = rt.register_handler<Count, Hop>(
      "hop " + std::to_string(hops),
      [](HandlerContext& context, Count& count, const Hop& hop, Handler<Count, Hop> self) {
        ++count;
        if (hop.left > 0) {
          shmem_am(context, self, &count, {hop.left - 1}, (context.pe() + 1) % context.n_pes());
        }
      });
  rt.launch(chains, [=](WorkItem item) {
    shmem_am(item, handler, &visits[item.global_id()], {hops}, (item.pe() + 1) % item.n_pes());
  });
  rt.barrier_all();
  // The chain of PE s visits s + 1, s + 2, ..., s + 1 + hops.
  Count expected = 0;
  for (std::uint32_t s = 0; s < rt.n_pes(); ++s) {
    for (std::uint32_t h = 0; h <= hops; ++h) expected += (s + 1 + h) % rt.n_pes() == rt.pe() ? 1 : 0;
  }
  for (const Count count : visits) EXPECT_EQ(count, expected);
  rt.heap().free(visits);
}

struct Branch {
  std::uint64_t node;  // 1 is a root; 2n and 2n + 1 are the children of n
  std::uint32_t tree;
};

/// Collective. Every message makes two, to a given depth; each node of every tree must be reached once.
inline void check_fan_out(Runtime& rt, std::uint32_t depth, std::uint32_t trees) {
  const std::uint64_t nodes = std::uint64_t{2} << depth;
  const std::uint64_t stream = seed();
  const auto reached = rt.heap().allocate<std::uint32_t>(nodes * trees);
  const auto pe_of = [=, n = rt.n_pes()](const Branch& b) {
    return static_cast<std::uint32_t>(mix(mix(stream + b.tree) + b.node) % n);
  };
  const auto handler = rt.register_handler<std::uint32_t, Branch>(
      "fan out", [=](HandlerContext& context, std::uint32_t& count, const Branch& branch, auto self) {
        ++count;
        for (const std::uint64_t child : {2 * branch.node, 2 * branch.node + 1}) {
          if (child >= nodes) return;
          const Branch next{child, branch.tree};
          shmem_am(context, self, &reached[branch.tree * nodes + child], next, pe_of(next));
        }
      });
  if (rt.pe() == 0) {
    rt.launch(trees, [=](WorkItem item) {
      const Branch root{1, static_cast<std::uint32_t>(item.global_id())};
      shmem_am(item, handler, &reached[root.tree * nodes + 1], root, pe_of(root));
    });
  }
  rt.barrier_all();
  std::uint64_t wrong = 0;
  for (std::uint32_t tree = 0; tree < trees; ++tree) {
    for (std::uint64_t node = 0; node < nodes; ++node) {
      const std::uint32_t expected = node > 0 && pe_of({node, tree}) == rt.pe() ? 1 : 0;
      wrong += reached[tree * nodes + node] != expected ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0u) << "PE " << rt.pe();
  rt.heap().free(reached);
}

}  // namespace esker::testing
