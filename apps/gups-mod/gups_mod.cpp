// GUPS-mod: random updates by few of the lanes, a random number each (thesis, section 5.6.2). It compares
// ways to send from lanes that diverge: --election.
//
// Invariant. Word i of PE p's part stands for entry p * words + i of the table. How often a lane updates, and
// what, is a function of the seed, the PE and the lane alone, so each PE can recompute every lane: it counts
// the updates of words that it owns.
#include <vector>

#include <esker/esker.hpp>

#include "../gups/stream.hpp"
#include "../harness/application.hpp"
#include "../harness/fill.hpp"
#include "../styles/election.hpp"

namespace {

struct Options : harness::Options {
  std::uint64_t lanes = 0;  // of a PE; 0: as --size says
  std::uint64_t table = 0;  // words of a PE
  double active = 0.05;     // thesis: 95 % of the work-items perform no updates
  std::uint64_t most_updates = 16;
  std::string election = "auto";
};

/// The problem, the same on every PE.
struct Problem {
  std::uint64_t seed, lanes, words;
  std::uint32_t pes;
  std::uint64_t active;  // inputs::chance()
  std::uint32_t most_updates;

  inputs::RandomStream updates_of(std::uint64_t pe) const {
    return gups::stream_of(seed, pe, lanes * most_updates);
  }
  inputs::RandomStream numbers_of(std::uint64_t pe) const { return inputs::Random(seed).stream(pe); }

  /// How many updates a lane makes, from its word out of numbers_of().
  ESKER_HD std::uint32_t updates(std::uint64_t word) const {
    if (word >= active) return 0;
    return 1 + static_cast<std::uint32_t>(inputs::scaled(inputs::mix(word), most_updates));
  }
};

/// A lane makes its updates, if it has any.
struct Update {
  using Message = styles::Inc<std::uint64_t>;
  struct State {
    std::uint64_t next;
    std::uint32_t left;
  };
  Problem problem;
  inputs::RandomStream numbers, stream;  // of this PE
  esker::SymmetricArray<std::uint64_t> table;

  ESKER_HD State start(std::uint64_t id) const {
    return {id * problem.most_updates, problem.updates(numbers[id])};
  }
  ESKER_HD std::uint32_t messages(const State& state) const { return state.left; }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.left == 0) return false;
    const auto [pe, index] = gups::place(stream[state.next], problem.pes, problem.words);
    message = {&table[index], pe};
    ++state.next;
    --state.left;
    return true;
  }
};

std::vector<std::uint64_t> expected_counts(const Problem& p, std::uint32_t me) {
  std::vector<std::uint64_t> counts(p.words);
  for (std::uint64_t pe = 0; pe < p.pes; ++pe) {
    for (std::uint64_t lane = 0; lane < p.lanes; ++lane) {
      const std::uint32_t updates = p.updates(p.numbers_of(pe)[lane]);
      for (std::uint32_t k = 0; k < updates; ++k) {
        const auto place = gups::place(p.updates_of(pe)[lane * p.most_updates + k], p.pes, p.words);
        if (place.pe == me) ++counts[place.index];
      }
    }
  }
  return counts;
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line("esker-gups-mod", "Random updates by a few lanes, a random number each.");
  o.add_to(line);
  line.add("lanes", &o.lanes, "lanes on each PE; 0: as --size says")
      .add("table", &o.table, "words of the table on each PE; 0: as --size says")
      .add("active", &o.active, "probability that a lane makes updates")
      .add("most-updates", &o.most_updates, "such a lane makes 1 up to so many, equally likely")
      .add("election", &o.election, "how lanes share a package", styles::elections());
  esker::Config config = o.parse(line, argc, argv);
  if (!(o.active > 0 && o.active <= 1)) harness::usage("--active is a probability, above 0");
  if (o.most_updates == 0 || o.most_updates > 1'000'000) harness::usage("--most-updates is 1 to 1000000");
  harness::require_within("lanes", o.lanes, 0, 40);
  harness::require_within("table", o.table, 0, 40);
  if (o.lanes == 0) o.lanes = std::uint64_t{1} << (o.size == "small" ? 18 : o.size == "medium" ? 25 : 28);
  if (o.table == 0) o.table = std::uint64_t{1} << (o.size == "small" ? 17 : 22);
  styles::require_election(o.chosen_style(), o.election);
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  const Problem problem{o.seed,
                        o.lanes,
                        o.table,
                        rt.n_pes(),
                        inputs::chance(o.active),
                        static_cast<std::uint32_t>(o.most_updates)};
  const auto table = rt.heap().allocate<std::uint64_t>(problem.words);
  const Update update{problem, problem.numbers_of(rt.pe()), problem.updates_of(rt.pe()), table};
  std::uint64_t updates[1] = {0};
  for (std::uint64_t lane = 0; lane < o.lanes; ++lane) updates[0] += problem.updates(update.numbers[lane]);
  rt.all_reduce(std::span<std::uint64_t>(updates), esker::Reduction::kSum);
  const auto measured = harness::measure(
      rt, superstep, o, [&] { harness::clear(rt, table); },
      [&] { styles::run_elected(rt, superstep, o.election, o.lanes, update, "gups-mod"); },
      [&] {
        const auto expected = expected_counts(problem, rt.pe());
        const auto counted = rt.heap().read(table);
        std::uint64_t wrong = 0;
        for (std::uint64_t i = 0; i < counted.size(); ++i) wrong += counted[i] != expected[i] ? 1 : 0;
        return wrong;
      });
  return harness::finish(rt, o, "gups-mod", measured, static_cast<double>(updates[0]), "updates",
                         {{"lanes", o.lanes * rt.n_pes()},
                          {"table_words", problem.words * rt.n_pes()},
                          {"active", o.active},
                          {"most_updates", o.most_updates},
                          {"election", o.election}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-gups-mod", argc, argv, run); }
