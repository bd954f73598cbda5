// What is known of the problems.
#include "problems.hpp"

#include <fmt/format.h>

namespace esker::bench {

std::uint64_t expected(const Problem& problem) {
  constexpr std::uint64_t kQueens[kMostQueens + 1] = {
      1,   1,     0,      0,      2,       10,        4,          40,         92,         352,
      724, 2'680, 14'200, 73'712, 365'596, 2'279'184, 14'772'512, 95'815'104, 666'090'624};
  if (problem.kind == Kind::kSort || problem.kind == Kind::kStrassen) return 1;
  if (problem.kind == Kind::kQueens || problem.kind == Kind::kQueensBase) return kQueens[problem.n];
  std::uint64_t a = 0, b = 1;
  for (std::uint32_t i = 0; i < problem.n; ++i) {
    b += a;
    a = b - a;
  }
  return a;
}

std::string name_of(const Problem& problem) {
  const char* const name = problem.kind == Kind::kSort                                          ? "sort"
                           : problem.kind == Kind::kStrassen                                    ? "strassen"
                           : problem.kind == Kind::kQueens || problem.kind == Kind::kQueensBase ? "queens"
                                                                                                : "fib";
  return fmt::format("{}({})", name, problem.n);
}

}  // namespace esker::bench
