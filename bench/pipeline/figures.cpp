// Ping-pong, latency, chains, end.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include <esker/pipeline/crossing.hpp>

#include "bench.hpp"
#include "esker_side.hpp"
#include "rivals.hpp"
#include "words.hpp"

namespace esker::bench {

namespace {

using pipeline::Crossing;

std::uint64_t slots_of(const PipelineBench& bench, std::uint64_t frame_bytes) {
  return std::clamp<std::uint64_t>((std::uint64_t{256} << 20) / frame_bytes, 16, bench.frames);
}
std::string size_of(std::uint64_t bytes) {
  return bytes >= (1u << 20) ? fmt::format("{} MiB", bytes >> 20) : fmt::format("{} KiB", bytes >> 10);
}

}  // namespace

nlohmann::json take_ping_pong(const PipelineBench& bench) {
  nlohmann::json all;
  for (const std::uint64_t kib : {4, 16, 64, 256, 1024, 4096}) {
    const std::uint64_t bytes = kib << 10;
    const std::uint64_t frames = std::max<std::uint64_t>(bench.bytes / bytes, 8 * slots_of(bench, bytes)),
                        few = std::clamp<std::uint64_t>(frames, 64, 4096);
    const auto slots = static_cast<std::uint32_t>(slots_of(bench, bytes));
    const auto scaled = [frames](double seconds, std::uint64_t n) {
      return seconds * static_cast<double>(frames) / static_cast<double>(n);
    };
    std::vector<PipelineSide> sides;
    sides.push_back({"direct", [&, bytes, frames, slots] {
                       return run_chain(bench.device, {.frame_bytes = bytes,
                                                       .frames = frames,
                                                       .crossing = Crossing::kDirect,
                                                       .parts = parts_of(bytes),
                                                       .slots = slots});
                     }});
    sides.push_back({"direct, 2 threads a host stage", [&, bytes, frames, slots] {
                       return run_chain(bench.device, {.frame_bytes = bytes,
                                                       .frames = frames,
                                                       .crossing = Crossing::kDirect,
                                                       .parts = parts_of(bytes),
                                                       .slots = slots,
                                                       .host_threads = 2});
                     }});
    if (bench.is_on_gpu()) {
      sides.push_back({"batched", [&, bytes, frames, slots] {
                         return run_chain(bench.device, {.frame_bytes = bytes,
                                                         .frames = frames,
                                                         .crossing = Crossing::kBatched,
                                                         .parts = parts_of(bytes),
                                                         .slots = slots});
                       }});
    }
    sides.push_back({"copy-kernel-copy",
                     [&, bytes, few] { return scaled(copy_kernel_copy(bench.device, bytes, few, 1), few); }});
    sides.push_back({"8 streams",
                     [&, bytes, few] { return scaled(copy_kernel_copy(bench.device, bytes, few, 8), few); }});
#if defined(ESKER_BENCH_GRAPHS)
    sides.push_back(
        {"graph of 8 branches", [&, bytes, few] { return scaled(graph_of_branches(bytes, few), few); }});
#endif
    if (bench.is_on_gpu()) {
      const std::uint64_t fewest = 64;
      sides.push_back({"managed memory", [&, bytes, fewest] {
                         return scaled(kernel_over_managed(bench.device, bytes, fewest), fewest);
                       }});
    }
    all[std::to_string(bytes)] =
        take_turns(bench, size_of(bytes), sides, static_cast<double>(frames * bytes) / 1e9, "GB/s each way");
  }
  return all;
}

nlohmann::json take_crossing(const PipelineBench& bench) {
  nlohmann::json all;
  std::uint64_t batched_from = ~std::uint64_t{0};
  for (const std::uint64_t kib : {64, 256, 512, 1024, 2048, 4096, 8192}) {
    const std::uint64_t bytes = kib << 10;
    const std::uint64_t frames = std::max<std::uint64_t>(bench.bytes / bytes, 8 * slots_of(bench, bytes));
    Chain chain{.frame_bytes = bytes,
                .frames = frames,
                .crossing = Crossing::kDirect,
                .parts = parts_of(bytes),
                .slots = static_cast<std::uint32_t>(slots_of(bench, bytes))};
    const auto by = [&](Crossing crossing) {
      return [&, crossing] {
        chain.crossing = crossing;
        return run_chain(bench.device, chain);
      };
    };
    nlohmann::json& both = all[std::to_string(bytes)];
    both = take_turns(bench, size_of(bytes),
                      {{"direct", by(Crossing::kDirect)}, {"batched", by(Crossing::kBatched)}},
                      static_cast<double>(frames * bytes) / 1e9, "GB/s each way");
    if (!both["direct"].contains("rate") || !both["batched"].contains("rate"))
      throw std::runtime_error("a side has failed");
    const bool is_faster = both["batched"]["rate"].get<double>() > both["direct"]["rate"].get<double>();
    if (!is_faster) batched_from = ~std::uint64_t{0};
    if (is_faster && batched_from > bytes) batched_from = bytes;
  }
  all["batched_from"] = batched_from;
  if (bench.keep) {
    pipeline::keep_batched_from(bench.device, batched_from);
    fmt::print("kept in {}\n", machine_file());
  }
  return all;
}

nlohmann::json take_latency(const PipelineBench& bench) {
  using namespace pipeline;
  using Clock = std::chrono::steady_clock;
  constexpr std::uint32_t kTimes = 20'000;
  Pipeline p(bench.device, {.group_lanes = 64});
  const auto in = p.topic<Quad>({.frame_bytes = 64, .frames = 4, .crossing = Crossing::kDirect});
  const auto out = p.topic<Quad>({.frame_bytes = 64, .frames = 4, .crossing = Crossing::kDirect});
  std::atomic<std::uint32_t> seen{0};
  std::vector<double> us;
  std::uint32_t given = 0;
  Clock::time_point began{};
  p.run(on_host::source("ping",
                        [&](auto& stage) {
                          auto frame = stage.open(in);
                          if (frame.data == nullptr) return false;
                          fill_slot(frame.data, 4, given);
                          frame.count = 4;
                          began = Clock::now();
                          stage.publish(in, frame);
                          ++given;
                          while (seen.load(std::memory_order_acquire) != given) {
                            if (!bench.is_on_gpu()) std::this_thread::yield();
                          }
                          return given < kTimes;
                        })
            .into(in),
        on_device::map("double", in, out, DoubleFrames{}).workers(1),
        on_host::frames("pong", [&](auto& stage, const Frame<const Quad>& frame) {
          us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - began).count());
          if (!is_right(frame.data, 4, seen.load(), 2, true)) stage.fail(1, frame.number);
          seen.fetch_add(1, std::memory_order_release);
        }).from(out));
  std::sort(us.begin(), us.end());
  const auto at = [&](double part) {
    return us[static_cast<std::size_t>(static_cast<double>(us.size() - 1) * part)];
  };
  fmt::print("64 bytes there and back: {:.2f} us (half), {:.2f} (99 %), {:.2f} (least)\n", at(0.5), at(0.99),
             us.front());
  return {{"median_us", at(0.5)}, {"p99_us", at(0.99)}, {"min_us", us.front()}};
}

nlohmann::json take_chains(const PipelineBench& bench) {
  nlohmann::json all;
  for (const std::uint64_t bytes : {std::uint64_t{16} << 10, std::uint64_t{4} << 20}) {
    for (const bool returns : {false, true}) {
      for (std::uint32_t n = 1; n <= 4; ++n) {
        const std::uint64_t frames = std::max<std::uint64_t>(bench.bytes / bytes, 8 * slots_of(bench, bytes));
        const std::uint64_t few = std::clamp<std::uint64_t>(frames, 64, 4096);
        const Chain chain{.frame_bytes = bytes,
                          .frames = frames,
                          .stages = n,
                          .returns_each_time = returns,
                          .crossing = bench.is_on_gpu() ? Crossing::kAuto : Crossing::kDirect,
                          .parts = parts_of(bytes),
                          .slots = static_cast<std::uint32_t>(slots_of(bench, 2 * bytes))};
        const std::string name = returns ? fmt::format("C(GC){}", n) : fmt::format("C(G){}C", n);
        all[std::to_string(bytes)][name] =
            take_turns(bench, fmt::format("{} {}", name, size_of(bytes)),
                       {{"esker", [&] { return run_chain(bench.device, chain); }},
                        {"4 streams",
                         [&] {
                           return chain_of_copies(bench.device, bytes, few, n,
                                                  {.streams = 4, .returns_each_time = returns}) *
                                  static_cast<double>(frames) / static_cast<double>(few);
                         }}},
                       static_cast<double>(frames * bytes) / 1e9, "GB/s each way");
      }
    }
  }
  return all;
}

nlohmann::json take_end(const PipelineBench& bench) {
  std::vector<double> us;
  for (std::uint32_t i = 0; i < 20 * bench.repeats; ++i) {
    double one = 0;
    (void)run_chain(bench.device,
                    {.frame_bytes = 4096, .frames = 2000, .crossing = Crossing::kDirect, .slots = 64}, &one);
    us.push_back(one);
  }
  std::sort(us.begin(), us.end());
  fmt::print("from the last frame to the end of run(): {:.1f} us (half), {:.1f} (90 %), {:.1f} to {:.1f}\n",
             us[us.size() / 2], us[us.size() * 9 / 10], us.front(), us.back());
  return {{"median_us", us[us.size() / 2]}, {"min_us", us.front()}, {"max_us", us.back()}};
}

}  // namespace esker::bench
