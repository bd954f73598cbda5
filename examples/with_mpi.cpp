// With MPI: the program initialises MPI, uses its own communicator, and Esker for one part of its work.
//
// A parallel counting sort must know how many keys of all PEs precede the first key of each PE. Esker
// counts the keys, each on the PE that it belongs to. MPI_Exscan adds the counts up over the PEs.
#include <mpi.h>

#include <cstdint>
#include <iostream>
#include <vector>

#include <esker/config.hpp>
#include <esker/esker.hpp>
#include <esker/mpi.hpp>

namespace {

constexpr std::uint64_t kKeys = 1 << 16;  // on each PE
constexpr std::uint64_t kBins = 1 << 10;  // on each PE: PE p has the keys p * kBins .. (p + 1) * kBins - 1

ESKER_HD std::uint64_t key_of(std::uint64_t seed, std::uint64_t pe, std::uint64_t i, std::uint64_t n_pes) {
  std::uint64_t x = (seed + pe * kKeys + i) * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  return (x ^ (x >> 31)) % (kBins * n_pes);
}

/// The part of the program that uses Esker, which ends with `rt`. The program may make another Runtime later.
std::vector<std::uint64_t> count_keys(MPI_Comm comm, const esker::Config& config, std::uint64_t seed) {
  esker::Runtime rt(comm, config);  // PEs are the ranks of the communicator
  const auto bins = rt.heap().allocate<std::uint64_t>(kBins);
  rt.launch(kKeys, [=] ESKER_LAMBDA(esker::WorkItem item) {
    const std::uint64_t key = key_of(seed, item.pe(), item.global_id(), item.n_pes());
    shmem_inc(item, &bins[key % kBins], static_cast<std::uint32_t>(key / kBins));
  });
  // Finish Esker's messages before a blocking call of MPI. If MPI was initialised below MPI_THREAD_MULTIPLE,
  // they move during Esker's calls alone: a PE in MPI_Barrier would keep one in barrier_all() waiting.
  rt.barrier_all();
  return rt.heap().read(bins);
}

}  // namespace

int main(int argc, char** argv) {
  // Esker works with every level from MPI_THREAD_FUNNELED on. With this one it moves messages at all times.
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  const esker::Config config = esker::config_from_arguments(argc, argv);
  // Esker makes its own duplicate of this communicator, so its messages and these never meet.
  MPI_Comm mine = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &mine);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(mine, &rank);
  MPI_Comm_size(mine, &ranks);

  std::uint64_t seed = rank == 0 ? 42 : 0;  // as if rank 0 had read it from a file
  MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, mine);

  const std::vector<std::uint64_t> counted = count_keys(mine, config, seed);

  std::uint64_t here = 0, before = 0;  // keys on this PE, and on those below it
  for (const std::uint64_t count : counted) here += count;
  MPI_Exscan(&here, &before, 1, MPI_UINT64_T, MPI_SUM, mine);
  if (rank == 0) before = 0;  // where MPI_Exscan leaves it undefined

  // Serial code draws the keys of all PEs again.
  const auto me = static_cast<std::uint64_t>(rank), n = static_cast<std::uint64_t>(ranks);
  std::vector<std::uint64_t> expected(kBins);
  std::uint64_t expected_before = 0;
  for (std::uint64_t pe = 0; pe < n; ++pe) {
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const std::uint64_t key = key_of(seed, pe, i, n);
      if (key / kBins < me) ++expected_before;
      if (key / kBins == me) ++expected[key % kBins];
    }
  }
  int right = counted == expected && before == expected_before ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &right, 1, MPI_INT, MPI_MIN, mine);
  if (rank == 0) {
    std::cout << "with_mpi: " << kKeys * n << " keys counted by Esker, positions from MPI_Exscan, on "
              << ranks << " PEs: " << (right == 1 ? "every bin and position verified\n" : "WRONG\n");
  }
  MPI_Comm_free(&mine);
  MPI_Finalize();  // Esker leaves that to whoever has initialised MPI
  return right == 1 ? 0 : 1;
}
