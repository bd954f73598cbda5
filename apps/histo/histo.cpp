// histo, of the bale suite: counts how often each index occurs in lists that the PEs hold.
//
// Invariant. Entry i of the table is word i / n_pes of PE i % n_pes. PE p's list is a function of the seed, p
// and the position alone, so each PE can recompute every list: it counts those entries that it owns.
#include <algorithm>
#include <vector>

#include <esker/esker.hpp>

#include "../harness/application.hpp"
#include "../harness/fill.hpp"
#include "../inputs/random.hpp"

namespace {

// lines: host
struct Options : harness::Options {
  std::uint64_t updates = 0;  // of a PE; 0: as --size says
  std::uint64_t table = 0;    // words of a PE
};

/// The problem, the same on every PE.
struct Problem {
  std::uint64_t seed, updates, words;
  std::uint32_t pes;
  std::uint64_t entry(std::uint64_t pe, std::uint64_t i) const {
    return inputs::scaled(inputs::Random(seed).stream(pe)[i], words * pes);
  }
};

// lines: end

// lines: device
/// A lane counts one index.
struct Count {
  using Message = styles::Inc<std::uint64_t>;
  struct State {
    std::uint64_t i;
    bool counted;
  };
  esker::SymmetricArray<std::uint64_t> indices;
  esker::SymmetricArray<std::uint64_t> table;
  std::uint32_t pes;

  ESKER_HD State start(std::uint64_t id) const { return {id, false}; }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.counted) return false;
    const std::uint64_t entry = indices[state.i];
    message = {&table[entry / pes], static_cast<std::uint32_t>(entry % pes)};
    state.counted = true;
    return true;
  }
};

// lines: end

// lines: host
std::vector<std::uint64_t> expected_counts(const Problem& p, std::uint32_t me) {
  std::vector<std::uint64_t> counts(p.words);
  for (std::uint64_t pe = 0; pe < p.pes; ++pe) {
    for (std::uint64_t i = 0; i < p.updates; ++i) {
      const std::uint64_t entry = p.entry(pe, i);
      if (entry % p.pes == me) ++counts[entry / p.pes];
    }
  }
  return counts;
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line("esker-histo",
                          "Counts indices in a table distributed over the PEs (bale's histo).");
  o.add_to(line);
  line.add("updates", &o.updates, "indices that each PE counts; 0: as --size says")
      .add("table", &o.table, "words of the table on each PE; 0: as --size says");
  esker::Config config = o.parse(line, argc, argv);
  harness::require_within("updates", o.updates, 0, 40);
  harness::require_within("table", o.table, 0, 40);
  if (o.updates == 0) o.updates = std::uint64_t{1} << (o.size == "small" ? 20 : o.size == "medium" ? 25 : 27);
  if (o.table == 0) o.table = o.size == "small" ? 1000 : 100'000;  // bale: 1000 a PE
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  const Problem problem{o.seed, o.updates, o.table, rt.n_pes()};
  const auto indices = rt.heap().allocate<std::uint64_t>(problem.updates);
  const auto table = rt.heap().allocate<std::uint64_t>(problem.words);
  harness::fill(rt, indices, problem.updates, [&](std::uint64_t i) { return problem.entry(rt.pe(), i); });
  const auto measured = harness::measure(
      rt, superstep, o, [&] { harness::clear(rt, table); },
      [&] {
        superstep.run(problem.updates, Count{indices, table, rt.n_pes()}, "histo");
      },
      [&] {
        const auto expected = expected_counts(problem, rt.pe());
        const auto counted = rt.heap().read(table);
        std::uint64_t wrong = 0;
        for (std::uint64_t i = 0; i < counted.size(); ++i) wrong += counted[i] != expected[i] ? 1 : 0;
        return wrong;
      });
  return harness::finish(rt, o, "histo", measured, static_cast<double>(problem.updates) * rt.n_pes(),
                         "updates", {{"table_words", problem.words * rt.n_pes()}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-histo", argc, argv, run); }
// lines: end
