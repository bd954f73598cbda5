// mer: the de Bruijn graph of a genome's reads, as Meraculous constructs it (thesis, section 5.4; Chapman et
// al., PLoS ONE 6(8), 2011).
//
// Invariant. A k-mer is counted in the slot that its scrambled word names (locator.hpp), by the PE that owns
// it. Reads belong to PEs in parts; what is counted and which contigs there are is a function of all reads
// alone, whatever the number of PEs, so each PE can recompute it: it checks what it owns.
#include <cstdio>
#include <iterator>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <esker/esker.hpp>

#include "../harness/application.hpp"
#include "../harness/json.hpp"
#include "contigs.hpp"
#include "count.hpp"
#include "read_text.hpp"
#include "serial.hpp"
#include "table.hpp"

namespace {

using mer::Wide;

struct Options : harness::Options {
  std::uint64_t k = 31;
  std::string input;
  std::uint64_t genome_bases = 0;  // 0: as --size says
  double coverage = 0;
  double error_rate = 0.005;
  std::uint64_t read_length = 100;
  std::uint64_t min_quality = 20;
  std::uint64_t min_count = 2;
  std::uint64_t min_votes = 0;  // 0: as min_count
  std::uint64_t table = 0;      // 0: as many as there are k-mers
  std::string kmers;
  bool traverse = true;
  std::string contigs;

  mer::Threshold threshold() const {
    return {static_cast<std::uint32_t>(min_count),
            static_cast<std::uint32_t>(min_votes == 0 ? min_count : min_votes)};
  }
  std::uint8_t least_quality() const { return static_cast<std::uint8_t>(min_quality); }
};

/// Names between commas.
std::vector<std::string> names_in(const std::string& list) {
  std::vector<std::string> names;
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) names.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

mer::Reads input_of(const Options& o) {
  if (!o.input.empty()) return mer::reads_of(names_in(o.input));
  const inputs::Genome genome({.seed = o.seed, .bases = o.genome_bases});
  return mer::reads_of(inputs::ReadGenerator(genome, {.seed = o.seed,
                                                      .length = std::min(o.read_length, o.genome_bases),
                                                      .coverage = o.coverage,
                                                      .error_rate = o.error_rate}));
}

/// Collective.
std::uint64_t over_pes(esker::Runtime& rt, std::uint64_t mine, esker::Reduction reduction) {
  std::uint64_t value[1] = {mine};
  rt.all_reduce(std::span<std::uint64_t>(value), reduction);
  return value[0];
}
std::uint64_t sum(esker::Runtime& rt, std::uint64_t mine) {
  return over_pes(rt, mine, esker::Reduction::kSum);
}

/// K-mers of this PE's that it has counted wrongly, lost or made up.
template <class Word>
std::uint64_t count_wrong(esker::Runtime& rt, const mer::Table<Word>& table,
                          const mer::Serial<Word>& serial) {
  std::uint64_t expected = 0;
  for (const auto& [kmer, seen] : serial.kmers()) expected += table.place(kmer).pe == rt.pe() ? 1 : 0;
  std::uint64_t found = 0;
  std::uint64_t wrong = 0;
  table.for_each_local(rt, [&](Word kmer, const mer::Tally& tally) {
    const auto entry = serial.kmers().find(kmer);
    const bool is_right =
        entry != serial.kmers().end() && table.place(kmer).pe == rt.pe() && entry->second.is_in(tally);
    ++(is_right ? found : wrong);
  });
  return wrong + (expected > found ? expected - found : found - expected);
}

/// Collective.
template <class Word>
void require_none_lost(esker::Runtime& rt, const Options& o, const mer::Table<Word>& table) {
  const esker::containers::Overflow full = table.overflow(rt);
  if (full.operations == 0) return;
  harness::agree(rt, [&] {
    throw esker::Error(
        esker::Error::Kind::kOutOfMemory,
        fmt::format("{} k-mers found their bucket full; raise --table, which was {}, to {} k-mers of each PE",
                    full.operations, o.table, (full.needed + rt.n_pes() - 1) / rt.n_pes()));
  });
}

/// Each PE's own files: null where they are not asked for.
struct Files {
  std::unique_ptr<harness::OutputFile> kmers, contigs;

  /// Collective.
  static Files open(esker::Runtime& rt, const Options& o) {
    const auto of_this_pe = [&](const std::string& name) {
      return name.empty() ? nullptr
                          : std::make_unique<harness::OutputFile>(fmt::format("{}.{}", name, rt.pe()));
    };
    return harness::agree(rt, [&] { return Files{of_this_pe(o.kmers), of_this_pe(o.contigs)}; });
  }
};

/// Collective. The k-mers that are frequent enough, as Meraculous's UFX files have them.
template <class Word>
void write_kmers(esker::Runtime& rt, const Options& o, const mer::Table<Word>& table,
                 harness::OutputFile& file) {
  const mer::Threshold threshold = o.threshold();
  table.for_each_local(rt, [&](Word kmer, const mer::Tally& tally) {
    if (tally.count < threshold.count) return;
    file.write(fmt::format("{}\t{}\t{}{}\n", mer::spelled(kmer, static_cast<unsigned>(o.k)), tally.count,
                           mer::extension_letter(threshold.extension(tally.votes[mer::kLeft])),
                           mer::extension_letter(threshold.extension(tally.votes[mer::kRight]))));
  });
  harness::agree(rt, [&] { file.close(); });
}

/// Collective.
void write_contigs(esker::Runtime& rt, const std::vector<mer::Contig>& contigs, harness::OutputFile& file) {
  for (std::size_t i = 0; i < contigs.size(); ++i) {
    file.write(fmt::format(">contig_{}_{} length={}{}\n{}\n", rt.pe(), i, contigs[i].bases.size(),
                           contigs[i].is_circular ? " circular" : "", contigs[i].bases));
  }
  harness::agree(rt, [&] { file.close(); });
}

/// What the contigs of all PEs, or the reference's, have in common, in whatever order they come.
struct Summary {
  std::uint64_t contigs = 0, bases = 0, longest = 0, circular = 0;
  std::uint64_t hashes = 0;  // their sum

  void add(const std::string& contig) {
    ++contigs;
    bases += contig.size();
    longest = std::max<std::uint64_t>(longest, contig.size());
    std::uint64_t hash = contig.size();
    for (const char c : contig) hash = inputs::mix(hash + static_cast<unsigned char>(c));
    hashes += hash;
  }
};

/// Collective.
Summary summary_of(esker::Runtime& rt, const std::vector<mer::Contig>& contigs) {
  Summary all;
  for (const mer::Contig& contig : contigs) {
    all.add(contig.bases);
    all.circular += contig.is_circular ? 1 : 0;
  }
  return {sum(rt, all.contigs), sum(rt, all.bases), over_pes(rt, all.longest, esker::Reduction::kMax),
          sum(rt, all.circular), sum(rt, all.hashes)};
}

/// Collective. Contigs that are not the reference's, on any PE; and 1 if together they are not all of them.
template <class Word>
std::uint64_t count_wrong_contigs(esker::Runtime& rt, const std::vector<mer::Contig>& contigs,
                                  const Summary& all, const mer::Serial<Word>& serial) {
  const auto expected = serial.contigs();
  Summary reference;
  for (const std::string& contig : expected) reference.add(contig);
  std::uint64_t wrong = 0;
  for (const mer::Contig& contig : contigs) wrong += expected.count(contig.bases) > 0 ? 0 : 1;
  const bool is_all =
      all.contigs == reference.contigs && all.bases == reference.bases && all.hashes == reference.hashes;
  return sum(rt, wrong) + (is_all ? 0 : 1);
}

/// Of all PEs: those asked for, or those there are, and the estimate's error.
std::uint64_t kmers_for(const Options& o, double distinct, std::uint32_t pes) {
  return o.table > 0 ? o.table * pes : static_cast<std::uint64_t>(1.05 * distinct);
}

template <class Word>
int run_with(esker::Runtime& rt, const Options& o) {
  styles::Superstep superstep(rt, o.chosen_style());
  const auto k = static_cast<unsigned>(o.k);
  const Files files = Files::open(rt, o);
  const mer::Reads reads = harness::agree(rt, [&] { return input_of(o); });
  if (o.input.empty()) {
    harness::require_memory(rt, static_cast<double>(o.genome_bases) * o.coverage / rt.n_pes(),
                            "the generated reads", "fewer --genome-bases, a lower --coverage");
  }

  const harness::Stopwatch reading;
  harness::doing("reading the reads", "fewer --genome-bases, a lower --coverage, or more PEs");
  mer::ReadText text = harness::agree(rt, [&] {
    return mer::read_text<Word>(reads, {rt.pe(), rt.n_pes()}, k, o.least_quality());
  });
  rt.all_reduce(text.distinct.registers(), esker::Reduction::kMax);
  const auto letters =
      rt.heap().allocate<std::uint8_t>(over_pes(rt, text.letters.size(), esker::Reduction::kMax));
  rt.heap().write(letters, 0, std::span<const std::uint8_t>(text.letters));
  const std::uint64_t length = text.letters.size();
  text.letters = {};
  const double read_seconds = reading.seconds();

  const auto table = mer::Table<Word>::allocate(rt, "mer", kmers_for(o, text.distinct.estimate(), rt.n_pes()),
                                                mer::Locator<Word>(k));
  const auto count =
      table.template register_visit_or_insert<mer::Seen<Word>>(rt, "count", mer::CountOne<Word>{});
  const mer::SendKmers<Word> source{letters, length, k, table, count.handler()};
  std::unique_ptr<mer::Serial<Word>> serial;
  auto measured = harness::measure(
      rt, superstep, o, [&] { table.clear(rt); },
      [&] {
        superstep.run(source.lanes(), source, "mer.count");
        require_none_lost(rt, o, table);
      },
      [&] {
        if (!serial) serial = std::make_unique<mer::Serial<Word>>(reads, k, o.least_quality(), o.threshold());
        return count_wrong(rt, table, *serial);
      });
  std::uint64_t distinct = 0;
  std::uint64_t frequent = 0;
  std::uint64_t unique = 0;
  table.for_each_local(rt, [&](Word, const mer::Tally& tally) {
    ++distinct;
    frequent += tally.count >= o.min_count ? 1 : 0;
    unique += o.threshold().is_unique(tally) ? 1 : 0;
  });
  if (files.kmers) write_kmers(rt, o, table, *files.kmers);

  nlohmann::json more{{"k", o.k},
                      {"reads", sum(rt, text.reads)},
                      {"read_seconds", read_seconds},
                      {"table_slots", table.slots() * rt.n_pes()},
                      {"kmers_distinct", sum(rt, distinct)},
                      {"kmers_frequent", sum(rt, frequent)},
                      {"kmers_unique", sum(rt, unique)}};
  if (o.traverse) {
    rt.barrier_all();
    const harness::Stopwatch traversing;
    mer::Contigs<Word> graph(rt, table, o.threshold(), k);
    const std::vector<mer::Contig> contigs = graph.find();
    rt.barrier_all();
    more["traversal_seconds"] = traversing.seconds();
    more["traversal_supersteps"] = graph.supersteps();
    const Summary all = summary_of(rt, contigs);
    more["contigs"] = all.contigs;
    more["contigs_circular"] = all.circular;
    more["contig_bases"] = all.bases;
    more["contig_longest"] = all.longest;
    if (files.contigs) write_contigs(rt, contigs, *files.contigs);
    if (const std::uint64_t wrong = serial ? count_wrong_contigs(rt, contigs, all, *serial) : 0; wrong > 0) {
      measured.verified = false;
      if (rt.pe() == 0)
        std::fprintf(stderr, "%llu contigs are wrong\n", static_cast<unsigned long long>(wrong));
    }
  }
  return harness::finish(rt, o, "mer", measured, static_cast<double>(sum(rt, text.kmers)), "k-mers", more);
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line("esker-mer", "Counts the k-mers of a genome's reads and joins them to contigs.");
  o.add_to(line);
  line.add("k", &o.k, "bases of a k-mer; odd, 3 to 63")
      .add("input", &o.input,
           "FASTA or FASTQ files, plain or gzip, with commas between; none: generated reads")
      .add("genome-bases", &o.genome_bases, "of the generated genome; 0: as --size says")
      .add("coverage", &o.coverage, "generated reads that cover a base on average; 0: as --size says")
      .add("error-rate", &o.error_rate, "fraction of wrong bases in generated reads")
      .add("read-length", &o.read_length, "bases of a generated read")
      .add("min-quality", &o.min_quality, "least Phred score of a base that votes for what is beside a k-mer")
      .add("min-count", &o.min_count, "how often a k-mer must occur")
      .add("min-votes", &o.min_votes, "votes that a base beside a k-mer must have; 0: as --min-count")
      .add("table", &o.table, "different k-mers that each PE has room for; 0: estimated from the reads")
      .add("output", &o.kmers, "write k-mers, counts and extensions to FILE.<pe>")
      .add("traverse", &o.traverse, "find the contigs too")
      .add("contigs", &o.contigs, "write contigs, as FASTA, to FILE.<pe>");
  esker::Config config = o.parse(line, argc, argv);
  if (o.k % 2 == 0 || o.k < 3 || o.k > 63) {
    harness::usage("--k " + std::to_string(o.k) +
                   ": an odd number from 3 to 63; an even one has k-mers that are their own other strand");
  }
  if (o.min_count == 0 || o.min_count > mer::kMostCount || o.min_votes > mer::kMostVotes ||
      (o.min_votes == 0 && o.min_count > mer::kMostVotes) || o.min_quality > inputs::kMaxPhred) {
    harness::usage("--min-count is 1 or more, --min-votes at most 65535, --min-quality at most 93");
  }
  if (!o.contigs.empty() && !o.traverse) harness::usage("--contigs goes with --traverse, which finds them");
  if (!o.contigs.empty() && o.contigs == o.kmers)
    harness::usage("--output and --contigs name one file, " + o.contigs);
  harness::require_within("genome-bases", o.genome_bases, 0, 40);
  harness::require_within("read-length", o.read_length, 1, 30);
  harness::require_within("table", o.table, 0, 40);
  if (!(o.coverage >= 0 && o.coverage <= 1e6)) harness::usage("--coverage is 0 to 1e6");
  // paper: human chromosome 14, 3.6 GB of reads.
  if (o.genome_bases == 0)
    o.genome_bases = o.size == "small" ? 300'000 : o.size == "medium" ? 5'000'000 : 107'000'000;
  if (o.coverage == 0) o.coverage = o.size == "paper" ? 17 : 10;
  styles::configure(config, o.chosen_style());

  esker::Runtime rt(config);
  o.open(rt);
  return o.k <= 31 ? run_with<std::uint64_t>(rt, o) : run_with<Wide>(rt, o);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-mer", argc, argv, run); }
