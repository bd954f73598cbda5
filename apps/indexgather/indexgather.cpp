// indexgather, of the bale suite: reads the entries of a distributed table that lists on the PEs name.
//
// Invariant. The table and the gathered values are cyclic arrays. A lane gets the entry from its owner. With
// --by gather the program asks for all entries by one call. With --by am a lane asks the owner by an active
// message that names the place, and the handler answers with a put, as programs do where there is no get, and
// as --style needs. Entries, lists and values are functions of the seed, so each PE knows what it should have
// been given.
#include <string>
#include <vector>

#include <esker/containers.hpp>
#include <esker/esker.hpp>

#include "../harness/application.hpp"
#include "../harness/fill.hpp"
#include "../inputs/random.hpp"

namespace {

struct Options : harness::Options {
  std::uint64_t reads = 0;  // of a PE; 0: as --size says
  std::uint64_t table = 0;  // words of a PE
  std::string by;
};

/// The problem, the same on every PE.
struct Problem {
  std::uint64_t seed, reads, words;
  std::uint32_t pes;
  /// The entry that PE `pe` reads at position `i` of its list.
  std::uint64_t entry(std::uint64_t pe, std::uint64_t i) const {
    return inputs::scaled(inputs::Random(seed).stream(pe)[i], words * pes);
  }
  /// Never 0, which stands for a value that has not come.
  std::uint64_t value(std::uint64_t entry) const { return inputs::mix(seed ^ entry) | 1; }
};

using Words = esker::containers::Array<std::uint64_t, esker::containers::Cyclic>;

struct Get {
  esker::SymmetricArray<std::uint64_t> indices;
  Words table;
  esker::SymmetricArray<std::uint64_t> gathered;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t i = item.global_id();
    table.get(item, &gathered[i], indices[i]);
  }
};

/// Where the answer goes: the handler's context.source() is who sent the message, which in the coprocessor
/// model is the owner itself.
struct Answer {
  std::uint64_t place;
};

/// The entry's owner sends it there.
struct SendBack {
  static constexpr std::uint64_t kOwnershipBytes = 0;  // it reads what nobody changes
  Words gathered;
  ESKER_HD void operator()(esker::HandlerContext& context, std::uint64_t& word, const Answer& answer) const {
    gathered.put(context, answer.place, word);
  }
};

/// A lane asks for one entry.
struct Ask {
  using Message = styles::Call<std::uint64_t, Answer>;
  struct State {
    std::uint64_t i;
    bool asked;
  };
  esker::SymmetricArray<std::uint64_t> indices;
  Words table, gathered;
  esker::Handler<std::uint64_t, Answer> handler;
  std::uint32_t me;

  ESKER_HD State start(std::uint64_t id) const { return {id, false}; }
  ESKER_HD bool next(State& state, Message& message) const {
    if (state.asked) return false;
    const std::uint64_t entry = indices[state.i];
    const auto at = table.place(entry);
    message = {&table.part()[at.index], at.pe, handler, {gathered.global_index(me, state.i)}};
    state.asked = true;
    return true;
  }
};

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line("esker-indexgather",
                          "Reads entries of a table distributed over the PEs (bale's indexgather).");
  o.add_to(line);
  line.add("reads", &o.reads, "indices that each PE reads; 0: as --size says")
      .add("table", &o.table, "words of the table on each PE; 0: as --size says")
      .add("by", &o.by,
           "get, gather (one call of the program's), or am (an active message and its answer); default: am "
           "with a --style, or get");
  esker::Config config = o.parse(line, argc, argv);
  harness::require_within("reads", o.reads, 0, 40);
  harness::require_within("table", o.table, 0, 40);
  if (o.reads == 0) o.reads = std::uint64_t{1} << (o.size == "small" ? 20 : o.size == "medium" ? 24 : 26);
  if (o.table == 0) o.table = 100'000;  // bale: 100 000 a PE
  if (o.by.empty()) o.by = o.chosen_style() == styles::Style::kGravel ? "get" : "am";
  if (o.by != "get" && o.by != "gather" && o.by != "am")
    harness::usage("--by " + o.by + " is none of get, gather and am");
  if (o.by != "am" && o.chosen_style() != styles::Style::kGravel)
    harness::usage("--by " + o.by + " has no --style but gravel");
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  const Problem problem{o.seed, o.reads, o.table, rt.n_pes()};
  auto& heap = rt.heap();
  const auto indices = heap.allocate<std::uint64_t>(problem.reads);
  const auto gathered = Words::allocate(rt, problem.reads * problem.pes);
  const auto table = Words::allocate(rt, problem.words * problem.pes);
  const auto handler = rt.register_handler<std::uint64_t, Answer>("indexgather", SendBack{gathered});
  harness::fill(rt, indices, problem.reads, [&](std::uint64_t i) { return problem.entry(rt.pe(), i); });
  table.fill(rt, [&](std::uint64_t entry) { return problem.value(entry); });
  const auto measured = harness::measure(
      rt, superstep, o, [&] { harness::clear(rt, gathered.part()); },
      [&] {
        if (o.by == "get") {
          rt.launch(problem.reads, Get{indices, table, gathered.part()}, "indexgather");
          rt.barrier_all();
          return;
        }
        if (o.by == "gather") {
          table.gather(rt, indices, gathered.part());
          rt.barrier_all();
          return;
        }
        superstep.run(problem.reads, Ask{indices, table, gathered, handler, rt.pe()}, "indexgather");
      },
      [&] {
        const auto values = heap.read(gathered.part());
        std::uint64_t wrong = 0;
        for (std::uint64_t i = 0; i < values.size(); ++i)
          wrong += values[i] != problem.value(problem.entry(rt.pe(), i)) ? 1 : 0;
        return wrong;
      });
  return harness::finish(rt, o, "indexgather", measured, static_cast<double>(problem.reads) * rt.n_pes(),
                         "reads", {{"table_words", problem.words * rt.n_pes()}, {"by", o.by}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-indexgather", argc, argv, run); }
