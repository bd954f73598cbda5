// Chains of stages that double words: the host publishes frames that it has filled once, and looks at the
// first and last words of each frame that comes back, at all of them in the last round, which is not timed.
#include "esker_side.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "words.hpp"

namespace esker::bench {

namespace {

using namespace pipeline;
using Clock = std::chrono::steady_clock;

struct Publish {
  Topic<Quad> to;
  std::uint64_t frames, slots;
  std::uint32_t quads;
  std::atomic<std::uint64_t>* next;
  bool operator()(auto& stage) const {
    const std::uint64_t first = next->fetch_add(16);
    for (std::uint64_t i = first; i < first + 16; ++i) {
      if (i >= frames) return false;
      auto frame = stage.open(to);
      if (frame.data == nullptr) return false;
      if (frame.number < slots) fill_slot(frame.data, quads, frame.number);
      frame.count = quads;
      stage.publish(to, frame);
    }
    return true;
  }
};
struct Check {
  std::uint64_t slots;
  std::uint32_t quads, times;
  std::atomic<std::uint64_t>*wrong, *seen;
  std::uint64_t frames;
  Clock::time_point *filled, *steady;  // the first round has come back; the last one begins to
  Clock::time_point* last;
  void operator()(auto&, const Frame<const Quad>& frame) const {
    seen->fetch_add(1, std::memory_order_relaxed);
    if (frame.count != quads ||
        !is_right(frame.data, quads, frame.number % slots, times, frame.number + slots >= frames))
      wrong->fetch_add(1, std::memory_order_relaxed);
    if (frame.number == slots) *filled = Clock::now();
    if (frame.number + slots == frames) *steady = Clock::now();
    if (last != nullptr) *last = Clock::now();
  }
};
/// The host's stage of C(GC)n looks at a frame, and passes on what it has copied in the first round.
struct PassOn {
  std::uint64_t slots;
  void operator()(auto& stage, const Frame<const Quad>& in, Frame<Quad>& out) const {
    if (in.number < slots) {
      std::copy(in.data, in.data + in.count, out.data);
    } else if (out.data[0].words[3] != in.data[0].words[3]) {
      stage.fail(1, in.number);
    }
  }
};

}  // namespace

double run_chain(const Device& device, const Chain& chain, double* last_to_end_us, std::string* report) {
  Options options;
  options.group_lanes = group_lanes_of(chain.frame_bytes);
  Pipeline p(device, options);
  if (chain.frames < 4 * std::uint64_t{chain.slots})
    throw std::invalid_argument("a chain has at least four rounds");
  const auto quads = static_cast<std::uint32_t>(chain.frame_bytes / sizeof(Quad));
  std::uint64_t slots = 1;
  while (2 * slots <= chain.slots) slots *= 2;
  const TopicOptions topic{.frame_bytes = chain.frame_bytes,
                           .frames = static_cast<std::uint32_t>(slots),
                           .crossing = chain.crossing};
  std::vector<Topic<Quad>> t;
  const std::uint32_t n_topics = chain.returns_each_time ? 2 * chain.stages : chain.stages + 1;
  for (std::uint32_t i = 0; i < n_topics; ++i) t.push_back(p.topic<Quad>(topic));
  std::atomic<std::uint64_t> next{0}, wrong{0}, seen{0};
  Clock::time_point last{}, filled{}, steady{};
  const auto source = on_host::source("source", Publish{t[0], chain.frames, slots, quads, &next})
                          .into(t[0])
                          .workers(chain.host_threads);
  const auto sink =
      on_host::frames("sink", Check{slots, quads, 1u << chain.stages, &wrong, &seen, chain.frames, &filled,
                                    &steady, last_to_end_us != nullptr ? &last : nullptr})
          .from(t.back())
          .workers(chain.host_threads);
  const auto g = [&](std::uint32_t i) {
    return on_device::map("double", t[i], t[i + 1], DoubleFrames{}).parts(chain.parts);
  };
  const auto c = [&](std::uint32_t i) { return on_host::map("look", t[i], t[i + 1], PassOn{slots}); };
  if (!chain.returns_each_time) {
    switch (chain.stages) {
      case 1:
        p.run(source, g(0), sink);
        break;
      case 2:
        p.run(source, g(0), g(1), sink);
        break;
      case 3:
        p.run(source, g(0), g(1), g(2), sink);
        break;
      default:
        p.run(source, g(0), g(1), g(2), g(3), sink);
        break;
    }
  } else {
    switch (chain.stages) {
      case 1:
        p.run(source, g(0), sink);
        break;
      case 2:
        p.run(source, g(0), c(1), g(2), sink);
        break;
      case 3:
        p.run(source, g(0), c(1), g(2), c(3), g(4), sink);
        break;
      default:
        p.run(source, g(0), c(1), g(2), c(3), g(4), c(5), g(6), sink);
        break;
    }
  }
  const auto ended = Clock::now();
  if (last_to_end_us != nullptr)
    *last_to_end_us = std::chrono::duration<double, std::micro>(ended - last).count();
  if (report != nullptr) *report = p.report().text();
  if (wrong != 0 || seen != chain.frames) throw std::runtime_error("a frame came back wrong");
  // The host fills frames in the first round and looks at all words in the last one: neither is what is
  // measured.
  return std::chrono::duration<double>(steady - filled).count() * static_cast<double>(chain.frames) /
         static_cast<double>(chain.frames - 2 * slots);
}

}  // namespace esker::bench
