// oneTBB's parallel_pipeline and flow graph beside a pipeline of host stages.
#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_pipeline.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench.hpp"
#include "words.hpp"

namespace esker::bench {

namespace {

using namespace pipeline;
using Clock = std::chrono::steady_clock;
constexpr std::size_t kTokens = 64, kThreads = 2, kFrames = 4;  // of 64 KiB: as many as caches hold

constexpr auto mixed = [](std::uint64_t n) { return n * std::uint64_t{0x9e3779b97f4a7c15u}; };

double timed(const std::function<std::uint64_t()>& run, std::uint64_t expected) {
  const auto began = Clock::now();
  const std::uint64_t sum = run();
  const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
  if (sum != expected) throw std::runtime_error("a sum is wrong");
  return seconds;
}

struct Mix {
  Topic<std::uint64_t> to;
  void operator()(auto& stage, const std::uint64_t& n) const { stage.emit(to, mixed(n)); }
};

std::uint64_t items_by_esker(const Device& device, std::uint64_t n) {
  Pipeline p(device);
  const auto a = p.topic<std::uint64_t>({.frame_bytes = 16384}),
             b = p.topic<std::uint64_t>({.frame_bytes = 16384});
  std::uint64_t next = 0, sum = 0;
  p.run(on_host::source("source",
                        [&](auto& stage) {
                          if (next == n) return false;
                          stage.emit(a, next++);
                          return true;
                        })
            .into(a),
        on_host::items("mix", Mix{b}).from(a).into(b),
        on_host::items("sum", [&](auto&, const std::uint64_t& m) { sum += m; }).from(b));
  return sum;
}
std::uint64_t items_by_tbb(std::uint64_t n) {
  std::uint64_t next = 0, sum = 0;
  tbb::parallel_pipeline(
      kTokens, tbb::make_filter<void, std::uint64_t>(tbb::filter_mode::serial_in_order,
                                                     [&](tbb::flow_control& control) {
                                                       if (next == n) control.stop();
                                                       return next == n ? 0 : next++;
                                                     }) &
                   tbb::make_filter<std::uint64_t, std::uint64_t>(tbb::filter_mode::parallel, mixed) &
                   tbb::make_filter<std::uint64_t, void>(tbb::filter_mode::serial_in_order,
                                                         [&](std::uint64_t m) { sum += m; }));
  return sum;
}
std::uint64_t items_by_flow_graph(std::uint64_t n) {
  tbb::flow::graph graph;
  std::uint64_t next = 0, sum = 0;
  tbb::flow::input_node<std::uint64_t> source(graph, [&](tbb::flow_control& control) {
    if (next == n) control.stop();
    return next == n ? 0 : next++;
  });
  tbb::flow::function_node<std::uint64_t, std::uint64_t> mix(graph, tbb::flow::unlimited, mixed);
  tbb::flow::function_node<std::uint64_t> add(graph, tbb::flow::serial, [&](std::uint64_t m) { sum += m; });
  tbb::flow::make_edge(source, mix);
  tbb::flow::make_edge(mix, add);
  source.activate();
  graph.wait_for_all();
  return sum;
}

constexpr std::uint32_t kQuads = 65536 / sizeof(Quad);
std::uint64_t sum_of(const Quad* quads, std::uint32_t n) {
  std::uint64_t sum = 0;
  for (std::uint32_t i = 0; i < n; ++i) sum += std::uint64_t{quads[i].words[0]} + quads[i].words[3];
  return sum;
}

std::uint64_t frames_by_esker(const Device& device, std::uint64_t frames) {
  Pipeline p(device);
  const auto a = p.topic<Quad>({.frames = kFrames}), b = p.topic<Quad>({.frames = kFrames});
  std::uint64_t next = 0, sum = 0;
  p.run(on_host::source("source",
                        [&](auto& stage) {
                          if (next == frames) return false;
                          auto frame = stage.open(a);
                          fill_slot(frame.data, kQuads, next++);
                          frame.count = kQuads;
                          stage.publish(a, frame);
                          return true;
                        })
            .into(a),
        on_host::map("double", a, b, DoubleFrames{}).workers(2),
        on_host::frames("sum", [&](auto&, const Frame<const Quad>& f) {
          sum += sum_of(f.data, f.count);
        }).from(b));
  return sum;
}
std::uint64_t frames_by_tbb(std::uint64_t frames) {
  // Buffers go round, as a careful user would have it: allocating 64 KiB a token costs more than the work.
  std::vector<std::vector<Quad>> in(kFrames, std::vector<Quad>(kQuads)),
      out(kFrames, std::vector<Quad>(kQuads));
  std::uint64_t next = 0, sum = 0;
  tbb::parallel_pipeline(
      kFrames,
      tbb::make_filter<void, std::uint64_t>(tbb::filter_mode::serial_in_order,
                                            [&](tbb::flow_control& control) -> std::uint64_t {
                                              if (next == frames) {
                                                control.stop();
                                                return 0;
                                              }
                                              fill_slot(in[next % kFrames].data(), kQuads, next);
                                              return next++;
                                            }) &
          tbb::make_filter<std::uint64_t, std::uint64_t>(
              tbb::filter_mode::parallel,
              [&](std::uint64_t f) {
                double_quads(in[f % kFrames].data(), out[f % kFrames].data(), kQuads, 0, 1);
                return f;
              }) &
          tbb::make_filter<std::uint64_t, void>(tbb::filter_mode::serial_in_order, [&](std::uint64_t f) {
            sum += sum_of(out[f % kFrames].data(), kQuads);
          }));
  return sum;
}

/// What any pipeline of the three steps is measured by: each `stride`-th frame from `first` on, by one
/// thread.
std::uint64_t frames_in_a_loop(std::uint64_t frames, std::uint64_t first = 0, std::uint64_t stride = 1) {
  std::vector<Quad> in(kQuads), out(kQuads);
  std::uint64_t sum = 0;
  for (std::uint64_t f = first; f < frames; f += stride) {
    fill_slot(in.data(), kQuads, f);
    double_quads(in.data(), out.data(), kQuads, 0, 1);
    sum += sum_of(out.data(), kQuads);
  }
  return sum;
}
/// And what two threads can do at most: they share nothing, and keep no order.
std::uint64_t frames_in_two_loops(std::uint64_t frames) {
  std::uint64_t odd = 0;
  std::thread other([&] { odd = frames_in_a_loop(frames, 1, 2); });
  const std::uint64_t even = frames_in_a_loop(frames, 0, 2);
  other.join();
  return even + odd;
}

}  // namespace

nlohmann::json take_tbb(const PipelineBench& bench) {
  const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, kThreads);
  const std::uint64_t items = bench.bytes / 64, frames = bench.bytes / 65536 * 4;
  std::uint64_t item_sum = 0;
  for (std::uint64_t n = 0; n < items; ++n) item_sum += mixed(n);
  const std::uint64_t frame_sum = frames_in_a_loop(frames);
  nlohmann::json all;
  all["items"] = take_turns(
      bench, "8-byte items",
      {{"esker", [&] { return timed([&] { return items_by_esker(bench.device, items); }, item_sum); }},
       {"parallel_pipeline", [&] { return timed([&] { return items_by_tbb(items); }, item_sum); }},
       {"flow graph", [&] { return timed([&] { return items_by_flow_graph(items); }, item_sum); }}},
      static_cast<double>(items) / 1e6, "M items/s");
  all["frames"] = take_turns(
      bench, "64 KiB frames",
      {{"esker", [&] { return timed([&] { return frames_by_esker(bench.device, frames); }, frame_sum); }},
       {"parallel_pipeline", [&] { return timed([&] { return frames_by_tbb(frames); }, frame_sum); }},
       {"two threads, a loop each",
        [&] { return timed([&] { return frames_in_two_loops(frames); }, frame_sum); }},
       {"one thread, a loop", [&] { return timed([&] { return frames_in_a_loop(frames); }, frame_sum); }}},
      static_cast<double>(frames) / 1e3, "k frames/s");
  return all;
}

}  // namespace esker::bench
