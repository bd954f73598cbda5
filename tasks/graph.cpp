// The words of task graphs: what is wrong with one, why a run ended, what it did.
#include <esker/tasks/graph_check.hpp>

#include <fmt/format.h>

#include <array>
#include <atomic>

#include <esker/tasks/error.hpp>

namespace esker::tasks {

namespace detail {

namespace {
[[noreturn]] void refuse(const std::string& why) {
  throw Error(Error::Kind::kConfiguration, "task graph: " + why);
}
}  // namespace

std::uint32_t next_graph() {
  static std::atomic<std::uint32_t> made{0};
  return made.fetch_add(1, std::memory_order_relaxed) + 1;
}

void check_nodes(const std::vector<GraphReport::Channel>& channels, std::uint32_t graph,
                 const std::vector<NodeFacts>& nodes) {
  std::vector<std::uint32_t> of_channel(channels.size(), 0);
  for (const NodeFacts& node : nodes) {
    check_owner(graph, node.graph);
    const std::string& name = channels[node.number].name;
    if (node.is_mixed) refuse(fmt::format("the node of '{}' spawns into a channel of another graph", name));
    if (++of_channel[node.number] > 1)
      refuse(fmt::format("'{}' has several nodes; a channel has one function", name));
  }
  for (std::size_t c = 0; c < channels.size(); ++c) {
    if (!channels[c].is_output && of_channel[c] == 0)
      refuse(fmt::format("'{}' has no node: what is in it would wait for ever", channels[c].name));
  }
}

void check_owner(std::uint32_t graph, std::uint32_t owner) {
  if (graph != owner) refuse("a channel of another graph was named");
}

[[noreturn]] void refuse_channel(const std::string& name, bool has_run) {
  refuse(has_run ? fmt::format("'{}' was made after the first run", name)
                 : fmt::format("'{}' is one channel too many: a graph has 32, outputs among them", name));
}

[[noreturn]] void refuse_memory_of(const std::string& name, std::uint64_t memory_bytes) {
  refuse(
      fmt::format("memory_bytes is {}, of which '{}' would have place for no element", memory_bytes, name));
}

[[noreturn]] void throw_graph_outcome(const RunEnd& how, const std::vector<GraphReport::Channel>& channels,
                                      const std::string& device, const Options& options) {
  const std::array<std::uint64_t, 2> values{how.error_values[0], how.error_values[1]};
  const auto raise = [&](Error::Kind kind, TaskError::Reason reason, const std::string& message) {
    const bool has_said = reason == TaskError::Reason::kFailed;
    throw TaskError(kind, fmt::format("task graph on {}: {}", device, message), reason,
                    has_said ? how.error_code : 0, has_said ? values : std::array<std::uint64_t, 2>{});
  };
  const auto name = [&](std::uint64_t number) { return channels.at(number).name; };
  switch (how.outcome) {
    case Outcome::kFailed:
      raise(Error::Kind::kTask, TaskError::Reason::kFailed,
            fmt::format("a task of '{}' failed with code {} ({}, {})", name(how.error_type), how.error_code,
                        values[0], values[1]));
      break;
    case Outcome::kMisuse:
      if (how.error_code != 0) {
        raise(Error::Kind::kTask, TaskError::Reason::kMisuse,
              fmt::format("a task of '{}' spawned into a channel of another graph", name(how.error_type)));
      }
      raise(Error::Kind::kTask, TaskError::Reason::kMisuse,
            fmt::format("a task of '{0}' spawned into '{1}', which its node does not name: say "
                        "node(...).into(...) with it",
                        name(how.error_type), name(values[0])));
      break;
    case Outcome::kFull:
      raise(Error::Kind::kTask, TaskError::Reason::kFull,
            fmt::format("a task of '{}' spawned into '{}', which was full: its capacity is {}, and {}",
                        name(how.error_type), name(values[0]), channels.at(values[0]).options.capacity,
                        channels.at(values[0]).is_output ? "it is an output" : "its when_full is kFail"));
      break;
    case Outcome::kOutOfMemory:
      raise(Error::Kind::kOutOfMemory, TaskError::Reason::kOutOfMemory,
            fmt::format("a task of '{}' spawned into '{}', which was full, and so was its part of "
                        "memory_bytes ({}): allow more, or a larger capacity",
                        name(how.error_type), name(values[0]), options.memory_bytes));
      break;
    default:
      break;
  }
  throw TaskError(Error::Kind::kTask, fmt::format("task graph on {}: stopped on request", device),
                  TaskError::Reason::kStopped, 0, {});
}

}  // namespace detail

std::string GraphReport::text() const {
  std::string text = fmt::format("{} domains, {:.3f} ms, {} waits, sum {}, at most {} of {} bytes\n", domains,
                                 std::chrono::duration<double, std::milli>(time).count(), waits, sum,
                                 peak_memory_bytes, memory_bound);
  for (const Channel& channel : channels) {
    if (channel.is_output) {
      text += fmt::format("{}: output, {} of {} elements\n", channel.name, channel.elements,
                          channel.options.capacity);
      continue;
    }
    text += fmt::format(
        "{} -> {}: priority {}, capacity {}, {}; {} elements in {} batches, {} full; {} shared, {} spilled, "
        "{} "
        "inline; at most {} waited, {} inline\n",
        channel.name, channel.into.empty() ? "nothing" : fmt::format("{}", fmt::join(channel.into, ", ")),
        channel.options.priority, channel.options.capacity,
        channel.options.when_full == WhenFull::kSpill    ? "spills"
        : channel.options.when_full == WhenFull::kInline ? "inline"
                                                         : "fails",
        channel.elements, channel.batches, channel.full_batches, channel.shared, channel.spilled,
        channel.inlined, channel.peak, channel.peak_inlined);
  }
  return text;
}

}  // namespace esker::tasks
