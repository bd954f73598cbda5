// Collective calls: each half of the PEs sorts keys of its own over a communicator of its own, and then all
// PEs together find out how the halves compare.
//
// Every PE draws another number of keys. sort() divides them evenly, whatever they are; exclusive_scan() says
// which rank a PE's first key has; all_reduce() and gather() put together what the first PE prints. The PEs
// of this example are threads of one process, which needs no MPI. With MPI a program splits its communicator
// and gives that to Runtime: see with_mpi.cpp.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <esker/collectives.hpp>
#include <esker/config.hpp>
#include <esker/esker.hpp>

namespace {

constexpr std::uint32_t kPes = 4;
constexpr std::uint64_t kKeys = 20'000;  // of PE 0; the others have fewer

/// Some keys are drawn by many PEs, and one by all.
std::vector<std::int32_t> draw_keys(std::uint32_t pe) {
  std::vector<std::int32_t> keys(kKeys / (pe + 1));
  for (std::uint64_t i = 0; i < keys.size(); ++i) {
    const std::uint64_t x = (pe * kKeys + i + 1) * 0x9e3779b97f4a7c15;
    keys[i] = i % 3 == 0 ? 7 : static_cast<std::int32_t>(x >> 44) - (1 << 19);
  }
  return keys;
}

/// What a half has sorted, as its PE 0 tells it.
struct Summary {
  std::uint64_t keys;
  std::int32_t median;
  std::int32_t is_right;
};

Summary sort_half(esker::Runtime& rt, std::uint32_t half) {
  const std::vector<std::int32_t> mine = esker::sort(rt, draw_keys(2 * rt.pe() + half));

  // The rank of this PE's first key, and so which PE has the median.
  const std::uint64_t before = esker::exclusive_scan(rt, mine.size(), 0, esker::Reduction::kSum);
  const std::uint64_t all = esker::all_reduce(rt, mine.size(), esker::Reduction::kSum);
  const bool has_median = before <= all / 2 && all / 2 < before + mine.size();
  const std::uint32_t owner = esker::all_reduce(rt, has_median ? rt.pe() : 0, esker::Reduction::kMax);
  std::int32_t median = has_median ? mine[all / 2 - before] : 0;
  median = esker::broadcast(rt, median, owner);

  // Serial code draws the keys of the half again.
  std::vector<std::int32_t> expected;
  for (std::uint32_t pe = 0; pe < rt.n_pes(); ++pe) {
    const std::vector<std::int32_t> keys = draw_keys(2 * pe + half);
    expected.insert(expected.end(), keys.begin(), keys.end());
  }
  std::sort(expected.begin(), expected.end());
  const auto first = expected.begin() + static_cast<std::ptrdiff_t>(before);
  const bool is_right =
      expected.size() == all && median == expected[all / 2] &&
      std::equal(mine.begin(), mine.end(), first, first + static_cast<std::ptrdiff_t>(mine.size()));
  return {all, median, esker::all_reduce(rt, is_right ? 1 : 0, esker::Reduction::kMin)};
}

}  // namespace

int main(int argc, char** argv) {
  esker::Config config = esker::config_from_arguments(argc, argv);
  config.device = esker::DeviceKind::kCpu;
  config.startup = esker::StartupPrint::kQuiet;
  const auto everybody = esker::Communicator::threads(kPes);
  const std::vector<esker::Communicator> halves[2] = {esker::Communicator::threads(kPes / 2),
                                                      esker::Communicator::threads(kPes / 2)};
  std::atomic<bool> all_right{true};
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t pe = 0; pe < kPes; ++pe) {
      threads.emplace_back([&, pe] {
        // Two Runtimes at a time, made in the same order by all PEs that share one.
        esker::Runtime all(everybody[pe], config);
        esker::Runtime half(halves[pe % 2][pe / 2], config);
        const Summary mine = sort_half(half, pe % 2);
        const std::vector<Summary> summaries = esker::gather(all, mine);
        for (std::size_t i = 0; i < summaries.size() && i < 2; ++i) {
          std::cout << "sample_sort: half " << i << " has sorted " << summaries[i].keys
                    << " keys, the median is " << summaries[i].median
                    << (summaries[i].is_right == 1 ? ": verified\n" : ": WRONG\n");
        }
        if (mine.is_right != 1) all_right = false;
      });
    }
  }
  return all_right ? 0 : 1;
}
