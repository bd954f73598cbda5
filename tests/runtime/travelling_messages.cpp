// Active messages over loopback: sizes of arguments, and messages that travel on: chains over the PEs,
// ping-pong, fan-out. A source of its own, since nvcc takes minutes for so many handlers.
#include <cstdint>
#include <string>
#include <vector>

#include <esker/runtime.hpp>

#include "active_message.hpp"
#include "pes.hpp"
#include "seed.hpp"

namespace esker::testing {
namespace {

struct Slot {
  std::uint32_t calls;
  std::uint32_t wrong;
};

/// Collective. Each message with N bytes of arguments must call the handler once, with its own arguments.
template <std::size_t N>
void check_arguments(Runtime& rt) {
  constexpr std::uint64_t kMessages = !kOnGpu ? 200 : kSimulated ? 400 : 2000;
  const auto slots = rt.heap().allocate<Slot>(kMessages * rt.n_pes());
  const auto handler = rt.register_handler<Slot, Payload<N>>(
      "arguments " + std::to_string(N),
      [=] ESKER_LAMBDA(HandlerContext&, Slot & slot, const Payload<N>& payload) {
        ++slot.calls;
        slot.wrong += payload.is_of(static_cast<std::uint64_t>(&slot - slots.data())) ? 0 : 1;
      });
  rt.launch(kMessages, [=] ESKER_LAMBDA(WorkItem item) {
    const std::uint64_t message = item.pe() * kMessages + item.global_id();
    const auto pe = static_cast<std::uint32_t>(mix(message) % item.n_pes());
    shmem_am(item, handler, &slots[message], Payload<N>::of(message), pe);
  });
  rt.barrier_all();
  const std::vector<Slot> got = rt.heap().read(slots);
  std::uint64_t bad = 0;
  for (std::uint64_t message = 0; message < got.size(); ++message) {
    const std::uint32_t expected = mix(message) % rt.n_pes() == rt.pe() ? 1 : 0;
    bad += got[message].calls != expected || got[message].wrong != 0 ? 1 : 0;
  }
  EXPECT_EQ(bad, 0u) << N << " bytes of arguments, PE " << rt.pe();
  rt.heap().free(slots);
}

/// Collective. Every lane starts a chain that visits the PEs in turn; barrier_all must wait for its end.
void check_chains(Runtime& rt, std::uint32_t hops, std::uint64_t chains = kOnGpu && !kSimulated ? 1000 : 64) {
  using Count = std::uint64_t;
  const auto visits = rt.heap().allocate<Count>(chains);
  const auto handler = rt.register_handler<Count, Hop>(
      "hop " + std::to_string(hops),
      [] ESKER_LAMBDA(HandlerContext & context, Count & count, const Hop& hop, Handler<Count, Hop> self) {
        ++count;
        if (hop.left > 0) {
          shmem_am(context, self, &count, {hop.left - 1}, (context.pe() + 1) % context.n_pes());
        }
      });
  rt.launch(chains, [=] ESKER_LAMBDA(WorkItem item) {
    shmem_am(item, handler, &visits[item.global_id()], {hops}, (item.pe() + 1) % item.n_pes());
  });
  rt.barrier_all();
  // The chain of PE s visits s + 1, s + 2, ..., s + 1 + hops.
  Count expected = 0;
  for (std::uint32_t s = 0; s < rt.n_pes(); ++s) {
    for (std::uint32_t h = 0; h <= hops; ++h) expected += (s + 1 + h) % rt.n_pes() == rt.pe() ? 1 : 0;
  }
  for (const Count count : rt.heap().read(visits)) ASSERT_EQ(count, expected);
  rt.heap().free(visits);
}

/// Collective. Every lane plays with another PE by answering whoever sent.
void check_ping_pong(Runtime& rt, std::uint32_t hops,
                     std::uint64_t balls = kOnGpu && !kSimulated ? 1000 : 64) {
  using Count = std::uint64_t;
  const auto touches = rt.heap().allocate<Count>(balls * rt.n_pes());
  const auto handler = rt.register_handler<Count, Hop>(
      "ping pong " + std::to_string(hops),
      [] ESKER_LAMBDA(HandlerContext & context, Count & count, const Hop& hop, Handler<Count, Hop> self) {
        ++count;
        if (hop.left > 0) shmem_am(context, self, &count, {hop.left - 1}, context.source());
      });
  rt.launch(balls, [=] ESKER_LAMBDA(WorkItem item) {
    const std::uint64_t id = item.global_id();
    const auto other = static_cast<std::uint32_t>((item.pe() + id) % item.n_pes());
    shmem_am(item, handler, &touches[item.pe() * balls + id], {hops}, other);
  });
  rt.barrier_all();
  const std::vector<Count> got = rt.heap().read(touches);
  std::uint64_t wrong = 0;
  for (std::uint32_t server = 0; server < rt.n_pes(); ++server) {
    for (std::uint64_t id = 0; id < balls; ++id) {
      const std::uint64_t other = (server + id) % rt.n_pes();
      // The first touch is the other's, and then they take turns.
      const Count expected =
          (other == rt.pe() ? (hops + 2) / 2 : 0) + (server == rt.pe() ? (hops + 1) / 2 : 0);
      wrong += got[server * balls + id] != expected ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0u) << hops << " hops, PE " << rt.pe();
  rt.heap().free(touches);
}

struct Branch {
  std::uint64_t node;  // 1 is a root; 2n and 2n + 1 are the children of n
  std::uint32_t tree;
};

/// As a handler: counts the node and sends its children on.
struct FanOut {
  SymmetricArray<std::uint32_t> reached;
  std::uint64_t nodes;
  std::uint64_t stream;
  std::uint32_t n_pes;

  ESKER_HD std::uint32_t* place(const Branch& b) const { return &reached[b.tree * nodes + b.node]; }
  ESKER_HD std::uint32_t pe_of(const Branch& b) const {
    return static_cast<std::uint32_t>(mix(mix(stream + b.tree) + b.node) % n_pes);
  }
  ESKER_HD void operator()(HandlerContext& context, std::uint32_t& count, const Branch& branch,
                           Handler<std::uint32_t, Branch> self) const {
    ++count;
    for (std::uint64_t child = 2 * branch.node; child <= 2 * branch.node + 1 && child < nodes; ++child) {
      const Branch next{child, branch.tree};
      shmem_am(context, self, place(next), next, pe_of(next));
    }
  }
};

/// Collective. Every message makes two, to a given depth; each node of every tree must be reached once.
void check_fan_out(Runtime& rt, std::uint32_t depth, std::uint32_t trees) {
  const std::uint64_t nodes = std::uint64_t{2} << depth;
  const auto reached = rt.heap().allocate<std::uint32_t>(nodes * trees);
  const FanOut fan{reached, nodes, seed(), rt.n_pes()};
  const auto handler = rt.register_handler<std::uint32_t, Branch>("fan out", fan);
  if (rt.pe() == 0) {
    rt.launch(trees, [=] ESKER_LAMBDA(WorkItem item) {
      const Branch root{1, static_cast<std::uint32_t>(item.global_id())};
      shmem_am(item, handler, fan.place(root), root, fan.pe_of(root));
    });
  }
  rt.barrier_all();
  const std::vector<std::uint32_t> got = rt.heap().read(reached);
  std::uint64_t wrong = 0;
  for (std::uint32_t tree = 0; tree < trees; ++tree) {
    for (std::uint64_t node = 0; node < nodes; ++node) {
      const std::uint32_t expected = node > 0 && fan.pe_of({node, tree}) == rt.pe() ? 1 : 0;
      wrong += got[tree * nodes + node] != expected ? 1 : 0;
    }
  }
  EXPECT_EQ(wrong, 0u) << "PE " << rt.pe();
  rt.heap().free(reached);
}

TEST_P(ActiveMessage, EachRunsOnceWithItsOwnArgumentsOfZeroToSixtyFourBytes) {
  run_pes(GetParam(), [](Runtime& rt) {
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
  run_pes(GetParam(), [](Runtime& rt) {
    check_chains(rt, 1);
    check_chains(rt, 9);
  });
}

TEST_P(ActiveMessage, BarrierWaitsForPingPong) {
  run_pes(GetParam(), [](Runtime& rt) {
    check_ping_pong(rt, 6);
    check_ping_pong(rt, 31);
  });
}

TEST_P(ActiveMessage, BarrierWaitsForFanOut) {
  run_pes(GetParam(), [](Runtime& rt) { check_fan_out(rt, 9, 8); });
}

}  // namespace
}  // namespace esker::testing
