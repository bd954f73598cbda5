// esker-bench-queue: throughput of the three queues against message size and group size (thesis, figures 5-3
// and 5-5), and with kernels as producers.
#include <deque>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <esker/bench/harness/measure.hpp>
#include <esker/bench/harness/report.hpp>
#include <esker/bench/queue/kernel_bench.hpp>
#include <esker/bench/queue/lines.hpp>
#include <esker/bench/queue/options.hpp>
#include <esker/bench/queue/traffic.hpp>

namespace esker::bench {
namespace {

constexpr std::uint32_t kGroupLanes = 256;  // four wavefronts of 64, as in figure 5-5
constexpr std::uint32_t kGroupSweepBytes = 32;
constexpr std::uint64_t kVerifiedMessages = 1 << 16;
SystemAtomic<std::uint64_t> read_words;  // what the readers add up must be seen somewhere

struct Contender {
  std::string queue;
  std::uint32_t bytes, lanes;
  std::uint64_t slots;
  ActiveLanes active;
  Run run;
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_{options}, report_(provenance("queue")), out_{options.json == "-" ? std::cerr : std::cout} {
    report_["settings"] = {{"device", "cpu"},
                           {"repeats", options.effort.repeats},
                           {"ring_bytes", kRingBytes},
                           {"seconds", options.effort.seconds},
                           {"group_lanes", kGroupLanes},
                           {"messages", options.effort.units}};
    report_["results"] = nlohmann::json::array();
    const auto& machine = report_["machine"];
    const double load = machine["load_average"];
    fmt::print(out_, "commit {}, {}, {} cores, {} repeats of {} s\n", report_["commit"].get<std::string>(),
               machine["cpu"].get<std::string>(), machine["cores"].get<unsigned>(), options.effort.repeats,
               options.effort.seconds);
    if (load > 0.5)
      fmt::print(out_, "load average {:.1f}: others use these cores, so figures are low\n", load);
  }

  void title(const std::string& text) {
    fmt::print(out_, "\n{}\n{:<8} {:>6} {:>6} {:>6} {:>5} {:>13} {:>25} {:>9}\n", text, "queue", "bytes",
               "lanes", "slots", "P/C", "M messages/s", "lowest..highest", "GB/s");
  }

  /// One line of a figure: verifies a warm-up run now and is measured later. `queue` outlives it.
  template <class Line>
  Contender contender(const std::string& name, Line& queue, ActiveLanes active, std::uint32_t bytes) {
    verify(name, queue, active, bytes);
    return {name, bytes, queue.lanes(), queue.slots(), active, [&queue, active](std::uint64_t messages) {
              std::vector<Adder> adders(active.consumers);
              const std::uint64_t whole = whole_shares(messages, active, queue.lanes());
              const double seconds =
                  move_messages(queue, active, whole, [&](auto c) -> Adder& { return adders[c]; });
              for (const Adder& adder : adders) read_words.fetch_add_relaxed(adder.sum());
              return seconds * static_cast<double>(messages) / static_cast<double>(whole);
            }};
  }

  /// Measures, prints and records lines that are compared. Returns medians, in messages a second.
  std::vector<double> compare(const std::string& figure, const std::vector<Contender>& contenders) {
    std::vector<Run> runs;
    for (const Contender& c : contenders) runs.push_back(c.run);
    const std::vector<Rate> rates = measure(options_.effort, kVerifiedMessages, runs);
    std::vector<double> medians;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      record(figure, contenders[i], rates[i]);
      medians.push_back(rates[i].median);
    }
    return medians;
  }

  void group_size() {
    title(fmt::format("Throughput against group size, {}-byte messages (figure 5-3)", kGroupSweepBytes));
    std::deque<PackageLine> queues;
    std::vector<Contender> contenders;
    for (const std::uint32_t lanes : {1u, 4u, 16u, 64u, 128u, 256u, 512u, 1024u}) {
      queues.emplace_back(kGroupSweepBytes / 8, lanes);
      contenders.push_back(contender("package", queues.back(), active(), kGroupSweepBytes));
    }
    compare("5-3", contenders);
  }

  template <std::uint32_t Words>
  void message_size() {
    constexpr std::uint32_t kBytes = 8 * Words;
    SpscLine<Words> spsc;
    MpmcLine<Words> mpmc;
    PackageLine package(Words, kGroupLanes);
    const auto rates =
        compare("5-5", {contender("spsc", spsc, {1, 1}, kBytes), contender("mpmc", mpmc, active(), kBytes),
                        contender("package", package, active(), kBytes)});
    if (kBytes == 8) ratio_ = rates[2] / rates[1];
  }

  /// Returns the exit status.
  int run() {
    group_size();
    title(fmt::format("Throughput against message size, groups of {} lanes (figure 5-5)", kGroupLanes));
    message_size<1>();
    message_size<2>();
    message_size<4>();
    message_size<8>();
    message_size<16>();
    message_size<32>();
    message_size<64>();
    message_size<128>();
    report_["package_over_mpmc_at_8_bytes"] = ratio_;
    report_["verified"] = true;  // a run that does not verify throws
    fmt::print(out_, "\npackage / mpmc at 8-byte messages: {:.1f} (expected: at least 10)\n", ratio_);
    if (!options_.json.empty()) write_json(report_, options_.json);
    if (ratio_ >= options_.min_ratio) return 0;
    fmt::print(std::cerr, "esker-bench-queue: the ratio {:.1f} is below --min-ratio={}\n", ratio_,
               options_.min_ratio);
    return 1;
  }

 private:
  ActiveLanes active() const { return {options_.producers, options_.consumers}; }

  void record(const std::string& figure, const Contender& c, const Rate& rate) {
    const double gigabytes = rate.median * c.bytes / 1e9;
    fmt::print(out_, "{:<8} {:>6} {:>6} {:>6} {:>5} {:>13.2f} {:>25} {:>9.3f}\n", c.queue, c.bytes, c.lanes,
               c.slots, fmt::format("{}/{}", c.active.producers, c.active.consumers), rate.median / 1e6,
               fmt::format("{:.2f}..{:.2f}", rate.lowest / 1e6, rate.highest / 1e6), gigabytes);
    report_["results"].push_back({{"figure", figure},
                                  {"queue", c.queue},
                                  {"message_bytes", c.bytes},
                                  {"lanes", c.lanes},
                                  {"slots", c.slots},
                                  {"producers", c.active.producers},
                                  {"consumers", c.active.consumers},
                                  {"messages_per_s", rate.median},
                                  {"messages_per_s_lowest", rate.lowest},
                                  {"messages_per_s_highest", rate.highest},
                                  {"gigabytes_per_s", gigabytes}});
  }

  template <class Line>
  void verify(const std::string& queue, Line& line, ActiveLanes active, std::uint32_t bytes) {
    const std::uint64_t messages = whole_shares(kVerifiedMessages, active, line.lanes());
    Verifier verifier(messages);
    move_messages(line, active, messages, [&](auto) -> Verifier& { return verifier; });
    if (!verifier.each_arrived_once()) {
      throw std::runtime_error(fmt::format(
          "{} queue, {} bytes, {} lanes: a message was lost, doubled or torn", queue, bytes, line.lanes()));
    }
  }

  Options options_;
  nlohmann::json report_;
  std::ostream& out_;
  double ratio_ = 0;
};

}  // namespace
}  // namespace esker::bench

int main(int argc, char** argv) try {
  const esker::bench::Options options = esker::bench::parse_options(argc, argv);
  return options.uses_kernels ? esker::bench::run_kernel_bench(options) : esker::bench::Bench(options).run();
} catch (const std::exception& error) {
  std::cerr << "esker-bench-queue: " << error.what() << "\n";
  return 1;
}
