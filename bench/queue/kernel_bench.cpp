// Figures of the package queue with kernels as producers.
#include <esker/bench/queue/kernel_bench.hpp>

#include <algorithm>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <esker/aggregator/command.hpp>
#include <esker/bench/harness/report.hpp>

namespace esker::bench {
namespace {

constexpr std::uint64_t kVerifiedMessages = 1 << 18;
constexpr std::uint64_t kFirstMessages = 1 << 16;

/// What a message of this width asks for: aggregators look at the width alone.
std::uint32_t command_of(std::uint32_t words) {
  switch (words) {
    case 1:
      return Command{Operation::kInc, Operand::kUint64, 0}.word();
    case 2:
      return Command{Operation::kPut, Operand::kBytes8, 0}.word();
    case 3:
      return Command{Operation::kPut, Operand::kBytes16, 0}.word();
    default:
      return Command{Operation::kActiveMessage, Operand::kNone, 1}.word();
  }
}

/// One line of a figure: a queue with its producers and its consumers.
class Contender {
 public:
  explicit Contender(const KernelSettings& given)
      : settings{complete(given)},
        producers_{Producing{settings.election, settings.bytes / 8, settings.group_lanes, settings.slots,
                             settings.package_bytes}},
        consumers_{producers_, settings.consumers, settings.work, settings.destinations},
        resident_lanes_{producers_.resident_lanes()} {}

  /// About that many messages, as a whole number a lane: on every lane that the device holds if they suffice.
  Production production_of(std::uint64_t messages) const {
    const std::uint64_t calls = settings.is_divergent ? messages * Production::kIdleFactor : messages;
    const std::uint64_t group = settings.group_lanes;
    const std::uint64_t lanes = std::clamp((calls + group - 1) / group * group, group, resident_lanes_);
    return {lanes, std::max<std::uint64_t>(1, calls / lanes), settings.destinations,
            command_of(settings.bytes / 8), settings.is_divergent};
  }

  void verify() {
    const Production production = production_of(kVerifiedMessages);
    const Arrived expected = expected_of(production, settings.bytes / 8);
    Arrived arrived;
    consumers_.run(production, expected.messages, &arrived);
    if (arrived.messages == expected.messages && arrived.sum == expected.sum) return;
    throw std::runtime_error(
        fmt::format("{}, {} bytes, {} lanes, {}: {} messages with sum {:#x} were sent, {} with {:#x} arrived",
                    name_of(settings.election), settings.bytes, settings.group_lanes, name_of(settings.work),
                    expected.messages, expected.sum, arrived.messages, arrived.sum));
  }

  /// Seconds that `messages` take.
  double run(std::uint64_t messages) {
    const Production production = production_of(messages);
    const std::uint64_t whole = expected_of(production, 0).messages;
    if (whole == 0) throw std::runtime_error("no lane of so few sends: more --messages are needed");
    return consumers_.run(production, whole) * static_cast<double>(messages) / static_cast<double>(whole);
  }

  const KernelSettings settings;

 private:
  Producers producers_;
  Consumers consumers_;
  const std::uint64_t resident_lanes_;
};

class KernelBench {
 public:
  explicit KernelBench(const Options& options)
      : options_{options}, report_(provenance("queue")), out_{options.json == "-" ? std::cerr : std::cout} {
    report_["machine"]["device"] = producer_device();
    report_["settings"] = {{"device", producer_backend()},
                           {"repeats", options.effort.repeats},
                           {"seconds", options.effort.seconds},
                           {"messages", options.effort.units},
                           {"verified_messages", kVerifiedMessages}};
    report_["results"] = nlohmann::json::array();
    const auto& machine = report_["machine"];
    fmt::print(out_, "commit {}, {}, {}, {} cores, {} repeats of {} s\n",
               report_["commit"].get<std::string>(), machine["device"].get<std::string>(),
               machine["cpu"].get<std::string>(), machine["cores"].get<unsigned>(), options.effort.repeats,
               options.effort.seconds);
  }

  /// Verifies, then measures lines that are compared, and the ceiling of plain writes among them. Returns
  /// medians, in messages a second.
  std::vector<double> figure(const std::string& name, const std::string& title,
                             const std::vector<KernelSettings>& lines) {
    fmt::print(out_,
               "\n{}\n{:<19} {:<10} {:<9} {:>5} {:>5} {:>6} {:>7} {:>5} {:>9} {:>19} {:>7} {:>7} {:>6}\n",
               title, "election", "code", "do", "bytes", "lanes", "slots", "package", "cons.", "M msg/s",
               "lowest..highest", "GB/s", "ceiling", "ratio");
    std::vector<std::unique_ptr<Contender>> contenders;
    std::vector<Run> runs;
    for (const KernelSettings& line : lines) {
      contenders.push_back(std::make_unique<Contender>(line));
      contenders.back()->verify();
      runs.push_back([&contender = *contenders.back()](std::uint64_t n) { return contender.run(n); });
    }
    // As much memory as the largest queue takes, so that it stands in the same caches. Its unit is as many
    // bytes as the first line's message has, so that --messages means a similar total.
    std::uint64_t ring_bytes = 0;
    for (const auto& contender : contenders) {
      const KernelSettings& s = contender->settings;
      ring_bytes = std::max<std::uint64_t>(ring_bytes, PackageQueue::storage_bytes(s.slots, s.package_bytes));
    }
    PlainWriter writer(ring_bytes);
    const KernelSettings& first = contenders.front()->settings;
    runs.push_back([&](std::uint64_t n) { return writer.write(n * first.bytes); });

    const std::vector<Rate> rates = measure(options_.effort, kFirstMessages, runs);
    const Rate ceiling{rates.back().median * first.bytes, rates.back().lowest * first.bytes,
                       rates.back().highest * first.bytes};
    std::vector<double> medians;
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      record(name, contenders[i]->settings, rates[i], ceiling);
      medians.push_back(rates[i].median);
    }
    return medians;
  }

  void one() { figure("one", "One measurement", {options_.kernel}); }

  void sweep() {
    for (const Work work : {Work::kRead, Work::kAggregate}) {
      if (producer_backend() != "cpu") message_sizes(Election::kOutbox, work);
      message_sizes(Election::kAutoGroup, work);
    }
    vary("slots", "Slots", {16, 32, 64, 128, 256, 512, 1024}, &KernelSettings::slots);
    vary("lanes", "Lanes of a group", {256, 512, 1024}, &KernelSettings::group_lanes);
    std::vector<std::uint32_t> consumers;
    for (const std::uint32_t n : {1u, 2u, 4u, 8u, 16u}) {
      if (n == 1 || n <= std::thread::hardware_concurrency()) consumers.push_back(n);
    }
    vary("consumers", "Consumers", consumers, &KernelSettings::consumers);
    elections();
    divergence();
  }

  /// Returns the exit status.
  int finish() {
    report_["verified"] = true;  // a run that does not verify throws
    if (!options_.json.empty()) write_json(report_, options_.json);
    return 0;
  }

 private:
  void message_sizes(Election election, Work work) {
    std::vector<KernelSettings> lines;
    for (const std::uint32_t bytes : {8u, 16u, 24u, 32u}) {
      lines.push_back(options_.kernel);
      lines.back().bytes = bytes;
      lines.back().election = election;
      lines.back().work = work;
    }
    figure("bytes-" + name_of(election) + "-" + name_of(work),
           "Message size, " + name_of(election) + ", consumers " + name_of(work), lines);
  }

  void vary(const std::string& name, const std::string& title, const std::vector<std::uint32_t>& values,
            std::uint32_t KernelSettings::*field) {
    std::vector<KernelSettings> lines;
    for (const std::uint32_t value : values) {
      lines.push_back(options_.kernel);
      lines.back().*field = value;
    }
    figure(name, title, lines);
  }

  void elections() {
    std::vector<KernelSettings> lines;
    if (producer_backend() != "cpu") lines.push_back(with(Election::kOutbox));
    for (const Election election : {Election::kAutoGroup, Election::kPredicated, Election::kFineGrain,
                                    Election::kPerWave, Election::kPerConvergedWave, Election::kPerLane}) {
      lines.push_back(with(election));
    }
    figure("elections", "Elections, convergent code", lines);
  }

  void divergence() {
    std::vector<Election> elections{Election::kPredicated, Election::kAutoGroup, Election::kPerConvergedWave};
    if (producer_backend() != "cpu") elections.push_back(Election::kOutbox);
    std::vector<KernelSettings> lines;
    for (const bool is_divergent : {true, false}) {
      for (const Election election : elections) {
        lines.push_back(with(election));
        lines.back().is_divergent = is_divergent;
      }
    }
    const auto rates = figure("divergence", "Random trip counts, 1 lane in 20 sends; and all lanes", lines);
    for (std::size_t e = 1; e < elections.size(); ++e) {
      const double divergent = rates[e] / rates[0];
      const double convergent = rates[elections.size() + e] / rates[elections.size()];
      report_["over_predicated"][name_of(elections[e])] = {{"divergent", divergent},
                                                           {"convergent", convergent}};
      fmt::print(out_, "{} / predicated: {:.2f} divergent, {:.2f} convergent\n", name_of(elections[e]),
                 divergent, convergent);
    }
  }

  KernelSettings with(Election election) const {
    KernelSettings settings = options_.kernel;
    settings.election = election;
    return settings;
  }

  void record(const std::string& figure, const KernelSettings& s, const Rate& rate, const Rate& ceiling) {
    const double bytes_per_s = rate.median * s.bytes;
    const double fraction = bytes_per_s / ceiling.median;
    const char* code = s.is_divergent ? "divergent" : "convergent";
    fmt::print(
        out_,
        "{:<19} {:<10} {:<9} {:>5} {:>5} {:>6} {:>7} {:>5} {:>9.1f} {:>19} {:>7.2f} {:>7.2f} {:>6.3f}\n",
        name_of(s.election), code, name_of(s.work), s.bytes, s.group_lanes, s.slots, s.package_bytes,
        s.consumers, rate.median / 1e6, fmt::format("{:.1f}..{:.1f}", rate.lowest / 1e6, rate.highest / 1e6),
        bytes_per_s / 1e9, ceiling.median / 1e9, fraction);
    report_["results"].push_back({{"figure", figure},
                                  {"queue", "package"},
                                  {"election", name_of(s.election)},
                                  {"code", code},
                                  {"consumers_do", name_of(s.work)},
                                  {"message_bytes", s.bytes},
                                  {"lanes", s.group_lanes},
                                  {"slots", s.slots},
                                  {"package_bytes", s.package_bytes},
                                  {"consumers", s.consumers},
                                  {"destinations", s.destinations},
                                  {"messages_per_s", rate.median},
                                  {"messages_per_s_lowest", rate.lowest},
                                  {"messages_per_s_highest", rate.highest},
                                  {"gigabytes_per_s", bytes_per_s / 1e9},
                                  {"ceiling_gigabytes_per_s", ceiling.median / 1e9},
                                  {"ceiling_gigabytes_per_s_lowest", ceiling.lowest / 1e9},
                                  {"ceiling_gigabytes_per_s_highest", ceiling.highest / 1e9},
                                  {"fraction_of_ceiling", fraction}});
    out_.flush();
  }

  Options options_;
  nlohmann::json report_;
  std::ostream& out_;
};

}  // namespace

int run_kernel_bench(const Options& options) {
  KernelBench bench(options);
  if (options.is_sweep) {
    bench.sweep();
  } else {
    bench.one();
  }
  return bench.finish();
}

}  // namespace esker::bench
