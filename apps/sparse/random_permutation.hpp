// A random permutation over all PEs, by throwing darts (Gibbons, Matias, Ramachandran, J. Comput. Syst. Sci.
// 53, 1996), as bale's randperm makes one.
//
// Invariant. An entry throws its dart at slots of a table twice as large as the permutation, until it sticks:
// functions of the seed, the entry and how often it has thrown. Where two darts meet, that of the lower entry
// stays and the other is thrown again, even if it was there first. So in the end each dart is where a serial
// program leaves it that throws for entry 0 until it sticks, then for entry 1, and so on, for any number of
// PEs and in whatever order darts arrive. The permutation is the entries in the order of their slots.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/collectives.hpp>
#include <esker/containers.hpp>
#include <esker/esker.hpp>

#include "../harness/fill.hpp"
#include "../inputs/random.hpp"

namespace sparse {

/// The problem, the same on every PE. A dart is a word: its entry, and in the low bits how often it was
/// thrown before. Half of the table is free, so a dart that is thrown 2^16 times will not be seen.
struct Darts {
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};  // a slot's word without a dart
  static constexpr unsigned kThrowBits = 16;
  static constexpr std::uint64_t kThrows = std::uint64_t{1} << kThrowBits;

  inputs::Random random;
  esker::containers::Block slots;

  Darts(std::uint64_t entries, std::uint64_t seed, std::uint32_t pes)
      : random{seed}, slots{2 * entries, pes} {}

  static ESKER_HD std::uint64_t first_of(std::uint64_t entry) { return entry << kThrowBits; }
  static ESKER_HD std::uint64_t again(std::uint64_t dart) { return dart + 1; }
  static ESKER_HD std::uint64_t entry_of(std::uint64_t dart) { return dart >> kThrowBits; }
  static ESKER_HD std::uint64_t throws_of(std::uint64_t dart) { return dart % kThrows + 1; }
  ESKER_HD std::uint64_t slot_of(std::uint64_t dart) const {
    return inputs::scaled(random.stream(entry_of(dart))[dart % kThrows], slots.size());
  }
};

/// The darts, and this PE's slots: darts, or Darts::kFree.
struct DartTable {
  Darts darts;
  esker::SymmetricArray<std::uint64_t> words;

  /// An active message to the slot's owner, which throws again for the dart that does not stay.
  template <class Sender>
  ESKER_HD void send(Sender&& sender, esker::Handler<std::uint64_t, std::uint64_t> stick,
                     std::uint64_t dart) const {
    const auto at = darts.slots.place(darts.slot_of(dart));
    esker::shmem_am(sender, stick, &words[at.index], dart, at.pe);
  }
};

/// Runs at the slot's owner.
struct Stick {
  static constexpr std::uint64_t kOwnershipBytes = sizeof(std::uint64_t);
  DartTable table;
  ESKER_HD void operator()(esker::HandlerContext& context, std::uint64_t& word, const std::uint64_t& dart,
                           esker::Handler<std::uint64_t, std::uint64_t> self) const {
    std::uint64_t goes = dart;
    if (dart < word) {
      goes = word;
      word = dart;
    }
    if (goes != Darts::kFree) table.send(context, self, Darts::again(goes));
  }
};

/// A compare and swap that a dart waits for, in the order of a continuation's arguments.
struct Tried {
  std::uint64_t value;     // what the slot held
  std::uint64_t expected;  // what it was to hold
  std::uint64_t dart;
};
using TriedHandler = esker::Handler<std::uint64_t, Tried>;

/// By compare and swap the PE that throws decides, and the slot's owner knows nothing of darts.
template <class Sender>
ESKER_HD void try_slot(Sender&& sender, TriedHandler handler, const DartTable& table, std::uint64_t expected,
                       std::uint64_t dart) {
  const auto at = table.darts.slots.place(table.darts.slot_of(dart));
  std::uint64_t* const word = &table.words[at.index];  // of the continuation too, which leaves it alone
  esker::shmem_compare_swap(sender, esker::then(handler, word, Tried{0, expected, dart}), word, expected,
                            dart, at.pe);
}

/// Runs at the PE that has asked.
struct GoOn {
  static constexpr std::uint64_t kOwnershipBytes = 0;
  DartTable table;
  ESKER_HD void operator()(esker::HandlerContext& context, std::uint64_t& /*word*/, const Tried& tried,
                           TriedHandler self) const {
    if (tried.value == tried.expected) {  // the dart has stuck, in place of that one
      if (tried.value != Darts::kFree)
        try_slot(context, self, table, Darts::kFree, Darts::again(tried.value));
    } else if (tried.dart < tried.value) {
      try_slot(context, self, table, tried.value, tried.dart);
    } else {
      try_slot(context, self, table, Darts::kFree, Darts::again(tried.dart));
    }
  }
};

/// A lane throws for an entry of its PE for the first time.
struct ThrowBySend {
  DartTable table;
  esker::containers::Cyclic entries;
  esker::Handler<std::uint64_t, std::uint64_t> stick;
  ESKER_HD void operator()(esker::WorkItem item) const {
    table.send(item, stick, Darts::first_of(entries.global_index(item.pe(), item.global_id())));
  }
};
struct ThrowByCompareSwap {
  DartTable table;
  esker::containers::Cyclic entries;
  TriedHandler go_on;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t dart = Darts::first_of(entries.global_index(item.pe(), item.global_id()));
    try_slot(item, go_on, table, Darts::kFree, dart);
  }
};

/// What a lane finds in its run of slots.
struct Stuck {
  std::uint64_t darts;  // later: the place of the first of them in the permutation
  std::uint64_t throws;
};

struct CountStuck {
  static constexpr std::uint64_t kRun = 64;  // slots of a lane
  DartTable table;
  std::uint64_t count;  // slots of this PE
  esker::SymmetricArray<Stuck> stuck;
  ESKER_HD void operator()(esker::Lane lane) const {
    const std::uint64_t first = lane.global_id() * kRun;
    Stuck mine{0, 0};
    for (std::uint64_t i = first; i < first + kRun && i < count; ++i) {
      if (table.words[i] == Darts::kFree) continue;
      ++mine.darts;
      mine.throws += Darts::throws_of(table.words[i]);
    }
    stuck[lane.global_id()] = mine;
  }
};

using Permutation = esker::containers::Array<std::uint64_t, esker::containers::Cyclic>;

/// A lane of CountStuck's tells its darts' entries where they are.
struct PlaceStuck {
  CountStuck of;
  Permutation permutation;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t first = item.global_id() * CountStuck::kRun;
    std::uint64_t place = of.stuck[item.global_id()].darts;
    for (std::uint64_t i = first; i < first + CountStuck::kRun && i < of.count; ++i) {
      const std::uint64_t dart = of.table.words[i];
      if (dart != Darts::kFree) permutation.put(item, place++, Darts::entry_of(dart));
    }
  }
};

/// Makes the permutation of a seed.
///
/// Contract. Collective, but for prepare(), after which all PEs meet before one calls run(). Handlers are
///           registered under `name`.
class RandomPermutation {
 public:
  enum class By { kMessage, kCompareSwap };

  RandomPermutation(esker::Runtime& rt, const std::string& name, std::uint64_t size, std::uint64_t seed,
                    By by)
      : rt_{rt},
        by_{by},
        permutation_{Permutation::allocate(rt, size)},
        table_{Darts(size, seed, rt.n_pes()), {}},
        count_{table_.darts.slots.count(rt.pe())},
        lanes_{(count_ + CountStuck::kRun - 1) / CountStuck::kRun} {
    table_.words = rt.heap().allocate<std::uint64_t>(table_.darts.slots.most());
    stuck_ = rt.heap().allocate_largest<Stuck>(std::max<std::uint64_t>(1, lanes_));
    if (by == By::kMessage) {
      stick_ = rt.register_handler<std::uint64_t, std::uint64_t>(name, Stick{table_});
    } else {
      go_on_ = rt.register_handler<std::uint64_t, Tried>(name, GoOn{table_});
    }
  }

  /// Local. Takes the darts out of the table.
  void prepare() {
    harness::fill(rt_, table_.words, count_, [](std::uint64_t) { return Darts::kFree; });
  }

  /// On return the permutation is complete.
  void run() {
    const std::uint64_t mine = permutation_.count(rt_.pe());
    if (by_ == By::kMessage) {
      rt_.launch(mine, ThrowBySend{table_, permutation_, stick_}, "randperm-throw");
    } else {
      rt_.launch(mine, ThrowByCompareSwap{table_, permutation_, go_on_}, "randperm-throw");
    }
    rt_.barrier_all();
    const CountStuck count{table_, count_, stuck_};
    rt_.launch(lanes_, count, "randperm-count");
    std::vector<Stuck> stuck(lanes_);
    rt_.heap().read(stuck_, 0, std::span(stuck));
    Stuck all{0, 0};
    for (const Stuck& run : stuck) all = {all.darts + run.darts, all.throws + run.throws};
    throws_ = all.throws;
    std::uint64_t place = esker::exclusive_scan(rt_, all.darts, 0, esker::Reduction::kSum);
    for (Stuck& run : stuck) {
      const std::uint64_t darts = run.darts;
      run.darts = place;
      place += darts;
    }
    rt_.heap().write(stuck_, 0, std::span<const Stuck>(stuck));
    rt_.launch(lanes_, PlaceStuck{count, permutation_}, "randperm-place");
    rt_.barrier_all();
  }

  /// Throws of the darts that have stuck here.
  std::uint64_t throws() const { return throws_; }
  const Permutation& permutation() const { return permutation_; }
  /// Leaves the permutation alone: run() is not called again.
  void free_table() {
    rt_.heap().free(table_.words);
    rt_.heap().free(stuck_);
  }

 private:
  esker::Runtime& rt_;
  By by_;
  Permutation permutation_;
  DartTable table_;
  std::uint64_t count_, lanes_;  // slots of this PE, and lanes that look at them
  esker::SymmetricArray<Stuck> stuck_;
  esker::Handler<std::uint64_t, std::uint64_t> stick_;
  TriedHandler go_on_;
  std::uint64_t throws_ = 0;
};

/// Entry after entry throws until it sticks.
inline std::vector<std::uint64_t> serial_permutation(std::uint64_t size, std::uint64_t seed) {
  const Darts darts(size, seed, 1);
  std::vector<std::uint64_t> table(2 * size, Darts::kFree);
  for (std::uint64_t entry = 0; entry < size; ++entry) {
    std::uint64_t dart = Darts::first_of(entry);
    while (table[darts.slot_of(dart)] != Darts::kFree) dart = Darts::again(dart);
    table[darts.slot_of(dart)] = entry;
  }
  table.erase(std::remove(table.begin(), table.end(), Darts::kFree), table.end());
  return table;
}

/// Counts in `seen`, which is all zeros, how often each place of a permutation is named.
struct CountSeen {
  Permutation permutation, seen;
  ESKER_HD void operator()(esker::WorkItem item) const {
    const std::uint64_t value = permutation.part()[item.global_id()];
    if (value < seen.size()) seen.inc(item, value);
  }
};

/// Collective. Values below `permutation.size()` of this PE that are not there once.
inline std::uint64_t missing_values(esker::Runtime& rt, const Permutation& permutation,
                                    const Permutation& seen) {
  harness::clear(rt, seen.part());
  rt.barrier_all();
  rt.launch(permutation.count(rt.pe()), CountSeen{permutation, seen}, "permutation-seen");
  rt.barrier_all();
  std::uint64_t wrong = 0;
  seen.for_each_local(rt, [&](std::uint64_t, std::uint64_t times) { wrong += times != 1 ? 1 : 0; });
  return wrong;
}

}  // namespace sparse
