// What can be wrong with a pipeline, and where its loops are.
#include <esker/pipeline/topology.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include <esker/error.hpp>
#include <esker/pipeline/run_view.hpp>

namespace esker::pipeline {

const char* to_string(Crossing crossing) noexcept {
  switch (crossing) {
    case Crossing::kAuto:
      return "auto";
    case Crossing::kDirect:
      return "direct";
    case Crossing::kBatched:
      return "batched";
    case Crossing::kManaged:
      return "managed";
  }
  return "?";
}

namespace detail {

namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error(Error::Kind::kConfiguration, "pipeline: " + why);
}

void connect(Topology& t) {
  t.ends.resize(t.topics.size());
  for (std::uint32_t s = 0; s < t.stages.size(); ++s) {
    const StageFacts& stage = t.stages[s];
    for (const std::uint32_t topic : stage.inputs) {
      t.ends[topic].subscribers.push_back(s);
      t.ends[topic].to.insert(stage.side);
    }
    for (const std::uint32_t topic : stage.outputs) {
      t.ends[topic].producers.push_back(s);
      t.ends[topic].from = stage.side;
    }
  }
}

/// Stages that reach each other: the strongly connected parts of the graph that have an edge (Tarjan).
void find_loops(Topology& t) {
  const auto n = static_cast<std::uint32_t>(t.stages.size());
  t.loop.assign(n, kNone);
  std::vector<std::uint32_t> index(n, kNone), low(n, 0), stack;
  std::vector<bool> on_stack(n, false);
  std::uint32_t next = 0;
  const auto successors = [&](std::uint32_t s, const auto& visit) {
    for (const std::uint32_t topic : t.stages[s].outputs) {
      for (const std::uint32_t to : t.ends[topic].subscribers) visit(to);
    }
  };
  const std::function<void(std::uint32_t)> search = [&](std::uint32_t s) {
    index[s] = low[s] = next++;
    stack.push_back(s);
    on_stack[s] = true;
    bool feeds_itself = false;
    successors(s, [&](std::uint32_t to) {
      feeds_itself = feeds_itself || to == s;
      if (index[to] == kNone) {
        search(to);
        low[s] = std::min(low[s], low[to]);
      } else if (on_stack[to]) {
        low[s] = std::min(low[s], index[to]);
      }
    });
    if (low[s] != index[s]) return;
    const bool is_loop = stack.back() != s || feeds_itself;
    std::uint32_t last = kNone;
    do {
      last = stack.back();
      stack.pop_back();
      on_stack[last] = false;
      if (is_loop) t.loop[last] = t.n_loops;
    } while (last != s);
    if (is_loop) ++t.n_loops;
  };
  for (std::uint32_t s = 0; s < n; ++s) {
    if (index[s] == kNone) search(s);
  }
  for (std::uint32_t topic = 0; topic < t.topics.size(); ++topic) {
    for (std::uint32_t l = 0; l < t.n_loops; ++l) t.ends[topic].is_in_loop |= t.is_inside(topic, l);
  }
}

/// Edges within a loop do not count.
void find_depths(Topology& t) {
  t.depth.assign(t.stages.size(), 0);
  for (std::size_t round = 1; round < t.stages.size(); ++round) {
    for (const Topology::TopicEnds& ends : t.ends) {
      for (const std::uint32_t from : ends.producers) {
        for (const std::uint32_t to : ends.subscribers) {
          if (t.loop[from] == kNone || t.loop[from] != t.loop[to])
            t.depth[to] = std::max(t.depth[to], t.depth[from] + 1);
        }
      }
    }
  }
}

void check_stage(const Topology& t, const StageFacts& stage) {
  if (stage.kind != StageKind::kSource && stage.inputs.empty())
    refuse(fmt::format("stage '{}' takes from no topic: say .from(topic)", stage.name));
  if (stage.inputs.size() > kMostInputs)
    refuse(fmt::format("stage '{}' takes from {} topics, and {} is the most", stage.name, stage.inputs.size(),
                       kMostInputs));
  for (std::size_t i = 0; i < stage.inputs.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (stage.inputs[i] == stage.inputs[j])
        refuse(fmt::format("stage '{}' takes twice from '{}'", stage.name,
                           t.topics[stage.inputs[i]].options.name));
    }
  }
  for (const std::uint32_t topic : stage.outputs) {
    if (std::count(stage.outputs.begin(), stage.outputs.end(), topic) > 1)
      refuse(
          fmt::format("stage '{}' names '{}' twice as an output", stage.name, t.topics[topic].options.name));
  }
}

void check_topic(const Topology& t, std::uint32_t number) {
  const Topology::TopicEnds& ends = t.ends[number];
  const TopicOptions& options = t.topics[number].options;
  if (ends.producers.empty() && ends.subscribers.empty()) return;
  if (ends.subscribers.empty())
    refuse(fmt::format("nobody takes from '{}': what is published there would wait for ever", options.name));
  if (ends.producers.empty())
    refuse(fmt::format("nobody publishes into '{}': who takes from it would wait for ever", options.name));
  const bool has_map = std::any_of(ends.producers.begin(), ends.producers.end(),
                                   [&](std::uint32_t s) { return t.stages[s].kind == StageKind::kMap; });
  if (has_map && ends.producers.size() > 1)
    refuse(fmt::format(
        "'{}' is the output of a map, whose frames have their input's numbers: nobody else can publish there",
        options.name));
  for (const std::uint32_t s : ends.producers) {
    if (t.stages[s].side != ends.from)
      refuse(fmt::format(
          "stages of the {} and of the {} publish into '{}': make a topic for each, and take from both",
          t.name_of(std::min(t.stages[s].side, ends.from)), t.name_of(std::max(t.stages[s].side, ends.from)),
          options.name));
  }
  if (has_map) {
    const StageFacts& stage = t.stages[ends.producers[0]];
    const TopicFacts& in = t.topics[stage.inputs[0]];
    if (stage.parts > 1 && in.item_bytes != 0 &&
        options.frame_bytes / t.topics[number].item_bytes < in.options.frame_bytes / in.item_bytes)
      refuse(fmt::format(
          "map '{}' works in parts, so frames of '{}' must have room for as many items as those of '{}'",
          stage.name, options.name, in.options.name));
  }
  if (options.when_full == WhenFull::kDropOldest &&
      (ends.from != kHostSide || ends.crosses() || ends.subscribers.size() != 1 || ends.is_in_loop ||
       t.loop[ends.subscribers[0]] != kNone))
    refuse(fmt::format(
        "'{}' drops the oldest frame, which only a topic of host stages, with one subscriber and outside of "
        "loops, can: put a host stage between",
        options.name));
  if (options.when_full == WhenFull::kDropOldest && t.stages[ends.subscribers[0]].kind == StageKind::kMap)
    refuse(
        fmt::format("'{}' drops the oldest frame, and map '{}' takes from it, whose output would lack that "
                    "number: use frames()",
                    options.name, t.stages[ends.subscribers[0]].name));
}

}  // namespace

std::uint32_t Topology::most_teams(std::uint32_t stage) const {
  std::uint64_t frames = 0;
  for (const std::uint32_t t : stages[stage].inputs)
    frames += std::uint64_t{topics[t].options.frames} * stages[stage].parts;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(frames / 2, 1, ~std::uint32_t{0}));
}

bool Topology::is_inside(std::uint32_t topic, std::uint32_t loop_number) const {
  const auto inside = [&](std::uint32_t s) { return loop[s] == loop_number; };
  return std::any_of(ends[topic].producers.begin(), ends[topic].producers.end(), inside) &&
         std::any_of(ends[topic].subscribers.begin(), ends[topic].subscribers.end(), inside);
}

std::string Topology::name_of(std::uint32_t side) const {
  if (side == kHostSide) return "host";
  return n_devices == 1 ? "device" : fmt::format("device {}", side - 1);
}

std::set<std::uint32_t> Topology::sides_of(std::uint32_t loop_number) const {
  std::set<std::uint32_t> sides;
  for (std::uint32_t s = 0; s < stages.size(); ++s) {
    if (loop[s] == loop_number) sides.insert(stages[s].side);
  }
  return sides;
}

Topology Topology::check(std::uint32_t pipeline, const std::vector<TopicFacts>& topics,
                         const std::vector<StageFacts>& stages, const std::vector<Device>& devices) {
  Topology t;
  t.pipeline = pipeline;
  t.n_devices = static_cast<std::uint32_t>(devices.size());
  t.topics = topics;
  t.stages = stages;
  if (stages.empty()) refuse("it has no stages");
  if (stages.size() > kMostStages)
    refuse(fmt::format("it has {} stages, and {} is the most", stages.size(), kMostStages));
  for (StageFacts& stage : t.stages) {
    for (const std::uint32_t owner : stage.pipelines) {
      if (owner != pipeline) refuse(fmt::format("stage '{}' names a topic of another pipeline", stage.name));
    }
    if (stage.side > devices.size())
      refuse(fmt::format("stage '{}' is on device {}, and the pipeline has {}: it is 0 to {}", stage.name,
                         stage.side - 1, devices.size(), devices.size() - 1));
    if (stage.side != kHostSide && devices[stage.side - 1].backend() == Backend::kCpu)
      stage.side = kHostSide;  // the device is the host
    check_stage(t, stage);
  }
  connect(t);
  find_loops(t);
  find_depths(t);
  for (std::uint32_t topic = 0; topic < topics.size(); ++topic) check_topic(t, topic);
  return t;
}

}  // namespace detail

}  // namespace esker::pipeline
