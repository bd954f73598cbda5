// A user's program: every PE counts up a table that all of them share. It knows what is installed, no more.
#include <cstdint>
#include <cstdio>

#include <esker/esker.hpp>

int main(int argc, char** argv) {
  constexpr std::uint64_t kLanes = 1000;
  constexpr std::uint64_t kCounters = 16;
  esker::Runtime rt(argc, argv);
  auto hits = rt.heap().allocate<std::uint64_t>(kCounters);
  rt.launch(kLanes, [=] ESKER_LAMBDA(esker::WorkItem item) {
    shmem_inc(item, &hits[item.global_id() % kCounters],
              static_cast<std::uint32_t>(item.global_id() % item.n_pes()));
  });
  rt.barrier_all();

  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < kCounters; ++i) sum += hits[i];
  rt.all_reduce({&sum, 1}, esker::Reduction::kSum);
  std::printf("%llu of %llu updates\n", static_cast<unsigned long long>(sum),
              static_cast<unsigned long long>(kLanes * rt.n_pes()));
  return sum == kLanes * rt.n_pes() ? 0 : 1;
}
