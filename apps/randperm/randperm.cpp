// randperm, of the bale suite: a random permutation over all PEs.
//
// Invariant. That of sparse/random_permutation.hpp: the permutation is a function of the seed and its length
// alone. So it is compared with a serial program's, beside the check that each value is there once.
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <esker/esker.hpp>

#include "../harness/application.hpp"
#include "../inputs/random.hpp"
#include "../sparse/random_permutation.hpp"

namespace {

struct Options : harness::Options {
  std::uint64_t entries = 0;  // of a PE; 0: as --size says
  std::string by = "am";
};

/// Knuth's shuffle, which bale compares with: seconds on one core.
double shuffle_seconds(std::uint64_t size, std::uint64_t seed) {
  std::vector<std::uint64_t> permutation(size);
  const harness::Stopwatch stopwatch;
  std::iota(permutation.begin(), permutation.end(), std::uint64_t{0});
  const inputs::RandomStream words = inputs::Random(seed).stream(size);
  for (std::uint64_t left = size; left > 1; --left)
    std::swap(permutation[left - 1], permutation[inputs::scaled(words[left], left)]);
  return stopwatch.seconds();
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line("esker-randperm",
                          "Makes a random permutation distributed over the PEs (bale's randperm).");
  o.add_to(line);
  line.add("entries", &o.entries, "of the permutation, on each PE; 0: as --size says")
      .add("by", &o.by,
           "how a dart is thrown: an active message to the slot, which throws again for the dart that does "
           "not stay; or a compare and swap",
           {"am", "compare-swap"});
  esker::Config config = o.parse(line, argc, argv);
  o.require_gravel();
  harness::require_within("entries", o.entries, 0, 31);
  if (o.entries == 0) o.entries = std::uint64_t{1} << (o.size == "small" ? 20 : o.size == "medium" ? 24 : 26);
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  styles::Superstep superstep(rt, o.chosen_style());
  using sparse::RandomPermutation;
  const std::uint64_t size = o.entries * rt.n_pes();
  RandomPermutation darts(
      rt, "randperm", size, o.seed,
      o.by == "am" ? RandomPermutation::By::kMessage : RandomPermutation::By::kCompareSwap);
  const auto seen = o.verify ? sparse::Permutation::allocate(rt, size) : sparse::Permutation();
  nlohmann::json more{{"entries", size}, {"by", o.by}};
  const auto measured = harness::measure(
      rt, superstep, o, [&] { darts.prepare(); }, [&] { darts.run(); },
      [&] {
        std::uint64_t wrong = sparse::missing_values(rt, darts.permutation(), seen);
        const harness::Stopwatch stopwatch;
        const std::vector<std::uint64_t> expected = sparse::serial_permutation(size, o.seed);
        more["serial_seconds"] = stopwatch.seconds();
        more["shuffle_seconds"] = shuffle_seconds(size, o.seed);
        darts.permutation().for_each_local(
            rt, [&](std::uint64_t place, std::uint64_t entry) { wrong += entry != expected[place] ? 1 : 0; });
        return wrong;
      });
  std::uint64_t throws[1] = {darts.throws()};
  rt.all_reduce(std::span<std::uint64_t>(throws), esker::Reduction::kSum);
  more["throws_per_entry"] = static_cast<double>(throws[0]) / static_cast<double>(size);
  return harness::finish(rt, o, "randperm", measured, static_cast<double>(size), "entries", more);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-randperm", argc, argv, run); }
