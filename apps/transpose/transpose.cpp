// transpose, of the bale suite: the transposed matrix of a sparse matrix over all PEs.
//
// Invariant. Row r of either matrix is row r / n_pes of PE r % n_pes. The entries are a graph's edges, which
// any PE can read again: it transposes all of them serially, and compares the rows that it has.
#include <optional>
#include <string>

#include <esker/esker.hpp>

#include "../graph/edge_source.hpp"
#include "../harness/application.hpp"
#include "../sparse/matrix.hpp"
#include "../sparse/serial_matrix.hpp"

namespace {

struct Options : harness::Options {
  graph::SourceOptions matrix;
  std::string by = "am";
};

int run(int argc, char** argv) {
  Options o;
  o.matrix.graph = "uniform";
  o.matrix.degree = 10;  // as bale's
  esker::CommandLine line("esker-transpose",
                          "Transposes a sparse matrix distributed over the PEs (bale's transpose_matrix): an "
                          "edge of a graph is an entry, in the row of the vertex that it leaves.");
  o.add_to(line);
  o.matrix.add_to(line);
  line.add("by", &o.by,
           "how an entry gets to its row: an active message to the row's owner; or a fetch_inc, which brings "
           "its place, and a put",
           {"am", "fetch-inc"});
  esker::Config config = o.parse(line, argc, argv);
  o.require_gravel();
  o.matrix.complete(o.size);
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  const graph::EdgeSource source(rt, o.matrix, o.seed, inputs::Weights::kIgnored);
  const auto for_each_entry = [&](inputs::Part part, const auto& visit) {
    source.for_each_edge(part, [&](const inputs::Edge& edge) { visit(edge.from, edge.to); });
  };
  sparse::Assembler assembler(
      rt, o.by == "am" ? sparse::Assembler::By::kMessage : sparse::Assembler::By::kFetchInc);
  harness::doing("loading the matrix", "more PEs");
  const sparse::Staged staged = sparse::stage(rt, [&](const auto& visit) {
    for_each_entry(inputs::Part{rt.pe(), rt.n_pes()}, visit);
  });
  const sparse::Matrix matrix = assembler.assemble(source.vertices(), staged);
  rt.heap().free(staged.entries);
  std::uint64_t entries[1] = {matrix.entries};
  rt.all_reduce(std::span<std::uint64_t>(entries), esker::Reduction::kSum);

  nlohmann::json more{
      {"graph", o.matrix.graph}, {"rows", source.vertices()}, {"entries", entries[0]}, {"by", o.by}};
  std::optional<sparse::Matrix> transposed;
  const auto measured = harness::measure(
      rt, superstep, o,
      [&] {
        if (transposed) assembler.free(*transposed);
      },
      [&] {
        transposed = assembler.assemble(source.vertices(), sparse::Transposed{matrix, rt.pe()});
      },
      [&] {
        const sparse::SerialMatrix whole = sparse::serial_matrix(
            source.vertices(), [&](const auto& visit) { for_each_entry(inputs::Part{}, visit); });
        const harness::Stopwatch stopwatch;
        const sparse::SerialMatrix expected = sparse::transposed(whole);
        more["serial_seconds"] = stopwatch.seconds();
        return sparse::wrong_rows(rt, *transposed, expected);
      });
  return harness::finish(rt, o, "transpose", measured, static_cast<double>(entries[0]), "entries", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-transpose", argc, argv, run); }
