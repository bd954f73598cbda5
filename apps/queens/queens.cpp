// queens: in how many ways n queens stand on a board of n by n without attacking each other (thesis, 4.5.1).
// A task is a board whose first rows have their queens, and the columns that remain to be tried in the next
// row: it places one queen and leaves the rest to a second task. There is no cut-off: every placement is a
// task.
//
// Under mpirun all PEs count together. Verified against the published counts (OEIS A000170).
#include <esker/tasks.hpp>

#include "../harness/application.hpp"
#include "../harness/failure.hpp"
#include "../tasks/application.hpp"

namespace {

constexpr std::uint64_t kSolutions[] = {
    1,   1,     0,      0,      2,       10,        4,          40,         92,          352,
    724, 2'680, 14'200, 73'712, 365'596, 2'279'184, 14'772'512, 95'815'104, 666'090'624, 4'968'057'848};
constexpr std::uint64_t kMostQueens = std::size(kSolutions) - 1;

struct Board {
  using Result = void;
  static constexpr int kMaxSpawns = 2;
  std::uint32_t columns;      // that have a queen; all ones: the board is full
  std::uint32_t left, right;  // that a queen attacks along a diagonal, in the next row
  std::uint32_t free;         // of the next row, still to be tried; not 0
  std::uint32_t all;          // columns of the board

  ESKER_HD void operator()(auto& task) const {
    const std::uint32_t queen = free & (~free + 1), others = free ^ queen;
    if (others != 0) task.spawn(Board{columns, left, right, others, all});
    const std::uint32_t placed = columns | queen;
    if (placed == all) return task.add(1);
    const std::uint32_t next_left = (left | queen) << 1, next_right = (right | queen) >> 1;
    const std::uint32_t next_free = all & ~(placed | next_left | next_right);
    if (next_free != 0) task.spawn(Board{placed, next_left, next_right, next_free, all});
  }
};

int run(int argc, char** argv) {
  task_apps::Options o;
  std::uint64_t n = 0;
  esker::CommandLine line("esker-queens",
                          "Counts the ways to place n queens on a board, a task a placement.");
  o.add_to(line);
  line.add("n", &n, "queens, and rows of the board; 0: as --size says");
  const auto place = o.open(line, argc, argv);
  if (n > kMostQueens) harness::usage("--n is at most " + std::to_string(kMostQueens));
  if (n == 0) n = o.size == "small" ? 10 : o.size == "medium" ? 13 : 16;
  const std::uint32_t all = (1u << n) - 1;
  task_apps::Tasks<Board> tasks(place, o.task_options());
  const auto measured = task_apps::measure(
      o,
      [&] {
        tasks.run(Board{0, 0, 0, all, all});
        return tasks.total().sum == kSolutions[n];
      },
      [&]() -> const auto& { return tasks.total(); });
  nlohmann::json more = {{"n", n}, {"solutions", measured.report.sum}};
  more.update(task_apps::balance(place, "placements", tasks.report().tasks));
  return task_apps::finish(o, place.device, "queens", measured, static_cast<double>(measured.report.tasks),
                           "placements", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-queens", argc, argv, run); }
