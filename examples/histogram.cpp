// Histogram: every lane counts one key in a table spread over all PEs, with shmem_inc.
//
// Start here. The program shows the four steps of any other: allocate memory that every PE can reach,
// launch a kernel whose lanes send messages, wait until the messages are applied, read the result.
#include <cstdint>
#include <iostream>
#include <vector>

#include <esker/esker.hpp>

namespace {

constexpr std::uint64_t kKeys = 1 << 17;  // on each PE
constexpr std::uint64_t kBins = 1 << 10;  // on each PE

/// Key i of PE `pe`: random, but a function of these two numbers alone, so the check can draw it again.
/// ESKER_HD marks what both lanes and the host call; in a CPU build it is empty.
ESKER_HD std::uint64_t key_of(std::uint64_t pe, std::uint64_t i) {
  std::uint64_t x = (pe * kKeys + i + 1) * 0x9e3779b97f4a7c15;  // the SplitMix64 generator
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

/// Bin b of the whole table is element b / n_pes on PE b % n_pes.
struct Bin {
  std::uint32_t pe;
  std::uint64_t index;
};
ESKER_HD Bin bin_of(std::uint64_t key, std::uint32_t n_pes) {
  const std::uint64_t bin = key % (kBins * n_pes);
  return {static_cast<std::uint32_t>(bin % n_pes), bin / n_pes};
}

}  // namespace

int main(int argc, char** argv) {
  // Every PE runs main(). The constructor connects them, and takes Esker's options, such as --trace FILE.
  esker::Runtime rt(argc, argv);

  // A part of the table on every PE, zeroed. The part has the same offset everywhere, so &table[i] names
  // element i of any PE. On a GPU it is in the GPU's memory.
  const auto table = rt.heap().allocate<std::uint64_t>(kBins);

  // One lane per key. A lane may send to any PE, its own among them, from any branch or loop; nothing waits
  // for an answer. Kernels capture by value: a GPU does not see this function's variables.
  rt.launch(kKeys, [=] ESKER_LAMBDA(esker::WorkItem item) {
    const Bin bin = bin_of(key_of(item.pe(), item.global_id()), item.n_pes());
    shmem_inc(item, &table[bin.index], bin.pe);
  });

  // launch() may return before the lanes have ended. After the barrier every message of every PE is applied.
  rt.barrier_all();

  // Serial code counts the keys of all PEs that belong here, and every bin must agree.
  std::vector<std::uint64_t> expected(kBins);
  for (std::uint64_t pe = 0; pe < rt.n_pes(); ++pe) {
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const Bin bin = bin_of(key_of(pe, i), rt.n_pes());
      if (bin.pe == rt.pe()) ++expected[bin.index];
    }
  }
  const std::vector<std::uint64_t> counted = rt.heap().read(table);  // a copy in host memory
  std::uint64_t wrong = 0;
  for (std::uint64_t b = 0; b < kBins; ++b) wrong += counted[b] != expected[b] ? 1 : 0;
  rt.all_reduce({&wrong, 1}, esker::Reduction::kSum);  // all PEs end with the same status

  if (rt.pe() == 0) {
    std::cout << "histogram: " << kKeys * rt.n_pes() << " keys counted in " << kBins * rt.n_pes()
              << " bins on " << rt.n_pes() << " PEs: " << (wrong == 0 ? "every bin verified\n" : "WRONG\n");
  }
  return wrong == 0 ? 0 : 1;
}
