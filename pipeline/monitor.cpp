// What a run's monitor does.
#include <esker/pipeline/monitor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include <esker/pipeline/error.hpp>

namespace esker::pipeline::detail {

namespace {
constexpr std::chrono::microseconds kSampleEvery{200};

constexpr std::chrono::milliseconds kLongestBetweenLooks{100};

Outcome outcome_of(const SideState& side) {
  return static_cast<Outcome>(side.outcome.word.load_acquire());
}  // [outcome]
std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
}  // namespace

Monitor::Monitor(const Device& device, const Options& options, const Topology& topology,
                 const RunMemory& memory, Doorbell& bell, const Stream& kernel, HostWorkers& workers)
    : device_{device},
      options_{options},
      topology_{topology},
      memory_{memory},
      bell_{bell},
      kernel_{kernel},
      workers_{workers},
      stream_{device.stream()},
      one_{device.pinned<PolledWord>(1, {"the end of a run"})},
      partials_(topology.topics.size()),
      sampler_{topology, memory, stream_} {
  if (!options.trace.empty()) trace_.emplace(options.trace, device.name(), topology, memory);
  for (const TopicFacts& topic : topology.topics)
    nap_ = std::clamp(topic.options.flush_after / 2, std::chrono::microseconds{50}, nap_);
  one_[0].word.store_relaxed(1);
}

void Monitor::start() {
  moved_at_ = sampled_at_ = std::chrono::steady_clock::now();
  if (trace_.has_value()) trace_->mark(kNone, "start", {}, steady_ns());
  thread_ = std::thread([this] { watch(); });
}
void Monitor::request_end() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  ends_.notify_one();
}
void Monitor::stop() {
  if (!thread_.joinable()) return;
  request_end();
  thread_.join();
  report_failures();
  if (!trace_.has_value()) return;
  mark_outcome();
  const std::int64_t now = steady_ns();
  trace_->mark(kNone, "end", {}, now);
  trace_->write(now);
}

void Monitor::watch() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (ends_.wait_for(lock, nap_, [&] { return is_ending_; })) break;
    }
    pass_on_ends();
    flush_old();
    workers_.relieve();
    report_failures();
    take_sample();
    if (options_.hang_after.count() != 0) look_for_hang();
  }
  // The kernel ends next, by itself or because it is told to.
  try {
    do {
      pass_on_ends();
      std::this_thread::yield();
    } while (!kernel_.is_idle());
  } catch (const Error&) {  // it has failed: whoever waits for the run finds that, too
  }
}

void Monitor::pass_on_ends() {
  if (options_.stop.stop_requested()) memory_.host().end(Outcome::kStopped, 0, 0, 0, 0);
  const bool host = outcome_of(memory_.side(Side::kHost)) != Outcome::kRunning;
  const bool device = outcome_of(memory_.side(Side::kDevice)) != Outcome::kRunning;
  if (device) memory_.host().stop->word.store_relaxed(1);
  if (host && !is_told_ && device_.backend() != Backend::kCpu) {
    is_told_ = true;
    device_.copy_async(memory_.device_stop(), one_.data(), sizeof(std::uint64_t), stream_);
  }
  if (host || device) bell_.ring();
}

void Monitor::take_sample() {
  const auto now = std::chrono::steady_clock::now();
  if (!samples_ || now - sampled_at_ < kSampleEvery) return;
  sampled_at_ = now;
  try {
    sampler_.sample(now);
  } catch (const Error&) {  // the device has failed: whoever waits for the run finds that, too
    samples_ = false;
    return;
  }
  if (!trace_.has_value()) return;
  trace_->add(sampler_, steady_ns());
  mark_outcome();
  if (!has_marked_drain_ && memory_.host().drain->word.load_relaxed() != 0) {
    has_marked_drain_ = true;
    trace_->mark(kNone, "drain", {}, steady_ns());
  }
}

void Monitor::mark_outcome() {
  for (const Side which : {Side::kHost, Side::kDevice}) {
    const SideState& side = memory_.side(which);
    const Outcome how = outcome_of(side);
    if (has_marked_outcome_ || how == Outcome::kRunning || how == Outcome::kDone) continue;
    has_marked_outcome_ = true;
    if (how == Outcome::kStopped) {
      trace_->mark(kNone, "stop", {}, steady_ns());
    } else {
      const char* const reason = how == Outcome::kFull     ? "full"
                                 : how == Outcome::kMisuse ? "misuse"
                                                           : "failed";
      trace_->mark(side.stage, "failed",
                   fmt::format(R"("reason":"{}","code":{},"a":{},"b":{})", reason, side.code, side.values[0],
                               side.values[1]),
                   steady_ns());
    }
  }
}

void Monitor::flush_old() {
  const auto now = std::chrono::steady_clock::now();
  for (std::size_t t = 0; t < partials_.size(); ++t) {
    const Topology::TopicEnds& ends = topology_.ends[t];
    if (ends.producers.empty() || ends.has_device_producer || ends.is_in_loop) continue;
    const TopicView& topic = memory_.host().topics[t];
    const std::uint64_t position = topic.tail->word.load_relaxed();
    Partial& partial = partials_[t];
    if ((position & (topic.positions() - 1)) == 0 ||
        position >> topic.shift != partial.position >> topic.shift) {
      partial = {position, now};
    } else if (now - partial.since >= topology_.topics[t].options.flush_after) {
      topic.flush();
      bell_.ring();
    }
  }
}

void Monitor::report_failures() {
  for (const Side side : {Side::kHost, Side::kDevice}) {
    const SideState& state = memory_.side(side);
    std::uint64_t& seen = failures_[static_cast<std::size_t>(side)];
    for (; seen < kMostFailures && state.failed[seen].is_there.load_acquire() == seen + 1;
         ++seen) {  // [failure]
      const FailedFrame& f = state.failed[seen];
      if (trace_.has_value())
        trace_->mark(f.stage, "frame failed",
                     fmt::format(R"("frame":{},"tag":{},"code":{},"a":{},"b":{})", f.frame, f.tag, f.code,
                                 f.values[0], f.values[1]),
                     steady_ns());
      if (options_.on_frame_error)
        options_.on_frame_error(
            {topology_.stages[f.stage].name, f.frame, f.tag, f.code, {f.values[0], f.values[1]}});
    }
  }
}

std::uint64_t Monitor::frames_of(const RunMemory::Snapshot& now, std::uint32_t topic) const {
  const RunView& view =
      topology_.ends[topic].has_device_producer ? memory_.device_addresses() : memory_.host();
  const TopicView& t = view.topics[topic];
  return (now.word(t.tail) + t.positions() - 1) >> t.shift;
}

void Monitor::look_for_hang() {
  // It copies all words of the GPU: several times within hang_after, and not each time.
  const auto time = std::chrono::steady_clock::now();
  if (time - looked_at_ < std::min<std::chrono::milliseconds>(options_.hang_after / 8, kLongestBetweenLooks))
    return;
  looked_at_ = time;
  const RunMemory::Snapshot now = memory_.snapshot(stream_);
  std::uint64_t moved = 0;
  for (std::uint32_t t = 0; t < topology_.topics.size(); ++t) {
    if (!topology_.ends[t].producers.empty()) moved += frames_of(now, t);
  }
  for (std::uint32_t s = 0; s < topology_.stages.size(); ++s) {
    const StageView& stage = memory_.host().stages[s];
    for (std::uint32_t i = 0; i < stage.n_inputs; ++i) moved += now.word(stage.inputs[i].done);
  }
  if (moved != moved_) {
    moved_ = moved;
    moved_at_ = time;
  } else if (time - moved_at_ >= options_.hang_after) {
    moved_at_ = time;
    const std::string report = fmt::format("pipeline on {}: nothing has moved for {} ms\n{}", device_.name(),
                                           options_.hang_after.count(), who_waits(now));
    if (options_.on_hang) {
      options_.on_hang(report);
    } else {
      std::fputs(report.c_str(), stderr);
    }
  }
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
          const std::uint64_t its = now.word(subscriber.inputs[i].done);
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
      const std::uint64_t waiting = frames_of(now, stage.inputs[i].topic) - now.word(stage.inputs[i].done);
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
    text += fmt::format("stage '{}' ({}, {} teams):{}\n", facts.name,
                        facts.side == Side::kHost ? "host" : "device", active, why);
  }
  return text;
}

Report Monitor::report(std::chrono::nanoseconds time) const {
  const RunMemory::Snapshot now = memory_.snapshot(stream_);
  Report report;
  report.time = time;
  report.frame_memory_bytes = memory_.frame_memory_bytes();
  for (const RunView* const view : {&memory_.host(), &memory_.device_addresses()})
    report.failed_frames += now.word(view->failures);
  for (std::uint32_t s = 0; s < topology_.stages.size(); ++s) {
    const StageFacts& facts = topology_.stages[s];
    Report::Stage stage;
    stage.name = facts.name;
    stage.kind = facts.kind;
    stage.side = facts.side;
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
    for (std::size_t i = 0; i < facts.inputs.size(); ++i)
      stage.starved += stage.starved_of.emplace_back(state.starved_ns[i].load_relaxed());
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
    const TopicView& view = memory_.host().topics[t].frames != nullptr ? memory_.host().topics[t]
                                                                       : memory_.device_addresses().topics[t];
    topic.slots = static_cast<std::uint32_t>(view.slots());
    if (!ends.producers.empty()) topic.frames = frames_of(now, t);
    topic.frame_bytes = std::uint64_t{view.capacity} * topology_.topics[t].item_bytes;
    topic.capacity = topic.slots * (ends.crosses() && topic.crossing == Crossing::kBatched ? 2 : 1);
    const Sampler::Fill& fill = sampler_.fill(t);
    topic.samples = fill.samples;
    if (fill.samples != 0)
      topic.fill_mean = static_cast<double>(fill.sum) / static_cast<double>(fill.samples);
    topic.fill_highest = fill.highest;
    for (const std::uint32_t s : ends.subscribers) {
      const StageFacts& facts = topology_.stages[s];
      if (facts.inputs.size() == 1)
        topic.bytes = report.stages[s].items / facts.parts * topology_.topics[t].item_bytes;
    }
    if (view.dropped != nullptr) topic.dropped = now.word(view.dropped);
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

void Monitor::throw_outcome(const Report& report) const {
  std::uint64_t lost = 0;
  for (const Report::Topic& topic : report.topics) lost += topic.lost;
  for (const Side which : {Side::kHost, Side::kDevice}) {
    const SideState& side = memory_.side(which);
    const Outcome how = outcome_of(side);
    if (how == Outcome::kRunning || how == Outcome::kDone) continue;
    const auto raise = [&](PipelineError::Reason reason, const std::string& message) {
      throw PipelineError(
          fmt::format("pipeline on {}: {}; {} frames were not done", device_.name(), message, lost), reason,
          side.code, {side.values[0], side.values[1]});
    };
    const auto stage = [&] { return topology_.stages.at(side.stage).name; };
    const auto topic = [&] { return topology_.topics.at(side.values[0]).options.name; };
    switch (how) {
      case Outcome::kStopped:
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
        raise(PipelineError::Reason::kMisuse,
              side.code == kLoopHasEnded
                  ? fmt::format(
                        "stage '{}' published into '{}' at its end, which is in its own loop, and the loop "
                        "had ended",
                        stage(), topic())
                  : fmt::format("stage '{0}' published into '{1}', which it does not name: say .into({1})",
                                stage(), topic()));
        break;
      default:
        raise(PipelineError::Reason::kFailed, fmt::format("stage '{}' failed with code {} ({}, {})", stage(),
                                                          side.code, side.values[0], side.values[1]));
    }
  }
}

}  // namespace esker::pipeline::detail
