// toposort, of the bale suite: finds orders of the rows and of the columns of a sparse matrix over all PEs in
// which it is upper triangular. It was, with ones on its diagonal, before random permutations.
//
// Invariant. Row r and column c are row r / n_pes of PE r % n_pes, and so are their places, c's likewise. The
// matrix is a function of the seed and the source of a graph's edges: each joins two vertices, and is the
// entry in the lower one's row and the higher one's column. What each PE has of it is compared with what a
// serial program makes; that the places are right follows from the matrix itself.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <esker/collectives.hpp>
#include <esker/containers.hpp>
#include <esker/esker.hpp>

#include "../graph/edge_source.hpp"
#include "../graph/prefix_sums.hpp"
#include "../harness/application.hpp"
#include "../harness/fill.hpp"
#include "../sparse/matrix.hpp"
#include "../sparse/random_permutation.hpp"
#include "../sparse/serial_matrix.hpp"
#include "elimination.hpp"

namespace {

using sparse::Matrix;
using sparse::Permutation;
using toposort::Node;

struct Options : harness::Options {
  graph::SourceOptions matrix;
  std::string by = "auto";
};

/// The problem, the same on every PE.
struct Problem {
  const graph::EdgeSource& source;
  std::uint64_t seed;

  std::uint64_t rows() const { return source.vertices(); }
  std::uint64_t row_seed() const { return inputs::Random(seed)(0, 0); }
  std::uint64_t column_seed() const { return inputs::Random(seed)(0, 1); }
  /// A part of the entries of the upper triangular matrix.
  template <class Visit>
  void for_each_entry(inputs::Part part, const Visit& visit) const {
    for (std::uint64_t i = part.index; i < rows(); i += part.count) visit(i, i);
    source.for_each_edge(part, [&](const inputs::Edge& edge) {
      if (edge.from != edge.to) visit(std::min(edge.from, edge.to), std::max(edge.from, edge.to));
    });
  }
};

/// A lane asks where an entry's row and column go.
struct Permute {
  sparse::Staged staged;
  Permutation rows, columns;
  ESKER_HD void operator()(esker::WorkItem item) const {
    sparse::Entry& entry = staged.entries[item.global_id()];
    rows.get(item, &entry.row, entry.row);
    columns.get(item, &entry.column, entry.column);
  }
};

Permutation random_permutation(esker::Runtime& rt, const std::string& name, std::uint64_t size,
                               std::uint64_t seed) {
  using sparse::RandomPermutation;
  RandomPermutation darts(rt, name, size, seed, RandomPermutation::By::kMessage);
  darts.prepare();
  rt.barrier_all();
  darts.run();
  darts.free_table();
  return darts.permutation();
}

/// Collective. The permuted matrix.
Matrix permuted(esker::Runtime& rt, sparse::Assembler& assembler, const Problem& problem) {
  const Permutation rows = random_permutation(rt, "toposort-rows", problem.rows(), problem.row_seed());
  const Permutation columns =
      random_permutation(rt, "toposort-columns", problem.rows(), problem.column_seed());
  const sparse::Staged staged = sparse::stage(rt, [&](const auto& visit) {
    problem.for_each_entry({rt.pe(), rt.n_pes()}, visit);
  });
  rt.launch(staged.lanes(), Permute{staged, rows, columns}, "toposort-permute");
  rt.barrier_all();
  const Matrix matrix = assembler.assemble(problem.rows(), staged);
  rt.heap().free(staged.entries);
  rt.heap().free(rows.part());
  rt.heap().free(columns.part());
  return matrix;
}

sparse::SerialMatrix permuted_serially(const Problem& problem) {
  const auto rows = sparse::serial_permutation(problem.rows(), problem.row_seed());
  const auto columns = sparse::serial_permutation(problem.rows(), problem.column_seed());
  return sparse::serial_matrix(problem.rows(), [&](const auto& visit) {
    problem.for_each_entry(
        {}, [&](std::uint64_t row, std::uint64_t column) { visit(rows[row], columns[column]); });
  });
}

/// The computation on one PE.
class Sorting {
 public:
  Sorting(esker::Runtime& rt, const Matrix& matrix, const Matrix& transposed, bool by_lanes)
      : rt_{rt},
        matrix_{matrix},
        transposed_{transposed},
        nodes_{matrix.rows, rt.heap().allocate<Node>(2 * matrix.rows.most())},
        row_places_{Permutation::allocate(rt, matrix.rows.size())},
        column_places_{Permutation::allocate(rt, matrix.rows.size())} {
    if (by_lanes) {
      list_ = {rt.heap().allocate<toposort::Ready>(matrix.rows.most()), rt.heap().allocate<std::uint64_t>(1)};
    }
    eliminate_ = rt.register_handler<Node, toposort::From>("toposort",
                                                           toposort::Eliminate{nodes_, transposed_, list_});
  }

  void run() {
    const std::uint64_t mine = matrix_.rows.count(rt_.pe());
    rt_.launch(mine, toposort::AddUp{matrix_, nodes_}, "toposort-add-up");
    if (list_.is_used()) harness::clear(rt_, list_.length);
    rt_.barrier_all();
    rt_.launch(mine, toposort::Begin{matrix_, nodes_, eliminate_}, "toposort-begin");
    rt_.barrier_all();
    if (list_.is_used()) take_out_columns();
    place_rows();
    rt_.launch(mine, toposort::PlaceColumn{nodes_, row_places_, column_places_}, "toposort-place");
    rt_.barrier_all();
  }

  /// Of the last run.
  std::uint64_t levels() const { return levels_; }
  const Permutation& row_places() const { return row_places_; }
  const Permutation& column_places() const { return column_places_; }

 private:
  /// Collective. Round by round: what a round's messages make ready is for the next.
  void take_out_columns() {
    for (std::uint64_t done = 0;;) {
      const std::uint64_t length = rt_.heap().read(list_.length)[0];
      if (esker::all_reduce(rt_, length - done, esker::Reduction::kMax) == 0) return;
      rt_.launch(length - done, toposort::TakeOut{nodes_, transposed_, eliminate_, list_, done},
                 "toposort-take-out");
      done = length;
      rt_.barrier_all();
    }
  }

  /// Collective. The rows of level 0 last, and those of a level by PEs.
  void place_rows() {
    std::vector<Node> mine(matrix_.rows.count(rt_.pe()));
    rt_.heap().read(nodes_.nodes, 0, std::span(mine));
    std::uint64_t most = 0;
    for (const Node& row : mine) most = std::max<std::uint64_t>(most, row.level);
    levels_ = esker::all_reduce(rt_, most, esker::Reduction::kMax) + 1;
    std::vector<std::uint64_t> all(levels_);
    for (const Node& row : mine) ++all[row.level];
    std::vector<std::uint64_t> place = all;  // of the level's next row here, from the end
    esker::exclusive_scan(rt_, place, 0, esker::Reduction::kSum);
    esker::all_reduce(rt_, all, esker::Reduction::kSum);
    for (std::uint64_t level = 0, before = 0; level < levels_; before += all[level++]) place[level] += before;
    row_places_.fill(rt_, [&, k = std::uint64_t{0}](std::uint64_t) mutable {
      return matrix_.rows.size() - 1 - place[mine[k++].level]++;
    });
  }

  esker::Runtime& rt_;
  Matrix matrix_, transposed_;
  toposort::Nodes nodes_;
  toposort::ReadyList list_;
  toposort::Handler eliminate_;
  Permutation row_places_, column_places_;
  std::uint64_t levels_ = 0;
};

/// A lane asks for the places of the columns of its row's entries.
struct AskColumnPlaces {
  Matrix matrix;
  Permutation column_places;
  esker::SymmetricArray<std::uint64_t> places;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t k = item.global_id();
    for (std::uint64_t e = matrix.first[k]; e < matrix.first[k + 1]; ++e)
      column_places.get(item, &places[e], matrix.columns[e]);
  }
};

/// Collective. Places that no row or no column of this PE's has, and entries below the diagonal.
std::uint64_t count_wrong(esker::Runtime& rt, const Matrix& matrix, const Sorting& sorting) {
  auto seen = Permutation::allocate(rt, matrix.rows.size());
  std::uint64_t wrong = sparse::missing_values(rt, sorting.row_places(), seen);
  wrong += sparse::missing_values(rt, sorting.column_places(), seen);
  seen.free(rt);
  const auto asked = rt.heap().allocate_largest<std::uint64_t>(std::max<std::uint64_t>(1, matrix.entries));
  const std::uint64_t mine = matrix.rows.count(rt.pe());
  rt.launch(mine, AskColumnPlaces{matrix, sorting.column_places(), asked}, "toposort-check");
  rt.barrier_all();
  const std::vector<std::uint64_t> first = graph::read_first(rt, matrix.first, mine);
  const std::vector<std::uint64_t> columns = rt.heap().read(asked);
  sorting.row_places().for_each_local(rt,
                                      [&, k = std::uint64_t{0}](std::uint64_t, std::uint64_t row) mutable {
                                        for (std::uint64_t e = first[k]; e < first[k + 1]; ++e)
                                          wrong += columns[e] < row ? 1 : 0;
                                        ++k;
                                      });
  rt.heap().free(asked);
  return wrong;
}

struct Places {
  std::vector<std::uint64_t> rows, columns;
};

/// Bale's serial algorithm, a queue of pivots.
Places sort_serially(const sparse::SerialMatrix& matrix, const sparse::SerialMatrix& transposed) {
  const std::uint64_t n = matrix.rows();
  Places places{std::vector<std::uint64_t>(n), std::vector<std::uint64_t>(n)};
  std::vector<std::uint64_t> sum(n), count(n), queue;
  queue.reserve(n);
  for (std::uint64_t r = 0; r < n; ++r) {
    for (const std::uint64_t column : matrix.row(r)) sum[r] += column;
    count[r] = matrix.row(r).size();
    if (count[r] == 1) queue.push_back(r);
  }
  for (std::uint64_t i = 0; i < queue.size(); ++i) {
    const std::uint64_t column = sum[queue[i]];
    places.rows[queue[i]] = places.columns[column] = n - 1 - i;
    for (const std::uint64_t r : transposed.row(column)) {
      sum[r] -= column;
      if (--count[r] == 1) queue.push_back(r);
    }
  }
  return places;
}

std::uint64_t below_diagonal(const sparse::SerialMatrix& matrix, const Places& places) {
  std::uint64_t below = 0;
  for (std::uint64_t r = 0; r < matrix.rows(); ++r) {
    for (const std::uint64_t column : matrix.row(r)) below += places.columns[column] < places.rows[r] ? 1 : 0;
  }
  return below;
}

int run(int argc, char** argv) {
  Options o;
  o.matrix.graph = "uniform";
  o.matrix.degree = 10;
  esker::CommandLine line(
      "esker-toposort",
      "Finds orders of rows and columns in which a matrix distributed over the PEs is upper "
      "triangular (bale's toposort). It has an entry for each edge of a graph, and its "
      "diagonal.");
  o.add_to(line);
  o.matrix.add_to(line);
  line.add(
      "by", &o.by,
      "what takes out a column: am, the handler of its pivot's message; or lanes, in rounds; auto: lanes "
      "on a GPU",
      {"auto", "am", "lanes"});
  esker::Config config = o.parse(line, argc, argv);
  o.require_gravel();
  o.matrix.complete(o.size);
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  if (o.by == "auto") o.by = rt.runs_on_device() ? "lanes" : "am";
  const graph::EdgeSource source(rt, o.matrix, o.seed, inputs::Weights::kIgnored);
  const Problem problem{source, o.seed};
  harness::doing("loading the matrix", "more PEs");
  sparse::Assembler assembler(rt, sparse::Assembler::By::kMessage);
  const Matrix matrix = permuted(rt, assembler, problem);
  const Matrix transposed = assembler.assemble(problem.rows(), sparse::Transposed{matrix, rt.pe()});
  Sorting sorting(rt, matrix, transposed, o.by == "lanes");
  std::uint64_t entries[1] = {matrix.entries};
  rt.all_reduce(std::span<std::uint64_t>(entries), esker::Reduction::kSum);

  nlohmann::json more{
      {"graph", o.matrix.graph}, {"rows", problem.rows()}, {"entries", entries[0]}, {"by", o.by}};
  const auto measured = harness::measure(
      rt, superstep, o, [] {}, [&] { sorting.run(); },
      [&] {
        const sparse::SerialMatrix whole = permuted_serially(problem);
        const sparse::SerialMatrix whole_transposed = sparse::transposed(whole);
        const harness::Stopwatch stopwatch;
        const Places places = sort_serially(whole, whole_transposed);
        more["serial_seconds"] = stopwatch.seconds();
        return count_wrong(rt, matrix, sorting) + sparse::wrong_rows(rt, matrix, whole) +
               below_diagonal(whole, places);
      });
  more["levels"] = sorting.levels();
  return harness::finish(rt, o, "toposort", measured, static_cast<double>(entries[0]), "entries", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-toposort", argc, argv, run); }
