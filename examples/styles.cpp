// Styles: the same updates sent in three ways, with the rate of each.
//
//   per lane   every message is a package of its own; aggregation exists to avoid this
//   automatic  what shmem_inc does by default: lanes share packages
//   combined   a group adds up in its scratchpad, and sends one addition for each counter that it touched
//
// Combining by hand pays where many lanes of a group update the same counter, as they do here.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <span>
#include <vector>

#include <esker/esker.hpp>
#include <esker/lane.hpp>

namespace {

constexpr std::uint64_t kLanes = 1 << 11;    // on each PE
constexpr std::uint32_t kUpdates = 32;       // of each lane
constexpr std::uint32_t kCounters = 1 << 9;  // on all PEs together

/// The counter that update i of a lane adds 1 to: the lesser of two random ones, so that low counters are
/// hit often. Counter c is element c / n_pes on PE c % n_pes.
ESKER_HD std::uint32_t counter_of(std::uint64_t pe, std::uint64_t lane, std::uint32_t i) {
  std::uint64_t x = ((pe * kLanes + lane) * kUpdates + i + 1) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  const auto a = static_cast<std::uint32_t>(x >> 34) % kCounters;
  const auto b = static_cast<std::uint32_t>(x) % kCounters;
  return a < b ? a : b;
}

/// A group's own counters, in scratchpad: memory that its lanes share and reach fast.
struct Sums {
  esker::GroupAtomic<std::uint32_t> of[kCounters];
};

/// Runs `kernel` on kLanes lanes of each PE and checks every counter. Returns the rate of all PEs in
/// million updates a second, or -1 if a counter is wrong.
template <class Kernel>
double measure(esker::Runtime& rt, esker::SymmetricArray<std::uint64_t> counters,
               const std::vector<std::uint64_t>& expected, const Kernel& kernel) {
  double seconds = 0;
  std::uint64_t wrong = 0;
  for (int run = 0; run < 2; ++run) {  // the first one warms up
    const std::vector<std::uint64_t> zeros(counters.size());
    rt.heap().write(counters, 0, std::span<const std::uint64_t>(zeros));
    rt.barrier_all();  // no PE sends before every PE has cleared its counters
    const auto begin = std::chrono::steady_clock::now();
    rt.launch(kLanes, kernel);
    rt.barrier_all();
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    const std::vector<std::uint64_t> counted = rt.heap().read(counters);
    for (std::uint64_t c = 0; c < counted.size(); ++c) wrong += counted[c] != expected[c] ? 1 : 0;
  }
  rt.all_reduce({&wrong, 1}, esker::Reduction::kSum);
  rt.all_reduce({&seconds, 1}, esker::Reduction::kMax);
  return wrong == 0 ? kLanes * kUpdates * rt.n_pes() / seconds * 1e-6 : -1;
}

}  // namespace

int main(int argc, char** argv) {
  esker::Runtime rt(argc, argv);
  const std::uint32_t n_pes = rt.n_pes();
  const auto counters = rt.heap().allocate<std::uint64_t>((kCounters + n_pes - 1) / n_pes);
  std::vector<std::uint64_t> expected(counters.size());
  for (std::uint64_t pe = 0; pe < n_pes; ++pe) {
    for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
      for (std::uint32_t i = 0; i < kUpdates; ++i) {
        const std::uint32_t c = counter_of(pe, lane, i);
        if (c % n_pes == rt.pe()) ++expected[c / n_pes];
      }
    }
  }

  const double per_lane = measure(rt, counters, expected, [=] ESKER_LAMBDA(esker::WorkItem item) {
    for (std::uint32_t i = 0; i < kUpdates; ++i) {
      const std::uint32_t c = counter_of(item.pe(), item.global_id(), i);
      shmem_inc(item, &counters[c / n_pes], c % n_pes, esker::PerLane{});
    }
  });
  const double automatic = measure(rt, counters, expected, [=] ESKER_LAMBDA(esker::WorkItem item) {
    for (std::uint32_t i = 0; i < kUpdates; ++i) {
      const std::uint32_t c = counter_of(item.pe(), item.global_id(), i);
      shmem_inc(item, &counters[c / n_pes], c % n_pes);
    }
  });
  const double combined = measure(rt, counters, expected, [=] ESKER_LAMBDA(esker::GroupItem & item) {
    auto& sums = item.group_lane().scratch<Sums>();  // zeroed; every lane of the group calls this
    for (std::uint32_t i = 0; i < kUpdates; ++i)
      sums.of[counter_of(item.pe(), item.global_id(), i)].fetch_add_relaxed(1);
    item.group().sync();  // the sums are complete
    for (std::uint32_t c = item.lane(); c < kCounters; c += item.group_lanes()) {
      const std::uint32_t sum = sums.of[c].load_relaxed();
      if (sum > 0) shmem_add(item, &counters[c / n_pes], sum, c % n_pes);
    }
  });

  const bool right = per_lane > 0 && automatic > 0 && combined > 0;
  if (rt.pe() == 0) {
    std::printf(
        "styles: million updates a second on %u PEs: per lane %.2f, automatic %.2f, combined %.2f: %s\n",
        n_pes, per_lane, automatic, combined, right ? "every counter verified" : "WRONG");
  }
  return right ? 0 : 1;
}
