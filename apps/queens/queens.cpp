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
#include "queens_task.hpp"

namespace {

constexpr std::uint64_t kSolutions[] = {
    1,   1,     0,      0,      2,       10,        4,          40,         92,          352,
    724, 2'680, 14'200, 73'712, 365'596, 2'279'184, 14'772'512, 95'815'104, 666'090'624, 4'968'057'848};
constexpr std::uint64_t kMostQueens = std::size(kSolutions) - 1;

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
  task_apps::Tasks<queens::Board> tasks(place, o.task_options());
  const auto measured = task_apps::measure(
      o,
      [&] {
        tasks.run(queens::Board::empty(static_cast<std::uint32_t>(n)));
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
