// queens: in how many ways n queens stand on a board of n by n without attacking each other, or one of them
// (thesis, 4.5.1). A task is a board whose first rows have their queens, and the columns that remain to be
// tried in the next row: it places one queen and leaves the rest to a second task. Every placement is a task,
// but for those in the last --base-rows rows.
//
// Under mpirun all PEs count, or search, together. Counts are verified against the published ones (OEIS
// A000170), what was found by looking at each pair of queens.
#include <cstdio>
#include <string>
#include <vector>

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
static_assert(kMostQueens <= queens::Search::kMostRows);

/// Whether these are queens of all rows, no two of which attack each other.
bool is_solution(const std::vector<std::uint32_t>& columns, std::uint64_t n) {
  if (columns.size() != n) return false;
  for (std::size_t a = 0; a < n; ++a) {
    if (columns[a] >= n) return false;
    for (std::size_t b = 0; b < a; ++b) {
      const std::size_t apart = columns[a] < columns[b] ? columns[b] - columns[a] : columns[a] - columns[b];
      if (apart == 0 || apart == a - b) return false;
    }
  }
  return true;
}

template <class Board>
int count(const task_apps::Options& o, const task_apps::Options::Place& place, std::uint64_t n,
          std::uint64_t base_rows) {
  task_apps::Tasks<Board> tasks(place, o.task_options());
  const auto measured = task_apps::measure(
      o,
      [&] {
        tasks.run(Board::empty(static_cast<std::uint32_t>(n)));
        return tasks.total().sum == kSolutions[n];
      },
      [&]() -> const auto& { return tasks.total(); });
  const std::string unit = base_rows == 0 ? "placements" : "tasks";
  nlohmann::json more = {{"n", n}, {"base_rows", base_rows}, {"solutions", measured.report.sum}};
  more.update(task_apps::balance(place, unit, tasks.report().tasks));
  return task_apps::finish(o, place.device, "queens", measured, static_cast<double>(measured.report.tasks),
                           unit, more);
}

int find_first(const task_apps::Options& o, const task_apps::Options::Place& place, std::uint64_t n) {
  using esker::tasks::TaskError;
  using queens::Search;
  task_apps::Tasks<Search> tasks(place, o.task_options());
  std::vector<std::uint32_t> columns;
  const auto measured = task_apps::measure(
      o,
      [&] {
        columns.clear();
        try {
          tasks.run(Search::empty(static_cast<std::uint32_t>(n)));
          return kSolutions[n] == 0;
        } catch (const TaskError& error) {
          if (error.reason() != TaskError::Reason::kFailed || error.code() != Search::kFound) throw;
          for (std::uint32_t row = 0; row < n; ++row)
            columns.push_back(Search::column(error.values()[0], error.values()[1], row));
        }
        return is_solution(columns, n);
      },
      [&]() -> const auto& { return tasks.total(); });
  nlohmann::json more = {{"n", n}, {"columns", columns}};
  more.update(task_apps::balance(place, "placements", tasks.report().tasks));
  if (!o.is_silent) {
    std::string line = columns.empty() ? "no solution" : "columns of the rows:";
    for (const std::uint32_t column : columns) line.append(" ").append(std::to_string(column));
    std::fprintf(o.json == "-" ? stderr : stdout, "queens: %s\n", line.c_str());
  }
  return task_apps::finish(o, place.device, "queens", measured, static_cast<double>(measured.report.tasks),
                           "placements", more);
}

int run(int argc, char** argv) {
  constexpr std::uint64_t kBaseRows = 8;
  task_apps::Options o;
  std::uint64_t n = 0, base_rows = 0;
  std::string find = "all";
  esker::CommandLine line("esker-queens",
                          "Counts the ways to place n queens on a board, a task a placement, or finds one.");
  o.add_to(line);
  line.add("n", &n, "queens, and rows of the board; 0: as --size says")
      .add("base-rows", &base_rows, "rows that one task goes through, the last ones: 0 or 8")
      .add("find", &find, "count all solutions, or stop at the first", {"all", "first"});
  const auto place = o.open(line, argc, argv);
  if (n > kMostQueens) harness::usage("--n is at most " + std::to_string(kMostQueens));
  if (base_rows != 0 && base_rows != kBaseRows)
    harness::usage("--base-rows is 0 or " + std::to_string(kBaseRows));
  if (n == 0) n = o.size == "small" ? 10 : o.size == "medium" ? 13 : 16;
  if (find == "first") {
    if (base_rows != 0) harness::usage("--find first has a task for every placement: no --base-rows");
    return find_first(o, place, n);
  }
  if (base_rows == 0) return count<queens::Board>(o, place, n, base_rows);
  return count<queens::BoardOf<kBaseRows>>(o, place, n, base_rows);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-queens", argc, argv, run); }
