// Every lane takes a ticket from PE 0's counter, and then looks at the one that its neighbour has.
#include <cstdint>

#include <esker/esker.hpp>

int main(int argc, char** argv) {
  esker::Runtime rt(argc, argv);
  constexpr std::uint64_t kLanes = 1 << 14;  // of each PE
  const auto counter = rt.heap().allocate<std::uint64_t>(1);
  const auto tickets = rt.heap().allocate<std::uint64_t>(kLanes);  // results are in the PE's own part
  const auto theirs = rt.heap().allocate<std::uint64_t>(kLanes);

  rt.launch(kLanes, [=] ESKER_LAMBDA(esker::WorkItem item) {
    shmem_fetch_inc(item, &tickets[item.global_id()], counter.data(), 0);
  });
  rt.barrier_all();  // quiet() would do for this PE's tickets
  rt.launch(kLanes, [=] ESKER_LAMBDA(esker::WorkItem item) {
    const std::uint64_t i = item.global_id();
    shmem_get(item, &theirs[i], &tickets[i], (item.pe() + 1) % item.n_pes());
  });
  rt.quiet();

  std::uint64_t sum = 0;
  for (const std::uint64_t ticket : rt.heap().read(theirs)) sum += ticket;
  rt.all_reduce({&sum, 1}, esker::Reduction::kSum);
  const std::uint64_t all = kLanes * rt.n_pes();
  return sum == all * (all - 1) / 2 ? 0 : 1;  // 0, 1, 2, ..., each once
}
