// Command line of esker-bench-queue.
#include <esker/bench/queue/options.hpp>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>
#include <boost/program_options.hpp>

namespace esker::bench {
namespace {

// As signed numbers: program_options takes "-1" for a large unsigned one.
template <class T>
T at_least(std::int64_t lowest, std::int64_t given, const char* name) {
  if (given >= lowest && given <= (1ll << 40)) return static_cast<T>(given);
  throw std::invalid_argument(fmt::format("--{}={}: takes {} to 2^40", name, given, lowest));
}

}  // namespace

Options parse_options(int argc, char** argv) {
  namespace po = boost::program_options;
  Options options;
  const std::int64_t half = std::max(1u, std::thread::hardware_concurrency() / 2);
  std::int64_t repeats = options.effort.repeats, producers = half, consumers = half, messages = 0;
  std::string device = "cpu";
  po::options_description all(
      "esker-bench-queue: throughput of the SPSC, the MPMC and the package queue\n"
      "against message size and group size (thesis, figures 5-3 and 5-5).\n\nOptions",
      100);
  auto add = all.add_options();
  add("help", "print this");
  add("repeats", po::value(&repeats)->default_value(repeats), "timed runs a figure");
  add("seconds", po::value(&options.effort.seconds)->default_value(options.effort.seconds, "0.01"),
      "length of one timed run");
  add("messages", po::value(&messages)->default_value(messages),
      "messages in one timed run; 0: as many as take --seconds");
  add("producers", po::value(&producers)->default_value(producers), "producer threads (SPSC: 1)");
  add("consumers", po::value(&consumers)->default_value(consumers), "consumer threads (SPSC: 1)");
  add("device", po::value(&device)->default_value(device), "where the producers run");
  add("min-ratio", po::value(&options.min_ratio)->default_value(0),
      "fail when the package queue is not this many times faster than MPMC at 8-byte messages");
  add("json", po::value(&options.json), "write one JSON object to this file; -: standard output");
  try {
    po::variables_map given;
    po::store(po::parse_command_line(argc, argv, all), given);
    po::notify(given);
    if (given.contains("help")) {
      std::cout << all;
      std::exit(0);
    }
    if (device != "cpu") {
      throw std::invalid_argument(
          fmt::format("--device={}: this build has no such back end for queues; it has: cpu", device));
    }
    if (!(options.effort.seconds > 0)) throw std::invalid_argument("--seconds takes a number above 0");
    options.effort.repeats = at_least<std::uint32_t>(1, repeats, "repeats");
    options.effort.units = at_least<std::uint64_t>(0, messages, "messages");
    options.producers = at_least<std::uint32_t>(1, producers, "producers");
    options.consumers = at_least<std::uint32_t>(1, consumers, "consumers");
  } catch (const std::exception& error) {
    std::cerr << "esker-bench-queue: " << error.what() << "\n";
    std::exit(2);
  }
  return options;
}

}  // namespace esker::bench
