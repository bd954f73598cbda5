// esker-bench-bulk: blocks between two PEs beside a copy through shared memory, and messages beside blocks.
// mpirun -n 2.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <esker/config.hpp>
#include <esker/esker.hpp>

#include "../harness/figures.hpp"
#include "../harness/measure.hpp"
#include "../harness/report.hpp"
#include "shared_copy.hpp"

namespace esker::bench {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point began) {
  return std::chrono::duration<double>(Clock::now() - began).count();
}

struct BulkBench {
  Runtime& runtime;
  std::uint32_t repeats;
  std::uint64_t bytes;  // of the largest block
};

nlohmann::json json_of(const Rate& rate) {
  return {{"median", rate.median}, {"min", rate.lowest}, {"max", rate.highest}};
}

/// Blocks of several sizes from PE 0 to PE 1 and back by get, and the same bytes through shared memory.
nlohmann::json take_copy(const BulkBench& bench) {
  Runtime& rt = bench.runtime;
  const auto heap = rt.heap().allocate<std::byte>(bench.bytes);
  std::vector<std::byte> source(bench.bytes, std::byte{1});
  SharedCopy shared(rt);
  constexpr std::array<std::size_t, 4> kSlots{std::size_t{16} << 10, std::size_t{64} << 10,
                                              std::size_t{256} << 10, std::size_t{1} << 20};
  nlohmann::json result;
  for (std::uint64_t bytes = std::uint64_t{64} << 10; bytes <= bench.bytes; bytes *= 16) {
    // Small blocks several at a time: what is measured is not the call.
    const std::uint64_t blocks = std::max<std::uint64_t>(1, (std::uint64_t{16} << 20) / bytes);
    const double gigabytes = static_cast<double>(blocks * bytes) * 1e-9;
    std::vector<double> puts, gets;
    std::array<std::vector<double>, kSlots.size()> rivals;
    for (std::uint32_t r = 0; r <= bench.repeats; ++r) {  // the first warms up
      const auto timed = [&](std::vector<double>& rates, const auto& here, const auto& there) {
        rt.barrier_all();
        const auto began = Clock::now();
        if (rt.pe() == 0) here();
        if (rt.pe() == 1) there();
        if (r > 0) rates.push_back(gigabytes / seconds_since(began));
        rt.barrier_all();
      };
      timed(
          puts,
          [&] {
            for (std::uint64_t i = 0; i < blocks; ++i) rt.put_block(heap.data(), source.data(), bytes, 1);
            rt.quiet();
          },
          [] {});
      timed(
          gets,
          [&] {
            for (std::uint64_t i = 0; i < blocks; ++i) rt.get_block(source.data(), heap.data(), bytes, 1);
            rt.quiet();
          },
          [] {});
      for (std::size_t s = 0; s < kSlots.size(); ++s) {
        timed(
            rivals[s],
            [&] {
              for (std::uint64_t i = 0; i < blocks; ++i) shared.copy_in(source.data(), bytes, kSlots[s], 4);
            },
            [&] {
              for (std::uint64_t i = 0; i < blocks; ++i) shared.copy_out(heap.data(), bytes, kSlots[s], 4);
            });
      }
    }
    const Rate put = summarise(puts), get = summarise(gets);
    std::size_t best = 0;
    std::array<Rate, kSlots.size()> found;
    for (std::size_t s = 0; s < kSlots.size(); ++s) {
      found[s] = summarise(rivals[s]);
      if (found[s].median > found[best].median) best = s;
    }
    if (rt.pe() == 0) {
      fmt::print(
          "{:9} bytes: put {:6.2f}, get {:6.2f}, shared memory by slots of {:4} KiB {:6.2f} GB/s; {:.2f}, "
          "{:.2f} of it\n",
          bytes, put.median, get.median, kSlots[best] >> 10, found[best].median,
          put.median / found[best].median, get.median / found[best].median);
    }
    result[std::to_string(bytes)] = {{"put_gb_per_s", json_of(put)},
                                     {"get_gb_per_s", json_of(get)},
                                     {"shared_gb_per_s", json_of(found[best])},
                                     {"shared_slot_bytes", kSlots[best]},
                                     {"put_to_shared", put.median / found[best].median},
                                     {"get_to_shared", get.median / found[best].median}};
  }
  rt.barrier_all();
  rt.heap().free(heap);
  return result;
}

/// When a handler here has seen the last message. One process, one benchmark.
Clock::time_point last_seen;

/// Goes to the other PE and back until there are no hops left.
struct Hop {
  using Self = Handler<std::uint64_t, std::uint64_t>;
  SymmetricArray<std::uint64_t> visits;
  void operator()(HandlerContext& context, std::uint64_t& /*visits*/, const std::uint64_t& left,
                  Self self) const {
    if (left > 0) return shmem_am(context, self, &visits[0], left - 1, 1 - context.pe());
    last_seen = Clock::now();
  }
};

/// Counts down.
struct Count {
  void operator()(HandlerContext& /*context*/, std::uint64_t& left, const std::uint64_t& /*of*/) const {
    if (--left == 0) last_seen = Clock::now();
  }
};

/// `send(pe)` on both PEs; the handler of the last message runs on PE `last`. Alone, and while a block
/// travels.
template <class Prepare, class Send>
nlohmann::json alone_and_beside(const BulkBench& bench, const char* what, double messages, std::uint32_t last,
                                const Prepare& prepare, const Send& send) {
  Runtime& rt = bench.runtime;
  const auto heap = rt.heap().allocate<std::byte>(bench.bytes);
  const std::vector<std::byte> source(bench.bytes, std::byte{1});
  std::vector<double> alone, beside, rates;
  std::uint64_t blocks = 2;
  for (std::uint32_t r = 0; r <= 2 * bench.repeats + 1;) {
    const bool has_blocks = r % 2 == 1;
    prepare();
    rt.barrier_all();
    const auto began = Clock::now();
    if (has_blocks && rt.pe() == 0) {
      for (std::uint64_t i = 0; i < blocks; ++i) rt.put_block(heap.data(), source.data(), bench.bytes, 1);
    }
    const auto sending = Clock::now();
    send();
    rt.quiet();
    const double bulk_seconds = seconds_since(began);
    rt.barrier_all();
    // The clocks of a host's processes are one. From the begin on the PE that sends first.
    double times[3] = {0, 0, 0};
    if (rt.pe() == 0) times[0] = std::chrono::duration<double>(sending.time_since_epoch()).count();
    if (rt.pe() == last) times[1] = std::chrono::duration<double>(last_seen.time_since_epoch()).count();
    if (rt.pe() == 0) times[2] = bulk_seconds;
    rt.all_reduce(std::span<double>(times), Reduction::kMax);
    const double seconds = times[1] - times[0];
    if (has_blocks && seconds > 0.8 * times[2] && blocks < 65536) {  // the blocks were not there all the time
      blocks *= 2;
      continue;
    }
    if (r > 1) (has_blocks ? beside : alone).push_back(seconds / messages * 1e6);
    if (r > 1 && has_blocks) rates.push_back(static_cast<double>(blocks * bench.bytes) * 1e-9 / times[2]);
    ++r;
  }
  const Rate a = summarise(alone), b = summarise(beside), g = summarise(rates);
  if (rt.pe() == 0) {
    fmt::print(
        "{:24} alone {:8.3f}, beside a block {:8.3f} us a message: {:.2f} times; the block {:.2f} GB/s\n",
        what, a.median, b.median, b.median / a.median, g.median);
  }
  rt.heap().free(heap);
  return {{"alone_us", json_of(a)},
          {"beside_us", json_of(b)},
          {"beside_to_alone", b.median / a.median},
          {"block_gb_per_s", json_of(g)}};
}

nlohmann::json take_hop(const BulkBench& bench) {
  Runtime& rt = bench.runtime;
  constexpr std::uint64_t kHops = 2000;
  const auto visits = rt.heap().allocate<std::uint64_t>(1);
  const auto hop = rt.register_handler<std::uint64_t, std::uint64_t>("hop", Hop{visits});
  return alone_and_beside(
      bench, "a dependent message", kHops, kHops % 2 == 0 ? 0 : 1, [] {},
      [&] {
        rt.launch(rt.pe() == 0 ? 1 : 0,
                  [=](WorkItem lane) { shmem_am(lane, hop, &visits[0], kHops - 1, 1); });
      });
}

nlohmann::json take_stream(const BulkBench& bench) {
  Runtime& rt = bench.runtime;
  constexpr std::uint64_t kMessages = 2'000'000;
  const auto left = rt.heap().allocate<std::uint64_t>(1);
  const auto count = rt.register_handler<std::uint64_t, std::uint64_t>("count", Count{});
  return alone_and_beside(
      bench, "a stream of messages", kMessages, 1, [&] { left[0] = kMessages; },
      [&] {
        rt.launch(rt.pe() == 0 ? kMessages : 0,
                  [=](WorkItem lane) { shmem_am(lane, count, &left[0], lane.global_id(), 1); });
      });
}

struct Figure {
  const char* name;
  const char* what;
  nlohmann::json (*take)(const BulkBench& bench);
};
constexpr std::array kFigures = {
    Figure{"copy", "put_block and get_block, beside copies through shared memory", take_copy},
    Figure{"hop", "active messages, each sent by the one before, alone and beside put_block", take_hop},
    Figure{"stream", "active messages of one kernel, alone and beside put_block", take_stream},
};

}  // namespace
}  // namespace esker::bench

int main(int argc, char** argv) try {
  using namespace esker::bench;
  std::uint64_t repeats = 11, bytes = std::uint64_t{16} << 20;
  std::string names = "all", json;
  esker::CommandLine line("esker-bench-bulk", "Blocks between two PEs. Figures:" + list_of(kFigures));
  line.add("figure", &names, "which, with commas between them, or all")
      .add("repeats", &repeats, "whose median counts")
      .add("block-bytes", &bytes, "of the largest block")
      .add("json", &json, "write one JSON object to this file; - is standard output");
  const esker::Config config = line.parse(argc, argv);
  const auto named = figures_named(names, kFigures);
  if (repeats == 0 || bytes < (64u << 10))
    throw esker::UsageError("--repeats is at least 1, --block-bytes 65536");
  nlohmann::json report = provenance("bulk");
  esker::Runtime runtime(config);
  if (runtime.n_pes() != 2 || runtime.runs_on_device())
    throw esker::UsageError(
        "this is for two PEs of one host, whose lanes run on it: mpirun -n 2, --device cpu");
  report["settings"] = {{"repeats", repeats}, {"block_bytes", bytes}};
  const BulkBench bench{runtime, static_cast<std::uint32_t>(repeats), bytes};
  return take_figures(named, bench, report, runtime.pe() == 0 ? json : "", "esker-bench-bulk");
} catch (const esker::UsageError& error) {
  std::fprintf(stderr, "esker-bench-bulk: %s\n", error.what());
  return 2;
} catch (const std::exception& error) {
  std::fprintf(stderr, "esker-bench-bulk: %s\n", error.what());
  return 1;
}
