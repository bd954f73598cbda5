// GUPS: random updates of a table distributed over the PEs (thesis, section 3.1; HPCC RandomAccess).
//
// Invariant. Word i of PE p's part stands for entry p * words_a_pe + i of the table. Update k of PE p is a
// function of the seed, p and k alone, so any PE can recompute any stream: verification takes back, on the
// words that it owns, what every PE has sent, and finds the table as it was.
#include <fmt/format.h>
#include <esker/config.hpp>
#include <esker/esker.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "../harness/application.hpp"
#include "../harness/fill.hpp"
#include "../harness/json.hpp"
#include "../harness/team.hpp"
#include "../inputs/file/part.hpp"
#include "../styles/superstep.hpp"
#include "elections.hpp"
#include "stream.hpp"
#include "updates.hpp"

namespace {

using gups::Fold, gups::Problem, gups::Send, gups::Updates;

struct Options : harness::Options {
  Options() { size.clear(); }  // --updates and --table have defaults of their own

  std::uint64_t updates = std::uint64_t{1} << 24;  // of all PEs
  std::uint64_t table = std::uint64_t{1} << 22;    // words, on all PEs
  std::string op = "inc";
  std::string election = "auto";
  std::uint64_t project = 0;
  bool hpcc = false;
};

/// Every update of this PE, a lane each.
void send_all(esker::Runtime& rt, const Options& o, const Send& send, std::uint64_t updates) {
  using esker::WorkItem;
  if (o.election != "auto") return gups::send_with_election(rt, o.election, o.op, updates, send);
  const auto launch = [&](const auto& kernel) { rt.launch(updates, kernel, "gups"); };
  if (o.op == "inc")
    launch([send] ESKER_LAMBDA(WorkItem item) { send.inc(item, item.global_id()); });
  else if (o.op == "add")
    launch([send] ESKER_LAMBDA(WorkItem item) { send.add(item, item.global_id()); });
  else if (o.op == "xor")
    launch([send] ESKER_LAMBDA(WorkItem item) { send.exclusive_or(item, item.global_id()); });
  else if (o.op == "put")
    launch([send] ESKER_LAMBDA(WorkItem item) { send.put(item, item.global_id()); });
  else if (o.op == "get")
    launch([send] ESKER_LAMBDA(WorkItem item) { send.get(item, item.global_id()); });
  else if (o.op == "fetch_add")
    launch([send] ESKER_LAMBDA(WorkItem item) { send.fetch_add(item, item.global_id()); });
  else if (o.op == "compare_swap")
    launch([send] ESKER_LAMBDA(WorkItem item) { send.compare_swap(item, item.global_id()); });
  else
    launch([send] ESKER_LAMBDA(WorkItem item) { send.am(item, item.global_id()); });
}

/// The same in another style. Collective.
void send_in_style(styles::Superstep& superstep, const Options& o, const Send& send, std::uint64_t updates) {
  const auto run = [&]<class Message>(Message) {
    superstep.run(updates, Updates<Message>{send.problem, send.table, send.handler, send.stream}, "gups");
  };
  if (o.op == "inc")
    run(styles::Inc<std::uint64_t>{});
  else if (o.op == "add")
    run(styles::Add<std::uint64_t>{});
  else if (o.op == "put")
    run(styles::Put<std::uint64_t>{});
  else
    run(styles::Call<std::uint64_t, Fold>{});
}

/// Takes back `updates` of every PE on the words that stand here; other threads take back others. Counts
/// those that found another value than a put had left.
std::uint64_t take_back(const Problem& p, const Options& o, std::span<std::uint64_t> words, std::uint32_t me,
                        std::uint32_t senders, bool projecting, inputs::Range updates) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  std::uint64_t wrong = 0;
  for (std::uint64_t sender = 0; sender < senders; ++sender) {
    const inputs::RandomStream stream = p.stream_of(sender);
    for (std::uint64_t k = updates.begin; k < updates.end; ++k) {
      const std::uint64_t r = stream[k];
      const auto [pe, index] = gups::place(r, p.pes, p.words_a_pe);
      if (pe != me && !projecting) continue;
      const std::uint64_t entry = pe * p.words_a_pe + index;
      const std::atomic_ref<std::uint64_t> word(words[projecting ? entry : index]);
      if (o.op == "inc") {
        word.fetch_sub(1, kRelaxed);
      } else if (o.op == "xor") {
        word.fetch_xor(r, kRelaxed);
      } else if (o.op == "compare_swap") {
        std::uint64_t seen = gups::claim_of(r);
        if (!word.compare_exchange_strong(seen, ~std::uint64_t{0}, kRelaxed) && seen == 0) ++wrong;
      } else if (o.op == "put") {
        const std::uint64_t value = gups::put_value(p.seed, entry);
        std::uint64_t seen = value;  // a later update of the same word finds it marked
        if (!word.compare_exchange_strong(seen, ~value, kRelaxed) && seen != ~value) ++wrong;
      } else {
        word.fetch_sub(r, kRelaxed);
      }
    }
  }
  return wrong;
}

/// The whole table of this PE, by the host's threads. Returns how many words are wrong; leaves them zero.
std::uint64_t take_back_all(esker::Runtime& rt, const Problem& p, const Options& o,
                            esker::SymmetricArray<std::uint64_t> table, bool projecting) {
  std::vector<std::uint64_t> words = rt.heap().read(table);
  const std::uint32_t threads = rt.host_threads();
  std::vector<std::uint64_t> wrong(threads);
  harness::run_team(threads, [&](std::uint32_t t) {
    wrong[t] = take_back(p, o, words, rt.pe(), rt.n_pes(), projecting,
                         inputs::range_of(p.updates_a_pe, {t, threads}));
  });
  const std::uint64_t base = projecting ? 0 : rt.pe() * p.words_a_pe;
  harness::run_team(threads, [&](std::uint32_t t) {
    const inputs::Range mine = inputs::range_of(words.size(), {t, threads});
    for (std::uint64_t i = mine.begin; i < mine.end; ++i) {
      const bool marked = (o.op == "put" && words[i] == ~gups::put_value(p.seed, base + i)) ||
                          (o.op == "compare_swap" && words[i] == ~std::uint64_t{0});
      if (words[i] != 0 && !marked) ++wrong[t];
      words[i] = 0;
    }
  });
  rt.heap().write(table, 0, std::span<const std::uint64_t>(words));
  return std::accumulate(wrong.begin(), wrong.end(), std::uint64_t{0});
}

/// Of the words that this PE has got.
std::uint64_t count_wrong_gets(esker::Runtime& rt, const Send& send) {
  const std::vector<std::uint64_t> got = rt.heap().read(send.results);
  std::uint64_t wrong = 0;
  for (std::uint64_t k = 0; k < got.size(); ++k)
    wrong += got[k] != gups::put_value(send.problem.seed, send.entry_of(k)) ? 1 : 0;
  return wrong;
}

/// 1 on PE 0 if what requests of all PEs have found does not fit the words that they left, in whatever order
/// they came. fetch_add: with f found before r was added, 2 f r + r^2 is by how much the word's square grew,
/// modulo 2^64. compare_swap: as many have found 0 as there are words that are taken. Collective.
std::uint64_t count_wrong_results(esker::Runtime& rt, const Options& o, const Send& send,
                                  esker::SymmetricArray<std::uint64_t> table) {
  const bool adds = o.op == "fetch_add";
  const std::vector<std::uint64_t> found = rt.heap().read(send.results), words = rt.heap().read(table);
  const std::uint32_t threads = rt.host_threads();
  std::vector<std::uint64_t> differences(threads);
  harness::run_team(threads, [&](std::uint32_t t) {
    std::uint64_t difference = 0;
    const inputs::Range updates = inputs::range_of(found.size(), {t, threads});
    for (std::uint64_t k = updates.begin; k < updates.end; ++k) {
      const std::uint64_t r = send.stream[k];
      difference += adds ? 2 * found[k] * r + r * r : found[k] == 0 ? 1 : 0;
    }
    const inputs::Range mine = inputs::range_of(words.size(), {t, threads});
    for (std::uint64_t i = mine.begin; i < mine.end; ++i)
      difference -= adds ? words[i] * words[i] : words[i] != 0 ? 1 : 0;
    differences[t] = difference;
  });
  std::uint64_t all[1] = {std::accumulate(differences.begin(), differences.end(), std::uint64_t{0})};
  rt.all_reduce(std::span<std::uint64_t>(all), esker::Reduction::kSum);
  return rt.pe() == 0 && all[0] != 0 ? 1 : 0;
}

int run_gups(esker::Runtime& rt, const Options& o) {
  const bool projecting = o.project != 0;
  const auto pes = static_cast<std::uint32_t>(projecting ? o.project : rt.n_pes());
  // Whole words and updates a PE: at least what was asked for.
  const Problem problem{o.seed, pes, (o.table + pes - 1) / pes, (o.updates + pes - 1) / pes};
  const auto table = rt.heap().allocate<std::uint64_t>(problem.words_a_pe * (projecting ? pes : 1));
  esker::Handler<std::uint64_t, Fold> handler;
  if (o.op == "am") {
    handler = rt.register_handler<std::uint64_t, Fold>("gups_add", gups::FoldIn{});
  }
  Send send{problem, table, handler, problem.stream_of(rt.pe()), projecting};
  const bool asks = o.op == "get" || o.op == "fetch_add" || o.op == "compare_swap";
  if (asks) send.results = rt.heap().allocate<std::uint64_t>(problem.updates_a_pe);
  if (o.op == "get") {
    const std::uint64_t base = rt.pe() * problem.words_a_pe;
    harness::fill(rt, table, table.size(),
                  [&](std::uint64_t i) { return gups::put_value(o.seed, base + i); });
  }

  styles::Superstep superstep(rt, o.chosen_style());
  auto measured = harness::measure(
      rt, superstep, o,
      [&] {
        if (asks) harness::clear(rt, send.results);
      },
      [&] {
        if (superstep.style() == styles::Style::kGravel) {
          send_all(rt, o, send, problem.updates_a_pe);
        } else {
          send_in_style(superstep, o, send, problem.updates_a_pe);
        }
      },
      [&] {
        if (o.op == "get") return count_wrong_gets(rt, send);
        const std::uint64_t wrong = asks ? count_wrong_results(rt, o, send, table) : 0;
        return wrong + take_back_all(rt, problem, o, table, projecting);
      });
  nlohmann::json more{{"op", o.op}, {"election", o.election}, {"table_words", problem.words_a_pe * pes}};
  if (projecting) {
    more["projected_pes"] = pes;
    more["projection"] =
        "thesis, section 3.2.3: 1/N of the updates of N PEs on one; all traffic loops back to it";
  }
  const std::uint64_t updates = problem.updates_a_pe * (projecting ? 1 : pes);
  const auto work = static_cast<double>(updates);
  if (o.op == "put") measured.accesses = updates;
  return harness::finish(rt, o, "gups", measured, work, "updates", more);
}

/// HPCC RandomAccess: XOR with its polynomial stream, 4 updates an entry, table a power of two.
int run_hpcc(esker::Runtime& rt, const Options& o) {
  const std::uint64_t words_a_pe = o.table / rt.n_pes();
  const std::uint64_t updates_a_pe = 4 * words_a_pe;
  const auto table = rt.heap().allocate<std::uint64_t>(words_a_pe);
  const std::uint64_t base = rt.pe() * words_a_pe;
  const int shift = std::countr_zero(words_a_pe);
  constexpr std::uint64_t kUpdatesALane = std::uint64_t{1}
                                          << 16;  // a lane's jump costs some 4 thousand steps
  const std::uint64_t mask = words_a_pe - 1;
  const std::uint64_t entries = o.table - 1;
  const std::uint64_t first = rt.pe() * updates_a_pe;
  const auto kernel = [=] ESKER_LAMBDA(esker::WorkItem item) {
    const std::uint64_t begin = item.global_id() * kUpdatesALane;
    const std::uint64_t end = begin + kUpdatesALane < updates_a_pe ? begin + kUpdatesALane : updates_a_pe;
    std::uint64_t a = gups::hpcc_start(first + begin);
    for (std::uint64_t k = begin; k < end; ++k) {
      a = gups::hpcc_next(a);
      const std::uint64_t entry = a & entries;
      esker::shmem_xor(item, &table[entry & mask], a, static_cast<std::uint32_t>(entry >> shift));
    }
  };
  styles::Superstep superstep(rt, o.chosen_style());
  std::uint64_t worst = 0;
  const auto measured = harness::measure(
      rt, superstep, o,
      [&] { harness::fill(rt, table, words_a_pe, [&](std::uint64_t w) { return base + w; }); },
      [&] { rt.launch((updates_a_pe + kUpdatesALane - 1) / kUpdatesALane, kernel, "hpcc"); },
      [&] {
        // XOR takes itself back. Not by messages: if all were lost, the table would seem right.
        std::vector<std::uint64_t> words = rt.heap().read(table);
        std::uint64_t a = gups::hpcc_start(0);
        for (std::uint64_t k = 0; k < updates_a_pe * rt.n_pes(); ++k) {
          a = gups::hpcc_next(a);
          const std::uint64_t entry = a & entries;
          if (entry >> shift == rt.pe()) words[entry & mask] ^= a;
        }
        std::uint64_t mine = 0;
        for (std::uint64_t w = 0; w < words_a_pe; ++w) mine += words[w] != base + w ? 1 : 0;
        std::uint64_t wrong[1] = {mine};
        rt.all_reduce(std::span<std::uint64_t>(wrong), esker::Reduction::kSum);
        worst = std::max(worst, wrong[0]);
        return wrong[0] * 100 <= o.table ? std::uint64_t{0} : mine;
      });
  const nlohmann::json more{
      {"op", "xor"},
      {"election", "auto"},
      {"table_words", o.table},
      {"wrong_entries", worst},
      {"hpcc_rules",
       {{"stream", "a' = 2a over GF(2), x^64 + x^2 + x + 1, from HPCC's start"},
        {"table_is_power_of_two", std::has_single_bit(o.table)},
        {"updates_an_entry", 4},
        {"look_ahead", rt.config().pending_messages},
        {"look_ahead_held", rt.config().pending_messages != 0 && rt.config().pending_messages <= 1024},
        {"wrong_at_most_1_percent", o.verify && measured.verified},
        {"table_at_least_half_of_memory", false}}}};
  return harness::finish(rt, o, "gups", measured, static_cast<double>(updates_a_pe) * rt.n_pes(), "updates",
                         more);
}

/// --size fills in what was not given.
void choose_size(Options& o) {
  if (o.size.empty()) return;
  const std::uint64_t log = o.size == "small" ? 22 : o.size == "medium" ? 27 : 28;
  o.table = std::uint64_t{1} << (o.size == "small" ? 20 : o.size == "medium" ? 26 : 27);
  o.updates = o.size == "paper" ? 180'000'000 : std::uint64_t{1} << log;  // Table 5-3
}

int run(int argc, char** argv) {
  Options o;
  esker::CommandLine line("esker-gups", "Random updates of a table distributed over the PEs.");
  o.add_to(line);
  line.add("updates", &o.updates, "updates of all PEs together")
      .add("table", &o.table, "64-bit words of the table, on all PEs together")
      .add("op", &o.op, "what an update does",
           {"inc", "add", "xor", "put", "am", "get", "fetch_add", "compare_swap"})
      .add("election", &o.election, "how lanes share a package",
           {"auto", "auto-group", "per-lane", "per-wave", "predicated", "fine-grain"})
      .add("hpcc", &o.hpcc,
           "HPCC RandomAccess rules: its stream, XOR, 4 updates an entry, 1024 of look-ahead")
      .add("project", &o.project, "one-node projection of this many nodes; 0: off");
  esker::Config config = o.parse(line, argc, argv);
  choose_size(o);
  harness::require_within("updates", o.updates, 1, 48);  // days
  harness::require_within("table", o.table, 1, 48);
  if (o.hpcc && !std::has_single_bit(o.table)) harness::usage("--hpcc: --table must be a power of two");
  if (o.style != "gravel" && (o.hpcc || o.project != 0 || o.election != "auto" || o.op == "xor"))
    harness::usage("--style " + o.style + " goes with neither --hpcc, --project, --election nor --op xor");
  const bool asks = o.op == "get" || o.op == "fetch_add" || o.op == "compare_swap";
  if (asks && (o.style != "gravel" || o.election != "auto"))
    harness::usage("--op " + o.op + " goes with neither --style nor --election");
  if (asks && config.heap_bytes == 0 && o.project != 0)
    harness::usage("--op " + o.op + " with --project needs --heap-bytes");
  styles::configure(config, o.chosen_style());
  if (o.hpcc && o.project != 0) harness::usage("--hpcc and --project do not go together");
  if (o.hpcc && o.election != "auto") harness::usage("--hpcc runs with --election auto");
  if (o.project > esker::kMaxPes) harness::usage("--project: at most 65536 nodes");
  if (o.hpcc) config.pending_messages = config.pending_messages == 0 ? 1024 : config.pending_messages;
  config.project_pes = static_cast<std::uint32_t>(o.project);
  // Room for the table and no less than the default, whatever the number of PEs turns out to be.
  if (config.heap_bytes == 0 && o.project != 0) config.heap_bytes = 8 * (o.table + o.project) + (1 << 21);

  esker::Runtime rt(config);
  o.open(rt);
  const auto refuse = [&rt](const std::string& message) {  // one line, not one a PE
    if (rt.pe() == 0) std::fputs(("esker-gups: " + message + "\n").c_str(), stderr);
    return 2;
  };
  if (o.hpcc && (!std::has_single_bit(rt.n_pes()) || rt.n_pes() > o.table))
    return refuse(fmt::format("--hpcc: {} PEs do not divide a table of {} words", rt.n_pes(), o.table));
  if (o.project != 0 && rt.n_pes() != 1)
    return refuse(fmt::format("--project runs on one PE, not on {}", rt.n_pes()));
  return o.hpcc ? run_hpcc(rt, o) : run_gups(rt, o);
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-gups", argc, argv, run); }
