// A small program that sends increments and active messages from a kernel: what a user's source file costs to
// compile. Its time has a limit; it also runs.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <esker/esker.hpp>

namespace {

constexpr std::uint64_t kLanes = 1u << 16;
constexpr std::uint64_t kCells = 1024;

struct Largest {
  std::uint64_t value;
};
struct Raise {
  ESKER_HD void operator()(esker::HandlerContext&, Largest& largest, const std::uint64_t& value) const {
    if (value > largest.value) largest.value = value;
  }
};

}  // namespace

int main(int argc, char** argv) {
  esker::Runtime rt(argc, argv);
  const auto counts = rt.heap().allocate<std::uint64_t>(kCells);
  const auto largest = rt.heap().allocate<Largest>(kCells);
  const auto raise = rt.register_handler<Largest, std::uint64_t>("raise", Raise{});
  const std::uint32_t n_pes = rt.n_pes();

  rt.launch(kLanes, [=] ESKER_LAMBDA(esker::WorkItem item) {
    const std::uint64_t cell = item.global_id() % kCells;
    const auto pe = static_cast<std::uint32_t>(item.global_id() / kCells % n_pes);
    shmem_inc(item, &counts[cell], pe);
    shmem_am(item, raise, &largest[cell], item.global_id(), pe);
  });
  rt.barrier_all();

  // Each PE sends the same, so that each cell counts them all and keeps the last value that leads here.
  std::uint64_t sum = 0;
  std::uint64_t wrong = 0;
  for (std::uint64_t cell = 0; cell < kCells; ++cell) {
    sum += counts[cell];
    if (largest[cell].value % kCells != cell) ++wrong;
  }
  std::uint64_t totals[2] = {sum, wrong};
  rt.all_reduce(totals, esker::Reduction::kSum);
  const bool right = totals[0] == kLanes * n_pes && totals[1] == 0;
  if (rt.pe() == 0) std::printf("%s\n", right ? "active messages: right" : "active messages: WRONG");
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
