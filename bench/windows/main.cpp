// esker-bench-windows: does it pay to sort random updates by address window before they are applied?
#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <boost/program_options.hpp>

#include <esker/bench/harness/measure.hpp>
#include <esker/bench/harness/report.hpp>
#include <esker/bench/windows/updates.hpp>

namespace esker::bench {
namespace {

constexpr std::uint64_t kFewestUpdates = std::uint64_t{1} << 26;  // of one timed run, in batches
constexpr std::uint32_t kWindowsMiB[] = {8, 16, 32, 64};

struct Options {
  std::uint32_t table_log2 = 27;
  std::uint32_t from_log2 = 20, to_log2 = 28;
  std::uint32_t repeats = 7;
  std::string json;
};

/// --help prints and exits with 0; a mistake is printed and exits with 2.
Options parse_options(int argc, char** argv) {
  namespace po = boost::program_options;
  Options o;
  po::options_description all(
      "esker-bench-windows: random 64-bit atomic adds in a table, directly and after a partition\n"
      "by address window.\n\nOptions");
  auto add = all.add_options();
  add("help", "print this");
  add("table-log2", po::value(&o.table_log2)->default_value(o.table_log2),
      "the table has 2^this words, 20 to 32");
  add("from-log2", po::value(&o.from_log2)->default_value(o.from_log2), "smallest batch: 2^this updates");
  add("to-log2", po::value(&o.to_log2)->default_value(o.to_log2),
      "largest batch: 2^this updates, at most 30");
  add("repeats", po::value(&o.repeats)->default_value(o.repeats), "timed runs a figure");
  add("json", po::value(&o.json), "write one JSON object to this file; -: standard output");
  try {
    po::variables_map given;
    po::store(po::parse_command_line(argc, argv, all), given);
    po::notify(given);
    if (given.contains("help")) {
      std::cout << all;
      std::exit(0);
    }
    if (o.table_log2 < 20 || o.table_log2 > 32) throw std::invalid_argument("--table-log2 takes 20 to 32");
    if (o.from_log2 < 16 || o.from_log2 > o.to_log2 || o.to_log2 > 30)
      throw std::invalid_argument("--from-log2 and --to-log2 take 16 to 30, in order");
    if (o.repeats == 0) throw std::invalid_argument("--repeats takes 1 or more");
  } catch (const std::exception& error) {
    std::cerr << "esker-bench-windows: " << error.what() << "\n";
    std::exit(2);
  }
  return o;
}

/// Rates of all repeats of one way, and how long its parts took in the mean.
struct Way {
  std::uint32_t window_mib;  // 0: directly
  std::vector<double> rates;
  UpdateSeconds seconds;
};

class WindowBench {
 public:
  explicit WindowBench(const Options& options)
      : options_{options},
        report_(provenance("windows")),
        out_{options.json == "-" ? std::cerr : std::cout},
        updates_{std::uint64_t{1} << options.table_log2,
                 std::max(kFewestUpdates, std::uint64_t{1} << options.to_log2)} {
    report_["machine"]["device"] = update_device();
    report_["machine"]["l2_bytes"] = l2_bytes();
    report_["settings"] = {{"table_words", std::uint64_t{1} << options.table_log2},
                           {"repeats", options.repeats}};
    report_["results"] = nlohmann::json::array();
    fmt::print(out_, "commit {}, {}, L2 {} MiB, table 2^{} words, {} repeats; G updates/s\n",
               report_["commit"].get<std::string>(), update_device(), l2_bytes() >> 20, options.table_log2,
               options.repeats);
    fmt::print(out_, "{:>8} {:>12} {:>8} {:>17} {:>12} {:>10} {:>7}\n", "batch", "window", "median",
               "lowest..highest", "partition", "apply", "ratio");
  }

  void batch(std::uint32_t batch_log2) {
    const std::uint64_t size = std::uint64_t{1} << batch_log2;
    const std::uint64_t count = std::max(size, kFewestUpdates);
    std::vector<Way> ways{{0, {}, {}}};
    for (const std::uint32_t mib : kWindowsMiB) {
      const std::uint64_t table_mib = (std::uint64_t{1} << options_.table_log2) >> 17;
      if (table_mib <= std::uint64_t{mib} * Updates::kMostWindows) ways.push_back({mib, {}, {}});
    }
    for (const Way& way : ways) verify(way, count, size);
    for (std::uint32_t repeat = 0; repeat < options_.repeats; ++repeat) {
      for (Way& way : ways) {
        const UpdateSeconds took = run(way, count, size);
        way.rates.push_back(static_cast<double>(count) / (took.partition + took.apply));
        way.seconds.partition += took.partition / options_.repeats;
        way.seconds.apply += took.apply / options_.repeats;
      }
    }
    const double direct = summarise(ways.front().rates).median;
    for (const Way& way : ways) record(way, batch_log2, count, direct);
  }

  void finish() {
    report_["verified"] = true;  // what does not verify throws
    if (!options_.json.empty()) write_json(report_, options_.json);
  }

 private:
  UpdateSeconds run(const Way& way, std::uint64_t count, std::uint64_t size) {
    if (way.window_mib == 0) return updates_.direct(count, size);
    std::uint32_t words_log2 = 17;  // a MiB
    while (std::uint32_t{1} << (words_log2 - 17) < way.window_mib) ++words_log2;
    return updates_.windowed(count, size, words_log2);
  }

  void verify(const Way& way, std::uint64_t count, std::uint64_t size) {
    if (way.window_mib == 0) return;
    updates_.compare(0);  // zeroes
    run({0, {}, {}}, count, size);
    run(way, count, size);
    if (const std::uint64_t wrong = updates_.compare(count); wrong != 0) {
      throw std::runtime_error(
          fmt::format("windows of {} MiB, batches of {}: {} counters differ", way.window_mib, size, wrong));
    }
  }

  void record(const Way& way, std::uint32_t batch_log2, std::uint64_t count, double direct) {
    const Rate rate = summarise(way.rates);
    const auto giga = [&](double seconds) {
      return seconds == 0 ? 0 : static_cast<double>(count) / seconds / 1e9;
    };
    fmt::print(out_, "{:>8} {:>12} {:>8.2f} {:>17} {:>12.2f} {:>10.2f} {:>7.2f}\n",
               fmt::format("2^{}", batch_log2),
               way.window_mib == 0 ? "direct" : fmt::format("{} MiB", way.window_mib), rate.median / 1e9,
               fmt::format("{:.2f}..{:.2f}", rate.lowest / 1e9, rate.highest / 1e9),
               giga(way.seconds.partition), giga(way.seconds.apply), rate.median / direct);
    out_.flush();
    report_["results"].push_back({{"batch", std::uint64_t{1} << batch_log2},
                                  {"updates", count},
                                  {"way", way.window_mib == 0 ? "direct" : "windowed"},
                                  {"window_mib", way.window_mib},
                                  {"updates_per_s", rate.median},
                                  {"updates_per_s_lowest", rate.lowest},
                                  {"updates_per_s_highest", rate.highest},
                                  {"partition_updates_per_s", giga(way.seconds.partition) * 1e9},
                                  {"apply_updates_per_s", giga(way.seconds.apply) * 1e9},
                                  {"ratio_to_direct", rate.median / direct}});
  }

  Options options_;
  nlohmann::json report_;
  std::ostream& out_;
  Updates updates_;
};

}  // namespace
}  // namespace esker::bench

int main(int argc, char** argv) try {
  const esker::bench::Options options = esker::bench::parse_options(argc, argv);
  esker::bench::WindowBench bench(options);
  for (std::uint32_t log2 = options.from_log2; log2 <= options.to_log2; ++log2) bench.batch(log2);
  bench.finish();
  return 0;
} catch (const std::exception& error) {
  std::cerr << "esker-bench-windows: " << error.what() << "\n";
  return 1;
}
