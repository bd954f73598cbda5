// Command line of esker-bench-queue.
#include <esker/bench/queue/options.hpp>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <boost/program_options.hpp>

namespace esker::bench {
namespace {

constexpr std::pair<const char*, Election> kElections[] = {
    {"outbox", Election::kOutbox},
    {"auto-group", Election::kAutoGroup},
    {"per-lane", Election::kPerLane},
    {"per-wave", Election::kPerWave},
    {"predicated", Election::kPredicated},
    {"fine-grain", Election::kFineGrain},
    {"per-converged-wave", Election::kPerConvergedWave},
};
constexpr std::pair<const char*, Work> kWorks[] = {{"read", Work::kRead}, {"aggregate", Work::kAggregate}};

template <class Table>
auto by_name(const Table& table, const std::string& given, const char* option) {
  std::string names;
  for (const auto& [name, value] : table) {
    if (given == name) return value;
    names += names.empty() ? name : std::string(", ") + name;
  }
  throw std::invalid_argument(fmt::format("--{}={}: takes {}", option, given, names));
}

template <class Table, class Value>
std::string name_in(const Table& table, Value wanted) {
  for (const auto& [name, value] : table) {
    if (value == wanted) return name;
  }
  return "?";
}

// As signed numbers: program_options takes "-1" for a large unsigned one.
template <class T>
T at_least(std::int64_t lowest, std::int64_t given, const char* name) {
  const std::int64_t highest = sizeof(T) == 4 ? std::int64_t{1} << 31 : std::int64_t{1} << 40;
  if (given >= lowest && given <= highest) return static_cast<T>(given);
  throw std::invalid_argument(fmt::format("--{}={}: takes {} to {}", name, given, lowest, highest));
}

void check(const KernelSettings& k) {
  const bool has_width = std::ranges::count(kMessageWords, k.bytes / 8) == 1 && k.bytes % 8 == 0;
  if (!has_width) throw std::invalid_argument(fmt::format("--bytes={}: takes 8, 16, 24, 32 or 64", k.bytes));
  if (k.group_lanes > 1024) throw std::invalid_argument("--lanes: a group has 1 to 1024");
  if (k.slots != 0 && !std::has_single_bit(k.slots))
    throw std::invalid_argument("--slots takes a power of two");
  if (k.package_bytes % kLineBytes != 0 || (k.package_bytes != 0 && k.package_bytes < k.bytes))
    throw std::invalid_argument(fmt::format("--package-bytes takes a multiple of {}", kLineBytes));
  if (k.destinations > kMaxPes) throw std::invalid_argument("--destinations: at most 65536");
}

}  // namespace

std::string name_of(Election election) { return name_in(kElections, election); }
std::string name_of(Work work) { return name_in(kWorks, work); }

KernelSettings complete(KernelSettings k) {
  if (k.election == Election::kOutbox) k.group_lanes = std::min(k.group_lanes, kOutboxGroupLanes);
  if (k.package_bytes == 0) {
    k.package_bytes = (k.bytes * k.group_lanes + kLineBytes - 1) / kLineBytes * kLineBytes;
    if (k.election == Election::kAutoGroup) k.package_bytes = kMaxStageBytes;  // filled over several rounds
    if (k.election == Election::kPerWave || k.election == Election::kPerConvergedWave) {
      k.package_bytes = std::min(k.package_bytes, 64 * k.bytes);  // 64 lanes: the largest wave
    }
    if (k.election == Election::kPerLane) k.package_bytes = kLineBytes;
    if (k.election == Election::kOutbox) k.package_bytes = kOutboxBlockBytes;
  }
  if (k.slots == 0) {
    constexpr std::uint32_t kFewest = 256, kMost = 16384;
    k.slots = std::clamp(std::bit_ceil(kInFlightBytes / k.package_bytes), kFewest, kMost);
  }
  if (k.consumers == 0) {
    const std::uint32_t cores = std::max(2u, std::thread::hardware_concurrency());
    k.consumers = std::min(cores - 1, k.work == Work::kRead ? 4u : 16u);
  }
  return k;
}

Options parse_options(int argc, char** argv) {
  namespace po = boost::program_options;
  Options options;
  KernelSettings& kernel = options.kernel;
  const std::int64_t half = std::max(1u, std::thread::hardware_concurrency() / 2);
  std::int64_t repeats = options.effort.repeats, producers = half, consumers = half, messages = 0;
  std::int64_t bytes = kernel.bytes, lanes = kernel.group_lanes, slots = 0, package_bytes = 0;
  std::int64_t destinations = kernel.destinations;
  std::string device = "cpu", election = name_of(kernel.election), work = name_of(kernel.work);
  po::options_description all(
      "esker-bench-queue: throughput of the SPSC, the MPMC and the package queue\n"
      "against message size and group size (thesis, figures 5-3 and 5-5); with kernels\n"
      "as producers, of the package queue across the bus.\n\nOptions",
      100);
  auto add = all.add_options();
  add("help", "print this");
  add("repeats", po::value(&repeats)->default_value(repeats), "timed runs a figure");
  add("seconds", po::value(&options.effort.seconds)->default_value(options.effort.seconds, "0.01"),
      "length of one timed run");
  add("messages", po::value(&messages)->default_value(messages),
      "messages in one timed run; 0: as many as take --seconds");
  add("producers", po::value(&producers)->default_value(producers), "producer threads (SPSC: 1)");
  add("consumers", po::value(&consumers)->default_value(consumers),
      "consumer threads (SPSC: 1); of kernels, unless given, 4 that read or 16 that aggregate");
  add("device", po::value(&device)->default_value(device), "where the producers run");
  add("min-ratio", po::value(&options.min_ratio)->default_value(0),
      "fail when the package queue is not this many times faster than MPMC at 8-byte messages");
  add("json", po::value(&options.json), "write one JSON object to this file; -: standard output");
  po::options_description kernels("With a device other than the CPU, or --kernels", 100);
  auto add_kernel = kernels.add_options();
  add_kernel("kernels", "the producers are lanes of a kernel on the CPU too");
  add_kernel("sweep", "a set of figures instead of one measurement");
  add_kernel("bytes", po::value(&bytes)->default_value(bytes), "of a message: 8, 16, 24, 32 or 64");
  add_kernel("lanes", po::value(&lanes)->default_value(lanes), "of a group");
  add_kernel("slots", po::value(&slots)->default_value(slots), "of the queue; 0: 16 MiB of packages");
  add_kernel("package-bytes", po::value(&package_bytes)->default_value(package_bytes),
             "payload of a slot; 0: what the election fills");
  add_kernel("election", po::value(&election)->default_value(election),
             "auto-group, outbox (CUDA), per-lane, per-wave, predicated, fine-grain or per-converged-wave");
  add_kernel("do", po::value(&work)->default_value(work), "what consumers do: read or aggregate");
  add_kernel("destinations", po::value(&destinations)->default_value(destinations),
             "PEs that messages are for");
  add_kernel("divergent", "one lane in 20 sends, a random number of times");
  all.add(kernels);
  try {
    po::variables_map given;
    po::store(po::parse_command_line(argc, argv, all), given);
    po::notify(given);
    if (given.contains("help")) {
      std::cout << all;
      std::exit(0);
    }
    const std::string backend = producer_backend();
    if (device != "cpu" && device != backend) {
      throw std::invalid_argument(
          fmt::format("--device={}: this build has no such back end for queues; it has: {}", device,
                      backend == "cpu" ? backend : "cpu, " + backend));
    }
    if (given.contains("kernels") && device != backend) {
      throw std::invalid_argument(
          fmt::format("--kernels: those of this build run with --device={}", backend));
    }
    if (!(options.effort.seconds > 0)) throw std::invalid_argument("--seconds takes a number above 0");
    options.effort.repeats = at_least<std::uint32_t>(1, repeats, "repeats");
    options.effort.units = at_least<std::uint64_t>(0, messages, "messages");
    options.producers = at_least<std::uint32_t>(1, producers, "producers");
    options.consumers = at_least<std::uint32_t>(1, consumers, "consumers");

    options.uses_kernels = device != "cpu" || given.contains("kernels");
    options.is_sweep = given.contains("sweep");
    if (options.is_sweep && !options.uses_kernels)
      throw std::invalid_argument("--sweep is for kernels: add --device or --kernels");
    kernel.election = by_name(kElections, election, "election");
    kernel.work = by_name(kWorks, work, "do");
    kernel.is_divergent = given.contains("divergent");
    kernel.bytes = at_least<std::uint32_t>(8, bytes, "bytes");
    kernel.group_lanes = at_least<std::uint32_t>(1, lanes, "lanes");
    kernel.slots = at_least<std::uint32_t>(0, slots, "slots");
    kernel.package_bytes = at_least<std::uint32_t>(0, package_bytes, "package-bytes");
    kernel.destinations = at_least<std::uint32_t>(1, destinations, "destinations");
    if (!given["consumers"].defaulted()) kernel.consumers = options.consumers;
    check(kernel);
  } catch (const std::exception& error) {
    std::cerr << "esker-bench-queue: " << error.what() << "\n";
    std::exit(2);
  }
  return options;
}

}  // namespace esker::bench
