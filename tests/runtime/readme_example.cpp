// A histogram over all PEs: every lane draws a key and counts it where its bin lives.
#include <cstdint>
#include <cstdio>

#include <esker/esker.hpp>

int main(int argc, char** argv) {
  esker::Runtime rt(argc, argv);                               // collective; initialises MPI unless you have
  constexpr std::uint64_t kKeys = 1 << 20;                     // of each PE
  constexpr std::uint64_t kBins = 1 << 12;                     // on each PE
  const auto bins = rt.heap().allocate<std::uint64_t>(kBins);  // zeroed; the same offset on every PE

  rt.launch(kKeys, [=] ESKER_LAMBDA(esker::WorkItem item) {
    std::uint64_t key = (item.pe() * kKeys + item.global_id() + 1) * 0x9e3779b97f4a7c15;
    key ^= key >> 32;
    const auto owner = static_cast<std::uint32_t>(key / kBins % item.n_pes());
    shmem_inc(item, &bins[key % kBins], owner);  // any lane, any branch, any PE
  });
  rt.barrier_all();  // every message of every PE has been applied

  std::uint64_t total = 0;
  for (const std::uint64_t count : rt.heap().read(bins)) total += count;  // wherever the heap stands
  rt.all_reduce({&total, 1}, esker::Reduction::kSum);
  if (rt.pe() == 0)
    std::printf("%llu keys counted on %u PEs\n", static_cast<unsigned long long>(total), rt.n_pes());
  return total == kKeys * rt.n_pes() ? 0 : 1;
}
