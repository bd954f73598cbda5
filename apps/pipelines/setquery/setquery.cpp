// pipe-setquery: queries Q1 to Q4B of the SetQuery benchmark over a table in the host's memory (XeFlow,
// section 6.4). Lanes read the index pages of each frame first, then the data pages that can match. What they
// do not read does not cross the bus.
//
// Verified against a plain scan over the columns; scripts/setquery_duckdb.py compares the answers with those
// of DuckDB.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include "../../harness/application.hpp"
#include "../application.hpp"
#include "../baselines.hpp"
#include "scan.hpp"
#include "serial.hpp"
#include "table.hpp"

namespace {

using setquery::Answers;
using setquery::Page;
using setquery::Row;
using setquery::Sums;
using setquery::Table;

/// A query with its column, and what its runs have come to.
struct Case {
  std::string query;
  std::uint32_t column;
  Answers expected, found;
  Sums sums;
  std::vector<double> seconds;
};

/// A map stage of what pipelines are compared with: a frame of pages, and no result but the totals.
struct ScanPages {
  setquery::Scan<setquery::AppendRows> scan;

  template <class Stage, class In, class Out>
  ESKER_HD void operator()(Stage& stage, const In& in, Out& out) const {
    scan(stage, in.data);
    out.count = 0;
  }
};

/// A stage of the pipeline, and what it emits when all has been scanned.
struct ScanPlaces {
  setquery::Scan<setquery::EmitRows> scan;

  template <class Stage>
  ESKER_HD void operator()(Stage& stage, const esker::pipeline::Frame<const Page* const>& places) const {
    for (const Page* const pages : places) scan(stage, pages);
  }
};
struct Reduce {
  const setquery::Totals* totals;
  esker::pipeline::Topic<Sums> to;

  template <class Stage>
  ESKER_HD void operator()(Stage& stage) const {
    Sums sums;
    for (std::uint32_t i = 0; i < setquery::Totals::kParts; ++i) {
      const setquery::Totals& part = totals[i];
      sums.add({part.count.load_relaxed(), part.sum.load_relaxed(), part.index_bytes.load_relaxed(),
                part.data_bytes.load_relaxed(), part.rows.load_relaxed()});
    }
    stage.emit(to, sums);
  }
};

/// Runs queries one at a time.
class Runner {
 public:
  Runner(const esker::Device& device, const pipe_apps::Options& options, const Table& table)
      : device_{device},
        options_{options},
        table_{table},
        plan_{device.memory<setquery::Plan>(1, {"a query"})},
        totals_{device.memory<setquery::Totals>(setquery::Totals::kParts, {"what a query comes to"})} {
    if (options.scheme != pipe_apps::Scheme::kEsker)
      rows_ = device.memory<Row>(table.rows(), {"rows that are selected"});
  }

  /// Returns the seconds.
  double run(Case& c, std::uint32_t first_condition) {
    const setquery::Plan plan{table_.layout(),
                              setquery::query_of(c.query, c.column, first_condition, table_.rows())};
    device_.copy(plan_.data(), &plan, sizeof plan);
    const esker::Stream stream = device_.stream();
    device_.fill(totals_.data(), 0, totals_.size_bytes(), stream);
    stream.synchronize();
    c.found = {};
    return options_.scheme == pipe_apps::Scheme::kEsker ? run_pipeline(c) : run_compared(c);
  }
  /// Of the pipeline's last run; null before.
  const nlohmann::json& report() const { return report_; }

 private:
  /// The items of the topic are addresses of table frames: the pages stay in the host's memory, where lanes
  /// read them.
  double run_pipeline(Case& c) {
    namespace pipeline = esker::pipeline;
    pipeline::Pipeline p(device_, options_.pipeline_options());
    pipeline::TopicOptions of = options_.topic_options("places");
    of.frame_bytes = sizeof(const Page*);
    const auto places = p.topic<const Page*>(of);
    of = options_.topic_options("selected");
    of.frame_bytes = 16 << 10;
    const auto selected = p.topic<Row>(of);
    of.name = "answers";
    of.frame_bytes = sizeof(Sums);
    of.frames = 1;
    const auto answers = p.topic<Sums>(of);

    std::uint64_t next = 0;
    const auto read = [&](auto& stage) {
      if (next == table_.frames()) return false;
      auto frame = stage.open(places);
      if (frame.data == nullptr) return false;
      frame[0] = table_.frame(next);
      frame.count = 1;
      stage.publish(places, frame);
      ++next;
      return true;
    };
    const auto keep = [&](auto&, const pipeline::Frame<const Row>& rows) {
      c.found.rows.insert(c.found.rows.end(), rows.begin(), rows.end());
    };
    const auto answer = [&](auto&, const Sums& sums) { c.sums = sums; };
    const bool is_cpu = device_.backend() == esker::Backend::kCpu;
    const setquery::Scan<setquery::EmitRows> scan{plan_.data(), totals_.data(), {selected}};
    const pipeline::Report& report = p.run(pipeline::on_host::source("read", read).into(places),
                                           pipeline::on_device::frames("scan", ScanPlaces{scan})
                                               .from(places)
                                               .into(selected, answers)
                                               .at_end(Reduce{totals_.data(), answers})
                                               .workers(is_cpu ? device_.properties().processors : 0),
                                           pipeline::on_host::frames("keep", keep).from(selected),
                                           pipeline::on_host::items("answer", answer).from(answers));
    c.found.count = c.sums.count;
    c.found.sum = c.sums.sum;
    report_ = nlohmann::json::parse(report.json());
    return std::chrono::duration<double>(report.time).count();
  }

  /// By a scheme of baselines.hpp: the table is copied whole, and answers are fetched in the end.
  double run_compared(Case& c) {
    pipe_apps::FrameRun<Page, Row> run;
    run.frames = table_.frames();
    run.in_items = table_.layout().frame_pages();
    run.in_place = true;
    run.team.group_lanes = options_.group_lanes;
    // Few launches, as programs for queries have them: one for the table, or some for each stream.
    const bool has_streams = options_.scheme == pipe_apps::Scheme::kStreams;
    run.launch_frames =
        has_streams ? (run.frames + 4 * options_.streams - 1) / (4 * options_.streams) : run.frames;
    if (options_.scheme == pipe_apps::Scheme::kChunks || options_.scheme == pipe_apps::Scheme::kGraph)
      run.launch_frames = 0;
    run.read = [&](pipe_apps::Frame<Page>& in, pipe_apps::Frame<Row>&) { in.data = table_.frame(in.number); };
    const ScanPages scan{{plan_.data(), totals_.data(), {rows_.data(), rows_.size(), totals_.data()}}};
    double seconds = pipe_apps::run_baseline(device_, options_, run, scan);
    const harness::Stopwatch watch;
    std::vector<std::byte> totals(totals_.size_bytes());
    device_.copy(totals.data(), totals_.data(), totals.size());
    c.sums = {};
    for (std::size_t i = 0; i < totals.size(); i += sizeof(setquery::Totals)) {
      Sums part;
      std::memcpy(&part, &totals[i], sizeof part);
      c.sums.add(part);
    }
    c.found.rows.resize(c.sums.rows);
    if (c.sums.rows != 0) device_.copy(c.found.rows.data(), rows_.data(), c.sums.rows * sizeof(Row));
    seconds += watch.seconds();
    c.found.count = c.sums.count;
    c.found.sum = c.sums.sum;
    return seconds;
  }

  const esker::Device& device_;
  const pipe_apps::Options& options_;
  const Table& table_;
  esker::DeviceArray<setquery::Plan> plan_;
  esker::DeviceArray<setquery::Totals> totals_;
  esker::DeviceArray<Row> rows_;
  nlohmann::json report_;
};

bool is_right(Case& c) {
  auto& rows = c.found.rows;
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) { return a.seq < b.seq; });
  return c.found.count == c.expected.count && c.found.sum == c.expected.sum &&
         std::equal(rows.begin(), rows.end(), c.expected.rows.begin(), c.expected.rows.end(),
                    [](const Row& a, const Row& b) { return a.seq == b.seq && a.k500k == b.k500k; });
}

double median(std::vector<double> all) {
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

/// A query over all of its columns.
nlohmann::json facts_of(const std::string& query, const std::vector<Case>& cases, const Table& table,
                        bool copies_all) {
  nlohmann::json runs = nlohmann::json::array();
  double seconds = 0, read = 0, table_bytes = 0;
  for (const Case& c : cases) {
    if (c.query != query) continue;
    const double bytes = copies_all ? static_cast<double>(table.bytes())
                                    : static_cast<double>(c.sums.index_bytes + c.sums.data_bytes);
    nlohmann::json run = {{"column", setquery::kColumnNames[c.column]},
                          {"count", c.found.count},
                          {"seconds", median(c.seconds)},
                          {"index_bytes", c.sums.index_bytes},
                          {"data_bytes", c.sums.data_bytes},
                          {"skipped", 1 - bytes / static_cast<double>(table.bytes())}};
    if (query[1] == '3') run["sum"] = c.found.sum;
    if (query[1] == '4') {
      std::uint64_t seq = 0, k500k = 0;
      for (const Row& row : c.found.rows) {
        seq += row.seq;
        k500k += row.k500k;
      }
      run["sum_kseq"] = seq;
      run["sum_k500k"] = k500k;
    }
    runs.push_back(run);
    seconds += median(c.seconds);
    read += bytes;
    table_bytes += static_cast<double>(table.bytes());
  }
  return {{"query", query},
          {"seconds", seconds},
          {"bytes_of_table", table_bytes},
          {"bytes_read", read},
          {"skipped", 1 - read / table_bytes},
          {"runs", runs}};
}

int run(int argc, char** argv) {
  pipe_apps::Options o;
  o.frame_bytes = 512 << 10;
  o.frames = 1024;
  std::uint64_t rows = 0, first_condition = 1;
  std::string query = "all", dump;
  const std::vector<std::string> names = {"Q1", "Q2A", "Q2B", "Q3A", "Q3B", "Q4A", "Q4B"};
  esker::CommandLine line("esker-pipe-setquery",
                          "Runs the SetQuery benchmark's queries over a table on the host.");
  o.add_to(line);
  std::vector<std::string> legal = names;
  legal.push_back("all");
  line.add("rows", &rows, "of the table; 0: as --size says")
      .add("query", &query, "to run", legal)
      .add("condition", &first_condition, "of the ten that Q4 takes some of, the first: 1 to 10")
      .add("dump", &dump, "write the table to this file, as comma-separated values");
  const esker::Device device = o.parse(line, argc, argv);
  if (rows == 0) rows = o.by_size(100'000, 1'000'000, 10'000'000);
  if (rows < 100 || rows > 1'000'000'000) harness::usage("--rows is 100 to 1000000000");
  if (first_condition < 1 || first_condition > 10) harness::usage("--condition is 1 to 10");
  const auto first = static_cast<std::uint32_t>(first_condition - 1);

  const Table table(device, rows, o.frame_bytes / esker::pipeline::kPageBytes, o.seed);
  if (!dump.empty()) table.write_to(dump);
  std::vector<Case> cases;
  for (const std::string& name : names) {
    if (query != "all" && query != name) continue;
    for (const std::uint32_t column : setquery::columns_of(name)) {
      cases.push_back({name, column, {}, {}, {}, {}});
      if (o.verify) cases.back().expected = setquery::serial_answers(table, name, column, first);
    }
  }

  Runner runner(device, o, table);
  const auto measured = pipe_apps::measure(
      o,
      [&] {
        double seconds = 0;
        for (Case& c : cases) {
          c.seconds.push_back(runner.run(c, first));
          seconds += c.seconds.back();
        }
        return seconds;
      },
      [&] { return std::all_of(cases.begin(), cases.end(), is_right); });
  for (Case& c : cases) c.seconds.erase(c.seconds.begin());  // the run that is not timed

  const bool copies_all = o.scheme != pipe_apps::Scheme::kEsker;
  nlohmann::json queries = nlohmann::json::array();
  double read = 0;
  for (const std::string& name : names) {
    if (query != "all" && query != name) continue;
    queries.push_back(facts_of(name, cases, table, copies_all));
    read += queries.back()["bytes_read"].get<double>();
  }
  std::FILE* const screen = o.json == "-" ? stderr : stdout;
  for (const nlohmann::json& q : queries) {
    std::fprintf(screen, "%-3s %9.6f s, %5.1f %% of the table's bytes skipped\n",
                 q["query"].get<std::string>().c_str(), q["seconds"].get<double>(),
                 100 * q["skipped"].get<double>());
  }
  const double all_rows = static_cast<double>(rows) * static_cast<double>(cases.size());
  const double all_bytes = static_cast<double>(table.bytes()) * static_cast<double>(cases.size());
  return pipe_apps::finish(o, device, "pipe-setquery", measured, {all_rows, "rows", read},
                           {{"rows", rows},
                            {"frame_rows", table.layout().rows()},
                            {"condition", first_condition},
                            {"skipped", 1 - read / all_bytes},
                            {"queries", queries},
                            {"pipeline", runner.report()}});
}

}  // namespace

int main(int argc, char** argv) { return harness::main_of("esker-pipe-setquery", argc, argv, run); }
