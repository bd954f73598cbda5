// Group kernel: lanes with different numbers of results pack them into one list without gaps.
//
// Each lane finds the prime factors of a number. A prefix sum over the group gives each lane its place in
// the group's list. One lane sends the length of the list on behalf of all.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <vector>

#include <esker/config.hpp>
#include <esker/esker.hpp>

namespace {

constexpr std::uint32_t kNumbers = 1 << 14;  // on each PE
constexpr std::uint32_t kMostFactors = 9;    // different ones, of a 32-bit number

/// Writes the different prime factors of n, smallest first, and returns how many there are.
ESKER_HD std::uint32_t factorise(std::uint32_t n, std::uint32_t* factors) {
  std::uint32_t count = 0;
  for (std::uint32_t p = 2; p * p <= n; ++p) {
    if (n % p != 0) continue;
    factors[count++] = p;
    while (n % p == 0) n /= p;
  }
  if (n > 1) factors[count++] = n;
  return count;
}
ESKER_HD std::uint32_t number_of(std::uint64_t pe, std::uint64_t i) {
  return static_cast<std::uint32_t>(2 + pe * kNumbers + i);
}

/// Where lists go: that of group g to PE g % n_pes, which has a place for each list that it gets.
struct Places {
  std::uint32_t n_pes;
  std::uint64_t groups;  // on each PE
  std::uint64_t capacity;
  ESKER_HD std::uint32_t pe(std::uint64_t group) const { return static_cast<std::uint32_t>(group % n_pes); }
  ESKER_HD std::uint64_t of_each() const { return (groups + n_pes - 1) / n_pes; }
  ESKER_HD std::uint64_t list(std::uint64_t from, std::uint64_t group) const {
    return from * of_each() + group / n_pes;
  }
};

}  // namespace

int main(int argc, char** argv) {
  esker::Runtime rt(argc, argv);
  const std::uint64_t group_lanes = rt.config().group_lanes;  // 256, unless --group-lanes says otherwise
  const Places places{rt.n_pes(), (kNumbers + group_lanes - 1) / group_lanes, group_lanes * kMostFactors};
  const auto lengths = rt.heap().allocate<std::uint32_t>(places.n_pes * places.of_each());
  const auto lists = rt.heap().allocate<std::uint32_t>(places.n_pes * places.of_each() * places.capacity);

  // A kernel that takes a GroupItem& can use its group's collectives. Every lane of the group calls them, in
  // the same order, so they must not stand in a branch.
  rt.launch(kNumbers, [=] ESKER_LAMBDA(esker::GroupItem & item) {
    std::uint32_t factors[kMostFactors];
    const std::uint32_t mine = factorise(number_of(item.pe(), item.global_id()), factors);
    auto group = item.group();
    const std::uint32_t first = group.prefix_sum(mine);            // of the lower lanes
    const std::uint32_t total = group.reduce(mine, esker::Sum{});  // of all lanes

    // Sending is no collective: each lane sends as many messages as it has factors.
    const std::uint32_t to = places.pe(item.group_id());
    const std::uint64_t list = places.list(item.pe(), item.group_id());
    for (std::uint32_t i = 0; i < mine; ++i)
      shmem_put(item, &lists[list * places.capacity + first + i], factors[i], to);
    if (item.lane() == 0) shmem_put(item, &lengths[list], total, to);
  });
  rt.barrier_all();

  // Each list on this PE must hold the factors of its group's numbers, in order.
  const std::vector<std::uint32_t> found_lengths = rt.heap().read(lengths);
  const std::vector<std::uint32_t> found = rt.heap().read(lists);
  std::uint64_t wrong = 0, all = 0;
  for (std::uint32_t from = 0; from < rt.n_pes(); ++from) {
    for (std::uint64_t group = rt.pe(); group < places.groups; group += rt.n_pes()) {
      const std::uint64_t list = places.list(from, group);
      std::vector<std::uint32_t> expected;
      for (std::uint64_t i = group * group_lanes; i < (group + 1) * group_lanes && i < kNumbers; ++i) {
        std::uint32_t factors[kMostFactors];
        const std::uint32_t count = factorise(number_of(from, i), factors);
        expected.insert(expected.end(), factors, factors + count);
      }
      const bool is_equal =
          found_lengths[list] == expected.size() &&
          std::equal(expected.begin(), expected.end(), found.data() + list * places.capacity);
      wrong += is_equal ? 0 : 1;
      all += expected.size();
    }
  }
  rt.all_reduce({&wrong, 1}, esker::Reduction::kSum);
  rt.all_reduce({&all, 1}, esker::Reduction::kSum);
  if (rt.pe() == 0) {
    std::cout << "group_kernel: " << all << " prime factors packed by " << places.groups * rt.n_pes()
              << " groups on " << rt.n_pes()
              << " PEs: " << (wrong == 0 ? "every list verified\n" : "WRONG\n");
  }
  return wrong == 0 ? 0 : 1;
}
