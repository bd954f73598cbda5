// Phase 2's supersteps, one after the other: in the runtime's own style, since the thesis compares phase 1.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <esker/esker.hpp>

#include "../inputs/sequence/bases.hpp"
#include "../styles/superstep.hpp"
#include "graph.hpp"
#include "serial.hpp"
#include "table.hpp"

namespace mer {

struct Contig {
  std::string bases;  // on the strand that sorts first
  bool is_circular;   // the last k - 1 bases are the first ones again
};

/// Contract. Collective. find() once; the table is complete, and its slots get their nodes' numbers.
/// Memory. 48 bytes of the heap a node, 80 from k = 33 on, and the contigs' texts.
template <class Word>
class Contigs {
 public:
  Contigs(esker::Runtime& rt, const Table<Word>& table, Threshold threshold, unsigned k)
      : rt_{rt}, table_{table}, threshold_{threshold}, k_{k} {}

  /// This PE's: each contig is found on one PE.
  std::vector<Contig> find() {
    make_nodes();
    link_nodes();
    begin_ranks(false);
    if (const std::uint64_t sides = rank(); sides > 0) {
      cut_cycles(sides / 2);
      begin_ranks(true);
      (void)rank();
    }
    return place_bases();
  }

  std::uint64_t nodes() const { return graph_.count; }
  std::uint64_t supersteps() const { return supersteps_; }

 private:
  std::uint64_t over_pes(std::uint64_t mine, esker::Reduction reduction) {
    std::uint64_t value[1] = {mine};
    rt_.all_reduce(std::span<std::uint64_t>(value), reduction);
    return value[0];
  }
  /// An array of the most that any PE needs.
  template <class T>
  esker::SymmetricArray<T> allocate(std::uint64_t mine) {
    return rt_.heap().allocate<T>(std::max<std::uint64_t>(1, over_pes(mine, esker::Reduction::kMax)));
  }
  std::uint64_t read(esker::SymmetricArray<std::uint64_t> word) { return rt_.heap().read(word)[0]; }
  template <class S>
  void superstep(const S& source, const char* name) {
    rt_.launch(graph_.count, styles::SendEach<S>{source}, name);
    rt_.barrier_all();
    ++supersteps_;
  }
  /// A kernel of this PE's nodes, ended.
  template <class Kernel>
  void each_node(const Kernel& kernel, const char* name) {
    if (graph_.count > 0) rt_.launch(graph_.count, kernel, name);
    rt_.quiet();
  }

  void make_nodes() {
    counter_ = rt_.heap().allocate<std::uint64_t>(1);
    const NumberNodes<Word> number{table_, threshold_, counter_};
    rt_.launch(table_.slots(), number, "mer.number");
    rt_.quiet();
    graph_.count = read(counter_);
    graph_.nodes = allocate<Node<Word>>(graph_.count);
    graph_.links = allocate<std::uint64_t>(2 * graph_.count);
    graph_.reach[0] = allocate<Reach>(2 * graph_.count);
    graph_.reach[1] = allocate<Reach>(2 * graph_.count);
    rt_.launch(table_.slots(), GatherNodes<Word>{table_, threshold_, graph_.nodes}, "mer.gather");
    rt_.quiet();
  }

  void link_nodes() {
    const auto link =
        table_.template register_visit<Named<Word>>(rt_, "link", Link<Word>{threshold_, graph_.links});
    superstep(NameNeighbours<Word>{graph_, k_, rt_.pe(), table_, link.handler()}, "mer.link");
  }

  void begin_ranks(bool cycles_only) {
    each_node(BeginRanks<Word>{graph_, now_, rt_.pe(), cycles_only}, "mer.begin");
  }

  /// Doubles until every reach has ended, or is one of a cycle: returns how many such sides all PEs have. On
  /// a path, whatever goes on has ends at each distance ahead, so that each doubling ends some.
  std::uint64_t rank() {
    for (std::uint64_t before = std::numeric_limits<std::uint64_t>::max();;) {
      const std::uint64_t zero[1] = {0};
      rt_.heap().write(counter_, 0, std::span<const std::uint64_t>(zero));
      double_reach();
      const std::uint64_t going_on = over_pes(read(counter_), esker::Reduction::kSum);
      if (going_on == 0 || going_on == before) return going_on;
      before = going_on;
    }
  }
  void double_reach() {
    superstep(Double<Word>{graph_, now_, counter_}, "mer.double");
    now_ = 1 - now_;
  }

  /// Nodes of cycles hear of the least k-mer in reach, in doubling reach, till that is the whole cycle.
  void cut_cycles(std::uint64_t nodes) {
    const auto least = allocate<Least<Word>>(graph_.count);
    const auto told = allocate<Least<Word>>(graph_.count);
    const auto take = rt_.register_handler<Least<Word>, Least<Word>>("mer.least", TakeLeast<Word>{});
    each_node(FindCycles<Word>{graph_, now_, least}, "mer.cycles");
    begin_ranks(true);
    for (std::uint64_t radius = 0; 2 * radius + 1 < nodes; radius = 2 * radius + 1) {
      each_node(CopyLeast<Word>{least, told}, "mer.copy");
      rt_.barrier_all();  // nobody's messages come while another one copies
      superstep(TellLeast<Word>{graph_, now_, least, told, take}, "mer.least");
      double_reach();
    }
    superstep(CutCycles<Word>{graph_, rt_.pe(), least}, "mer.cut");
    rt_.heap().free(told);
    rt_.heap().free(least);
  }

  std::vector<Contig> place_bases() {
    struct Chunk {
      std::uint64_t begin, bases;
      bool is_circular;
    };
    std::vector<Chunk> chunks;
    std::vector<std::uint64_t> begins(graph_.count);
    std::uint64_t bases = 0;
    {
      const std::vector<Reach> reach = rt_.heap().read(graph_.reach[now_]);
      for (std::uint64_t node = 0; node < graph_.count; ++node) {
        const auto at = Position::of(reach[2 * node], reach[2 * node + 1]);
        if (at.steps > 0) continue;
        begins[node] = bases;
        chunks.push_back({bases, at.nodes + k_ - 1, at.is_cut});
        bases += chunks.back().bases;
      }
    }
    const auto text_begins = allocate<std::uint64_t>(graph_.count);
    const auto text = allocate<std::uint8_t>(bases);
    rt_.heap().write(text_begins, 0, std::span<const std::uint64_t>(begins));
    const auto place = rt_.register_handler<std::uint64_t, Placed>("mer.place", PlaceBase{text, k_});
    superstep(SendBases<Word>{graph_, now_, k_, text_begins, text, place}, "mer.place");

    const std::vector<std::uint8_t> codes = rt_.heap().read(text);
    std::vector<Contig> contigs;
    for (const Chunk& chunk : chunks) {
      std::string found(chunk.bases, 'N');
      for (std::uint64_t i = 0; i < chunk.bases; ++i) found[i] = inputs::base_letter(codes[chunk.begin + i]);
      contigs.push_back({std::min(found, reverse_complement_of(found)), chunk.is_circular});
    }
    return contigs;
  }

  esker::Runtime& rt_;
  Table<Word> table_;
  Threshold threshold_;
  unsigned k_;
  Graph<Word> graph_{};
  esker::SymmetricArray<std::uint64_t> counter_;
  std::uint32_t now_ = 0;
  std::uint64_t supersteps_ = 0;
};

}  // namespace mer
