// Task graphs: many functions, a channel each, of which elements spawn elements (thesis, 4.1 and 4.2.2).
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/tasks/graph_channels.hpp>
#include <esker/tasks/graph_check.hpp>
#include <esker/tasks/graph_domain.hpp>
#include <esker/tasks/graph_hang.hpp>
#include <esker/tasks/graph_options.hpp>
#include <esker/tasks/hang.hpp>
#include <esker/tasks/options.hpp>
#include <esker/tasks/stop_relay.hpp>
#include <esker/tasks/task.hpp>

namespace esker::tasks {

namespace detail {

ESKER_PASS_BEGIN

/// What a GPU's launch runs: a domain a wave.
template <class Nodes>
struct WaveGraph {
  GraphState* state;
  GraphParameters parameters;
  std::uint32_t words;  // of a domain's scratchpad
  Nodes nodes;
  ESKER_HD void operator()([[maybe_unused]] GroupLane& lane) const {
#if !defined(ESKER_ON_CPU)
    auto* const scratch = reinterpret_cast<std::uint32_t*>(GroupLane::lent_scratch());
    const std::uint32_t wave = lane.lane() / GroupLane::kWaveLanes;
    const auto domain = static_cast<std::uint32_t>(lane.global_id() / GroupLane::kWaveLanes);
    const GraphPlace place{state, scratch + wave * words, parameters.progress, parameters.buffer, domain};
    GraphDomain<WaveLanes::Shape, Nodes>(WaveLanes(lane), place, parameters, nodes).run();
#endif
  }
};
/// On the CPU: a domain a host thread.
template <class Nodes, class Shape>
struct ThreadGraph {
  GraphState* state;
  GraphParameters parameters;
  std::uint32_t words;
  std::uint32_t* scratch;
  const Nodes* nodes;
  ESKER_HD void operator()([[maybe_unused]] Lane lane) const {
#if defined(ESKER_ON_CPU)
    const auto domain = static_cast<std::uint32_t>(lane.global_id());
    const GraphPlace place{state, scratch + std::size_t{domain} * words, parameters.progress,
                           parameters.buffer, domain};
    try {
      GraphDomain<Shape, Nodes>(ThreadLanes{}, place, parameters, *nodes).run();
    } catch (...) {
      (void)state->end(Outcome::kThrew);  // or the other domains would wait for what this one holds
      throw;
    }
#endif
  }
};

ESKER_PASS_END

}  // namespace detail

/// A node of a graph: elements of the channel are given to `function(task, element)`, ESKER_HD, whose task is
/// a GraphTask&. into() names the channels that it spawns into. The function is copied into the kernel.
template <class T, class Function>
Node<T, Function> node(const GraphChannel<T>& channel, const Function& function) {
  return {channel.graph, channel.number, 0, false, function};
}

ESKER_PASS_BEGIN

/// Functions that give each other elements, through bounded channels; on a GPU in one launch a run.
///
///     tasks::Graph graph(device);
///     const auto rays = graph.channel<Ray>({.name = "rays", .priority = 1});
///     const auto hits = graph.channel<Hit>({.name = "hits", .when_full = tasks::WhenFull::kInline});
///     graph.seed(rays, span);
///     graph.run(tasks::node(rays, Trace{hits}).into(hits), tasks::node(hits, Shade{rays}).into(rays));
///
/// State    channels are made -> runs, one at a time, any number. What is for full channels is allocated by
///          the first run; nothing is on the device between runs but memory.
/// Contract One thread. Elements run in any order, each once, on any lane; those of higher priority first, as
///          far as a domain sees. Lanes of a wave call the function side by side, so it must not wait for
///          another element's call.
/// Progress No spawn waits for place: see WhenFull. A run ends when nothing waits and nothing runs.
/// Errors   Error{kOutOfMemory}: the device has not the memory. Error{kConfiguration}: the graph is wrong;
///          it says how. A run throws a TaskError: a task failed, spawned where its node had not said so,
///          found a channel full that must not be, or no memory; or the run was stopped. The next run is
///          not touched by it. What a function throws on the CPU is thrown here.
class Graph {
 public:
  explicit Graph(const Device& device, const Options& options = {})
      : device_{device},
        options_{options},
        stream_{device.stream()},
        state_{device.memory<detail::GraphState>(1, {"the state of a task graph"})},
        written_{device.pinned<detail::GraphState>(1, {"the state of a task graph"})},
        stop_relay_{device},
        channels_{device, options},
        id_{detail::next_graph()} {}

  /// Makes a channel, before the first run. At most 32, outputs among them.
  template <class T>
  GraphChannel<T> channel(const GraphChannelOptions& options = {}) {
    static_assert(sizeof(T) <= detail::kMostTaskBytes,
                  "an element has at most 64 KiB: what is larger is in memory, and its number an element");
    return {id_, channels_.template add<T>(report_, options, false)};
  }
  /// Makes an output of at most `capacity` elements: nodes spawn into it, and results() has them.
  template <class T>
  GraphOutput<T> output(const std::string& name = "", std::uint32_t capacity = 1 << 15) {
    return {id_, channels_.template add<T>(report_, {name, capacity, 0, WhenFull::kFail}, true)};
  }

  /// Elements that are in the channel when a run begins: each run, until it is called again. They are in host
  /// memory or in this device's, and copied.
  template <class T>
  void seed(const GraphChannel<T>& channel, std::span<const std::type_identity_t<T>> elements) {
    detail::check_owner(id_, channel.graph);
    channels_.seed(channel.number, elements.data(), elements.size(), sizeof(T), stream_);
  }

  /// Runs from the seeds to the end. Each channel has one node here; the same ones or others in each run.
  template <class... Nodes>
  const GraphReport& run(const Nodes&... nodes) {
    return run_as<detail::ThreadShape>(nodes...);
  }

  /// What the last run has put into an output, in any order.
  template <class T>
  std::vector<T> results(const GraphOutput<T>& output) const {
    detail::check_owner(id_, output.graph);
    std::vector<T> all(report_.channels[output.number].elements);
    device_.copy(all.data(), channels_.elements(output.number), all.size() * sizeof(T));
    return all;
  }

  /// Bytes of elements that can wait at a time, whatever the nodes do: capacities, and Options::memory_bytes
  /// where a channel spills or runs inline. Beside it domains have their buffers, in scratchpad.
  std::uint64_t memory_bound() const { return channels_.memory_bound(report_); }
  /// Of the last run.
  const GraphReport& report() const { return report_; }

  /// For tests: batches on the CPU as Shape has them.
  template <class Shape, class... Nodes>
  const GraphReport& run_as(const Nodes&... nodes) {
    const std::vector<detail::NodeFacts> facts{{nodes.graph, nodes.number, nodes.targets, nodes.is_mixed}...};
    detail::check_nodes(report_.channels, id_, facts);
    const detail::NodeList<Nodes...> list(nodes...);
    const auto start = std::chrono::steady_clock::now();
    if (device_.backend() == Backend::kCpu) {
      run_threads<Shape>(list, facts, start);
    } else {
      run_waves(list, facts);
    }
    end(start);
    return report_;
  }

 private:
  // What a kernel of this kind declares, and the device keeps.
  static constexpr std::uint32_t kScratchAside = 2048;
  static constexpr std::uint32_t kWaves = 4;  // of a group

  template <class Shape, class List>
  void run_threads(const List& list, const std::vector<detail::NodeFacts>& facts,
                   std::chrono::steady_clock::time_point start) {
    const LaunchShape shape = shape_of_threads();
    channels_.lay_out(report_, Shape::kBatch, 1);
    begin(facts, static_cast<std::uint32_t>(shape.lanes));
    const detail::ThreadGraph<List, Shape> kernel{state_.data(), parameters_, channels_.words(), hot_.data(),
                                                  &list};
    const detail::WatchedForHangs watched(hangs_.get());
    try {
      device_.launch(shape, kernel, stream_);
    } catch (...) {
      is_clean_ = false;
      read(start);
      throw;
    }
  }
  template <class List>
  void run_waves(const List& list, const std::vector<detail::NodeFacts>& facts) {
    const std::uint32_t lanes = device_.properties().wave_lanes;
    channels_.lay_out(report_, lanes, lanes);
    detail::WaveGraph<List> kernel{state_.data(), parameters_, channels_.words(), list};
    const LaunchShape shape = shape_of_waves(kernel, lanes);
    begin(facts, static_cast<std::uint32_t>(shape.lanes / lanes));
    kernel.parameters = parameters_;
    const detail::WatchedForHangs watched(hangs_.get());
    device_.launch(shape, kernel, stream_, scratch_bytes_);
    stop_relay_.wait(stream_, options_.stop, &state_.data()->stop_word);
  }

  LaunchShape shape_of_threads() const {
    std::uint32_t domains = device_.properties().processors;
    if (options_.domains != 0) domains = std::min(domains, options_.domains);
    return {domains, 1};
  }
  template <class Kernel>
  LaunchShape shape_of_waves(const Kernel& kernel, std::uint32_t lanes) {
    const std::uint32_t wave_bytes = channels_.words() * 4;
    const std::uint32_t most = device_.properties().group_scratch_bytes;
    std::uint32_t waves = kWaves;
    while (waves > 1 && most != 0 && waves * wave_bytes + kScratchAside > most) waves /= 2;
    while (options_.domains != 0 && waves > options_.domains) waves /= 2;
    scratch_bytes_ = waves * wave_bytes;
    std::uint64_t groups = device_.resident_groups(kernel, waves * lanes, scratch_bytes_);
    if (options_.domains != 0) groups = std::min<std::uint64_t>(groups, options_.domains / waves);
    return {groups * waves * lanes, waves * lanes};
  }

  /// Writes the state that the run begins with.
  void begin(const std::vector<detail::NodeFacts>& nodes, std::uint32_t domains) {
    channels_.allocate(report_, domains);
    const std::size_t words = std::size_t{domains} * channels_.words();
    if (device_.backend() == Backend::kCpu && hot_.size() < words)
      hot_ = device_.memory<std::uint32_t>(words, {"buffers of a task graph"});
    if (!is_clean_) channels_.reset();
    is_clean_ = true;
    parameters_.channels = static_cast<std::uint32_t>(report_.channels.size());
    parameters_.nodes = static_cast<std::uint32_t>(nodes.size());
    parameters_.buffer = channels_.buffer();
    if (options_.hang_after.count() > 0 && (hangs_ == nullptr || parameters_.domains != domains))
      watch_for_hangs(domains);
    parameters_.domains = domains;
    ++parameters_.seed;
    report_.domains = parameters_.domains;
    std::vector<std::uint32_t> order;
    for (const detail::NodeFacts& node : nodes) {
      order.push_back(node.number);
      auto& into = report_.channels[node.number].into;
      into.clear();
      for (std::uint32_t c = 0; c < report_.channels.size(); ++c) {
        if ((node.targets >> c & 1u) != 0) into.push_back(report_.channels[c].name);
      }
    }
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return report_.channels[a].options.priority > report_.channels[b].options.priority;
    });
    for (std::size_t r = 0; r < order.size(); ++r)
      parameters_.by_priority[r] = static_cast<std::uint8_t>(order[r]);
    detail::GraphState& state = written_[0];
    // On a GPU a stop request comes by the state's own word.
    const bool is_gpu = device_.backend() != Backend::kCpu;
    state.begin(is_gpu ? nullptr : options_.stop.word());
    if (is_gpu) state.stop = &state_.data()->stop_word;
    if (mailboxes_.size() < domains)
      mailboxes_ = device_.memory<std::uint32_t>(domains, {"domains that ask"});
    device_.fill(mailboxes_.data(), 0, mailboxes_.size_bytes(), stream_);
    state.mailboxes.reset(mailboxes_.data(), domains);
    const std::uint64_t seeds = channels_.write(report_, state);
    state.open.store_relaxed(seeds);
    if (seeds == 0) (void)state.end(detail::Outcome::kDone);
    state.sum.store_relaxed(0);
    state.waits.store_relaxed(0);
    device_.copy_async(state_.data(), &state, used_bytes(), stream_);
  }
  void watch_for_hangs(std::uint32_t domains) {
    hangs_ = std::make_unique<detail::HangWatch>(
        device_, options_, "task graph", state_.data(), domains, domains * report_.channels.size(),
        [this](const detail::SeenProgress& seen, const detail::Peek& peek) {
          return detail::explain_graph(seen, channels_.see(state_.data(), peek), report_.channels);
        });
    parameters_.progress = hangs_->progress();
  }
  /// Of the state: the channels that there are.
  std::size_t used_bytes() const {
    const detail::GraphState& state = written_[0];
    return static_cast<std::size_t>(
        reinterpret_cast<const std::byte*>(&state.channels[report_.channels.size()]) -
        reinterpret_cast<const std::byte*>(&state));
  }

  /// What the run has left.
  void read(std::chrono::steady_clock::time_point start) {
    detail::GraphState& state = written_[0];
    device_.copy_async(&state, state_.data(), used_bytes(), stream_);
    stream_.synchronize();
    report_.time = std::chrono::steady_clock::now() - start;
    report_.sum = state.sum.load_relaxed();
    report_.waits = state.waits.load_relaxed();
    channels_.read(state, report_);
  }
  void end(std::chrono::steady_clock::time_point start) {
    read(start);
    const detail::RunEnd how = written_[0].how();
    is_clean_ = how.outcome == detail::Outcome::kDone;
    if (hangs_ != nullptr) hangs_->rethrow();
    if (!is_clean_) detail::throw_graph_outcome(how, report_.channels, device_.name(), options_);
  }

  const Device device_;
  const Options options_;
  const Stream stream_;
  DeviceArray<detail::GraphState> state_;
  PinnedArray<detail::GraphState> written_;  // what a run begins with, and then how it has ended
  DeviceArray<std::uint32_t> hot_;           // domains' buffers on the CPU
  DeviceArray<std::uint32_t> mailboxes_;
  detail::StopRelay stop_relay_;
  detail::GraphChannels channels_;
  GraphReport report_;
  detail::GraphParameters parameters_;
  std::unique_ptr<detail::HangWatch> hangs_;  // of so many domains as the last run had
  std::uint32_t scratch_bytes_ = 0;           // of a group
  bool is_clean_ = true;                      // channels are empty
  const std::uint32_t id_;
};

ESKER_PASS_END

}  // namespace esker::tasks
