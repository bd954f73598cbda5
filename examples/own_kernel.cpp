// Own kernel: a CUDA or HIP kernel that the program launches itself, with <<<>>>, sends messages.
//
// The program chooses the shape of the launch: few lanes, each with a loop over many numbers. Where lanes
// run on the CPU there is no <<<>>>, and Runtime::launch_shape() runs the same function.
#include <cstdint>
#include <iostream>
#include <vector>

#include <esker/esker.hpp>

namespace {

constexpr std::uint64_t kNumbers = 1 << 15;  // on each PE
constexpr std::uint32_t kMostSteps = 1024;   // longer sequences are cut off
constexpr std::uint32_t kGroups = 8;
constexpr std::uint32_t kGroupLanes = 128;

/// Steps of the Collatz sequence from n to 1.
ESKER_HD std::uint32_t collatz_steps(std::uint64_t n) {
  std::uint32_t steps = 0;
  for (; n != 1 && steps + 1 < kMostSteps; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

/// The work of a lane, in both kinds of launch. Counter s, of the numbers that take s steps, is element
/// s / n_pes on PE s % n_pes.
ESKER_HD void count_steps(esker::GroupItem& item, const esker::SymmetricArray<std::uint64_t>& counts) {
  for (std::uint64_t i = item.global_id(); i < kNumbers; i += item.lanes()) {
    const std::uint32_t steps = collatz_steps(item.pe() * kNumbers + i + 1);
    shmem_inc(item, &counts[steps / item.n_pes()], steps % item.n_pes());
  }
}

#if defined(__CUDACC__) || defined(__HIPCC__)
/// A KernelItem is a GroupItem that finds out which lane it belongs to. Every lane makes one, before any
/// lane of its group diverges or returns.
__global__ void count_steps_kernel(esker::DeviceContext context,
                                   esker::SymmetricArray<std::uint64_t> counts) {
  esker::KernelItem item(context);
  count_steps(item, counts);
}
#if defined(__HIPCC__)
using Stream = hipStream_t;
#else
using Stream = cudaStream_t;
#endif
#endif

}  // namespace

int main(int argc, char** argv) {
  esker::Runtime rt(argc, argv);
  const auto counts = rt.heap().allocate<std::uint64_t>((kMostSteps + rt.n_pes() - 1) / rt.n_pes());

  bool is_own = false;
#if defined(__CUDACC__) || defined(__HIPCC__)
  is_own = rt.runs_on_device();  // not with --device cpu, nor where there is no GPU
  if (is_own) {
    // Before the first launch: what a group of the kernel takes.
    rt.reserve_for(count_steps_kernel, kGroupLanes);
    // quiet() and barrier_all() wait for kernels on this stream. A program that uses another stream waits
    // for it before it calls them.
    count_steps_kernel<<<kGroups, kGroupLanes, 0, static_cast<Stream>(rt.stream())>>>(rt.device_context(),
                                                                                      counts);
  }
#endif
  if (!is_own) {
    rt.launch_shape({kGroups * kGroupLanes, kGroupLanes},
                    [=] ESKER_LAMBDA(esker::GroupItem & item) { count_steps(item, counts); });
  }
  rt.barrier_all();

  // The same counts by serial code, over the numbers of all PEs.
  std::vector<std::uint64_t> expected(counts.size());
  for (std::uint64_t n = 1; n <= kNumbers * rt.n_pes(); ++n) {
    const std::uint32_t steps = collatz_steps(n);
    if (steps % rt.n_pes() == rt.pe()) ++expected[steps / rt.n_pes()];
  }
  const std::vector<std::uint64_t> counted = rt.heap().read(counts);
  std::uint64_t wrong = 0;
  for (std::uint64_t s = 0; s < counted.size(); ++s) wrong += counted[s] != expected[s] ? 1 : 0;
  rt.all_reduce({&wrong, 1}, esker::Reduction::kSum);
  if (rt.pe() == 0) {
    std::cout << "own_kernel: Collatz steps of " << kNumbers * rt.n_pes() << " numbers on " << rt.n_pes()
              << " PEs, by " << (is_own ? "<<<>>>" : "launch()") << " on " << rt.device_name()
              << (wrong == 0 ? ": every count verified\n" : ": WRONG\n");
  }
  return wrong == 0 ? 0 : 1;
}
