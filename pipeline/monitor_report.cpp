// What a run's monitor says of it: who waits for whom, its report, and how it ended.
#include <fmt/format.h>

#include <algorithm>

#include <esker/pipeline/error.hpp>
#include <esker/pipeline/monitor.hpp>

namespace esker::pipeline::detail {

std::uint64_t Monitor::frames_of(const RunMemory::Snapshot& now, std::uint32_t topic) const {
  const TopicView& t = memory_.view(topology_.ends[topic].from).topics[topic];
  return (now.word(t.tail) + t.positions() - 1) >> t.shift;
}

std::uint64_t Monitor::dropped(const RunMemory::Snapshot& now, std::uint32_t topic) const {
  const PolledWord* const word = memory_.view(topology_.ends[topic].from).topics[topic].dropped;
  return word == nullptr ? 0 : now.word(word);
}

std::string Monitor::who_waits(const RunMemory::Snapshot& now) const {
  std::string text;
  for (std::uint32_t s = 0; s < topology_.stages.size(); ++s) {
    const StageFacts& facts = topology_.stages[s];
    const StageView& stage = memory_.host().stages[s];
    std::string why;
    for (const std::uint32_t t : facts.outputs) {
      std::uint64_t done = ~std::uint64_t{0};
      std::string slowest;
      for (const std::uint32_t to : topology_.ends[t].subscribers) {
        const StageView& subscriber = memory_.host().stages[to];
        for (std::uint32_t i = 0; i < subscriber.n_inputs; ++i) {
          if (subscriber.inputs[i].topic != t) continue;
          const std::uint64_t its = now.word(subscriber.inputs[i].done) + dropped(now, t);
          if (its < done) slowest = topology_.stages[to].name;
          done = std::min(done, its);
        }
      }
      if (frames_of(now, t) > done + memory_.host().topics[t].slots() ||
          (facts.kind != StageKind::kMap && frames_of(now, t) == done + memory_.host().topics[t].slots()))
        why += fmt::format(" '{}' is full, and '{}' has done {} of its {} frames;",
                           topology_.topics[t].options.name, slowest, done, frames_of(now, t));
    }
    bool has_input = facts.kind == StageKind::kSource;
    for (std::uint32_t i = 0; i < stage.n_inputs; ++i) {
      const std::uint64_t waiting = frames_of(now, stage.inputs[i].topic) -
                                    dropped(now, stage.inputs[i].topic) - now.word(stage.inputs[i].done);
      if (waiting == 0) continue;
      has_input = true;
      why += fmt::format(" {} frames of '{}' are not done;", waiting,
                         topology_.topics[stage.inputs[i].topic].options.name);
    }
    const StageState& state = now.stage(memory_.host().states[s]);
    const std::uint64_t active = state.active.word.load_relaxed();
    if (active == 0) {
      why = " it has ended";
    } else if (!has_input) {
      why += " it has no input";
    } else if (facts.kind == StageKind::kSource) {
      why += " its function has not ended";
    }
    text +=
        fmt::format("stage '{}' ({}, {} teams):{}\n", facts.name, topology_.name_of(facts.side), active, why);
  }
  return text;
}

Report Monitor::report(std::chrono::nanoseconds time) const {
  const RunMemory::Snapshot now = memory_.snapshot();
  Report report;
  report.time = time;
  report.frame_memory_bytes = memory_.frame_memory_bytes();
  for (std::uint32_t side = 0; side < memory_.sides(); ++side)
    report.failed_frames += now.word(memory_.view(side).failures);
  for (std::uint32_t s = 0; s < topology_.stages.size(); ++s) {
    const StageFacts& facts = topology_.stages[s];
    Report::Stage stage;
    stage.name = facts.name;
    stage.kind = facts.kind;
    stage.side = facts.side == kHostSide ? Side::kHost : Side::kDevice;
    stage.on = topology_.name_of(facts.side);
    for (const std::uint32_t t : facts.inputs) stage.inputs.push_back(topology_.topics[t].options.name);
    for (const std::uint32_t t : facts.outputs) stage.outputs.push_back(topology_.topics[t].options.name);
    const StageState& state = now.stage(memory_.host().states[s]);
    const auto count = [&](StageCount what) { return state.counts[what].load_relaxed(); };
    stage.teams = memory_.teams(s);
    stage.teams_at_end = static_cast<std::uint32_t>(stage.teams + count(kJoined) - count(kLeft));
    stage.frames = count(kFrames);
    stage.items = count(kItems);
    stage.skipped = count(kSkipped);
    stage.busy = std::chrono::nanoseconds{count(kBusyNs)};
    const StageView& view = memory_.host().stages[s];  // whose inputs may stand in another order
    for (const std::uint32_t t : facts.inputs) {
      std::uint32_t i = 0;
      while (view.inputs[i].topic != t) ++i;
      stage.starved += stage.starved_of.emplace_back(state.starved_ns[i].load_relaxed());
    }
    for (const std::uint32_t t : facts.outputs)
      stage.blocked += stage.blocked_by.emplace_back(state.blocked_ns[t].load_relaxed());
    stage.busy = std::max(stage.busy - stage.blocked, std::chrono::nanoseconds{0});
    stage.latency.max = std::chrono::nanoseconds{state.longest_ns.load_relaxed()};
    for (std::uint32_t b = 0; b < LatencyBuckets::kNumber; ++b) {
      const std::uint64_t frames = state.latencies[b].load_relaxed();
      if (frames == 0) continue;
      stage.latency.frames += frames;
      stage.latency.buckets.push_back({std::chrono::nanoseconds{LatencyBuckets::end(b)}, frames});
    }
    report.stages.push_back(std::move(stage));
  }
  for (std::uint32_t t = 0; t < topology_.topics.size(); ++t) {
    const Topology::TopicEnds& ends = topology_.ends[t];
    Report::Topic topic;
    topic.name = topology_.topics[t].options.name;
    topic.crossing = memory_.crossing(t);
    topic.crosses = ends.crosses();
    const TopicView& view = memory_.view(ends.from).topics[t];
    topic.slots = static_cast<std::uint32_t>(view.slots());
    if (!ends.producers.empty()) topic.frames = frames_of(now, t);
    topic.frame_bytes = std::uint64_t{view.capacity} * topology_.topics[t].item_bytes;
    topic.capacity = topic.slots * sampler_.rings(t);
    const Sampler::Fill& fill = sampler_.fill(t);
    topic.samples = fill.samples;
    if (fill.samples != 0)
      topic.fill_mean = static_cast<double>(fill.sum) / static_cast<double>(fill.samples);
    topic.fill_highest = fill.highest;
    for (const std::uint32_t s : ends.subscribers) {
      const StageFacts& facts = topology_.stages[s];
      if (facts.inputs.size() == 1) topic.bytes = report.stages[s].items * topology_.topics[t].item_bytes;
    }
    topic.dropped = dropped(now, t);
    for (const std::uint32_t s : ends.subscribers) {
      const StageView& stage = memory_.host().stages[s];
      for (std::uint32_t i = 0; i < stage.n_inputs; ++i) {
        if (stage.inputs[i].topic == t)
          topic.lost += topic.frames - topic.dropped - now.word(stage.inputs[i].done);
      }
    }
    report.topics.push_back(std::move(topic));
  }
  return report;
}

bool Monitor::have_all_ended() const {
  const RunMemory::Snapshot now = memory_.snapshot();
  for (std::uint32_t s = 0; s < topology_.stages.size(); ++s) {
    if (now.stage(memory_.host().states[s]).active.word.load_relaxed() != 0) return false;
  }
  return true;
}

std::string Monitor::misuse(const SideState& side) const {
  const std::string& stage = topology_.stages.at(side.stage).name;
  if (side.code == kOtherPipeline)
    return fmt::format("stage '{}' published into topic {} of another pipeline", stage, side.values[0]);
  const TopicFacts& topic = topology_.topics.at(side.values[0]);
  switch (side.code) {
    case kLoopHasEnded:
      return fmt::format(
          "stage '{}' published into '{}' at its end, which is in its own loop, and the loop had ended",
          stage, topic.options.name);
    case kTooManyItems:
      return fmt::format("stage '{}' published a frame of {} items into '{}', whose frames have room for {}",
                         stage, side.values[1], topic.options.name,
                         topic.options.frame_bytes / topic.item_bytes);
    default:
      return fmt::format("stage '{0}' published into '{1}', which it does not name: say .into({1})", stage,
                         topic.options.name);
  }
}

void Monitor::throw_outcome(const Report& report) const {
  std::uint64_t lost = 0;
  for (const Report::Topic& topic : report.topics) lost += topic.lost;
  for (std::uint32_t number = 0; number < memory_.sides(); ++number) {
    const SideState& side = memory_.state(number);
    const Outcome how = side.how();
    if (how == Outcome::kRunning || how == Outcome::kDone) continue;
    const auto raise = [&](PipelineError::Reason reason, const std::string& message) {
      throw PipelineError(fmt::format("pipeline on {}: {}; {} frames were not done", devices_, message, lost),
                          reason, side.code, {side.values[0], side.values[1]});
    };
    const auto stage = [&] { return topology_.stages.at(side.stage).name; };
    const auto topic = [&] { return topology_.topics.at(side.values[0]).options.name; };
    switch (how) {
      case Outcome::kStopped:
        if (lost == 0 && have_all_ended()) break;  // before that
        raise(PipelineError::Reason::kStopped, "stopped on request");
        break;
      case Outcome::kFull:
        raise(PipelineError::Reason::kFull,
              fmt::format("stage '{}' found '{}' full, which is in its own loop, so nobody would make room: "
                          "give it more "
                          "than {} frames",
                          stage(), topic(), topology_.topics.at(side.values[0]).options.frames));
        break;
      case Outcome::kMisuse:
        raise(PipelineError::Reason::kMisuse, misuse(side));
        break;
      default:
        raise(PipelineError::Reason::kFailed, fmt::format("stage '{}' failed with code {} ({}, {})", stage(),
                                                          side.code, side.values[0], side.values[1]));
    }
  }
}

}  // namespace esker::pipeline::detail
