// Edges that arrive are counted, then each takes the next slot of the vertex.
#include "edge_slots.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "prefix_sums.hpp"

namespace graph {
namespace {

struct CountArrivals {
  esker::SymmetricArray<Edge> edges;
  esker::SymmetricArray<std::uint64_t> arrivals;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const Location to = edges[item.global_id()].to;
    esker::shmem_inc(item, &arrivals[to.index()], to.pe());
  }
};

/// Runs at the owner of the vertex; the argument is the edge's index at the sender.
struct TakeSlot {
  static constexpr std::uint64_t kOwnershipBytes = sizeof(std::uint64_t);
  esker::SymmetricArray<Location> of_edge;
  ESKER_HD void operator()(esker::HandlerContext& context, std::uint64_t& cursor,
                           const std::uint64_t& edge) const {
    esker::shmem_put(context, &of_edge[edge], Location(context.pe(), cursor++), context.source());
  }
};

struct AskForSlots {
  esker::SymmetricArray<Edge> edges;
  esker::SymmetricArray<std::uint64_t> cursor;
  esker::Handler<std::uint64_t, std::uint64_t> take;
  std::uint64_t first_edge;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t edge = first_edge + item.global_id();
    const Location to = edges[edge].to;
    esker::shmem_am(item, take, &cursor[to.index()], edge, to.pe());
  }
};

// Answers that all PEs together may have to wait for room on one: half of what a device keeps for handlers.
constexpr std::uint64_t kMostAnswers = std::uint64_t{1} << 17;

}  // namespace

Arrivals count_arrivals(esker::Runtime& rt, const DistributedGraph& graph) {
  const auto counts = rt.heap().allocate<std::uint64_t>(graph.most_vertices + 1);
  rt.launch(graph.my_edges, CountArrivals{graph.edges, counts}, "graph-count-arrivals");
  rt.barrier_all();
  std::vector<std::uint64_t> mine = read_prefix_sums(rt, counts, graph.my_vertices);
  std::array<std::uint64_t, 1> most{mine.back()};
  rt.all_reduce(std::span<std::uint64_t>(most), esker::Reduction::kMax);
  rt.heap().write(counts, 0, std::span<const std::uint64_t>(mine));
  return {counts, std::move(mine), std::max<std::uint64_t>(1, most[0])};
}

EdgeSlots make_edge_slots(esker::Runtime& rt, const DistributedGraph& graph) {
  const Arrivals arrivals = count_arrivals(rt, graph);
  std::array<std::uint64_t, 1> most_edges{graph.my_edges};
  rt.all_reduce(std::span<std::uint64_t>(most_edges), esker::Reduction::kMax);

  const auto cursor = arrivals.first;
  const auto of_edge = rt.heap().allocate<Location>(std::max<std::uint64_t>(1, most_edges[0]));
  const auto take = rt.register_handler<std::uint64_t, std::uint64_t>("graph-take-slot", TakeSlot{of_edge});
  const std::uint64_t round = std::max<std::uint64_t>(1, kMostAnswers / rt.n_pes());
  for (std::uint64_t begin = 0; begin < most_edges[0]; begin += round) {
    const std::uint64_t end = std::min(begin + round, graph.my_edges);
    if (begin < end) {
      rt.launch(end - begin, AskForSlots{graph.edges, cursor, take, begin}, "graph-ask-for-slots");
    }
    rt.barrier_all();
  }
  rt.heap().write(cursor, 0, std::span<const std::uint64_t>(arrivals.mine));
  rt.barrier_all();
  return {cursor, of_edge, arrivals.most};
}

}  // namespace graph
