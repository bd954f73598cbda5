// fib and queens on oneTBB: a task_group a call, as its users write them; its sort.
#include <array>
#include <memory>

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_sort.h>
#include <oneapi/tbb/task_group.h>

#include "sides.hpp"
#include "sorts.hpp"

namespace esker::bench::tbb_side {

void use_threads(unsigned threads) {
  static std::unique_ptr<tbb::global_control> control;
  control = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism, threads);
}

long fib(int n) {
  if (n < 2) return n;
  long a = 0, b = 0;
  tbb::task_group children;
  children.run([&] { a = fib(n - 1); });
  children.run_and_wait([&] { b = fib(n - 2); });
  return a + b;
}

namespace {
std::uint64_t place(std::uint32_t columns, std::uint32_t left, std::uint32_t right, std::uint32_t all) {
  if (columns == all) return 1;
  std::array<std::uint64_t, 32> found;  // by each child
  std::uint32_t children = 0;
  tbb::task_group group;
  for (std::uint32_t free = all & ~(columns | left | right); free != 0; free &= free - 1) {
    const std::uint32_t queen = free & (~free + 1);
    std::uint64_t& mine = found[children++];
    group.run([=, &mine] { mine = place(columns | queen, (left | queen) << 1, (right | queen) >> 1, all); });
  }
  group.wait();
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < children; ++i) sum += found[i];
  return sum;
}
}  // namespace

std::uint64_t queens(std::uint32_t n) { return place(0, 0, 0, (1u << n) - 1); }

void sort(std::vector<std::uint32_t>& words) { tbb::parallel_sort(words.begin(), words.end()); }

}  // namespace esker::bench::tbb_side
