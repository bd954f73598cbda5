// What a run's monitor does.
#include <esker/pipeline/monitor.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include <esker/error.hpp>

namespace esker::pipeline::detail {

namespace {
constexpr std::chrono::microseconds kSampleEvery{200};
// Each time it takes a core from a stage for tens of microseconds, where there are no more cores than stages.
constexpr std::chrono::microseconds kNapOfHost{500};

constexpr std::chrono::milliseconds kLongestBetweenLooks{100};
// Each time it copies all words of the GPUs.
constexpr std::chrono::microseconds kJudgeEvery{500};

std::int64_t steady_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
}  // namespace

Monitor::Monitor(std::string devices, const Options& options, const Topology& topology,
                 const RunMemory& memory, Doorbell& bell, const std::vector<Stream>& kernels,
                 HostWorkers& workers, bool has_gpu, std::function<void()> on_throw)
    : devices_{std::move(devices)},
      options_{options},
      topology_{topology},
      memory_{memory},
      bell_{bell},
      kernels_{kernels},
      workers_{workers},
      on_throw_{std::move(on_throw)},
      naps_short_{has_gpu || !options.trace.empty()},
      loops_ended_(memory.loops_of_several().size()),
      partials_(topology.topics.size()),
      failures_(memory.sides()),
      sampler_{topology, memory} {
  if (!options.trace.empty()) trace_.emplace(options.trace, devices_, topology, memory);
  for (const TopicFacts& topic : topology.topics)
    nap_ = std::clamp(topic.options.flush_after / 2, std::chrono::microseconds{50}, nap_);
}

void Monitor::start() {
  moved_at_ = sampled_at_ = std::chrono::steady_clock::now();
  for (Partial& partial : partials_) partial.since = moved_at_;
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
Monitor::~Monitor() {
  if (!thread_.joinable()) return;
  request_end();
  thread_.join();
}
void Monitor::close() {
  request_end();
  const std::lock_guard lock(mutex_);
  if (is_closed_) return;
  is_closed_ = true;
  report_failures();
  if (!trace_.has_value()) return;
  mark_outcome();
  const std::int64_t now = steady_ns();
  trace_->mark(kNone, "end", {}, now);
  trace_->write(now);
}

void Monitor::watch() {
  {
    std::unique_lock lock(mutex_);
    while (!ends_.wait_for(lock, naps_short_ ? nap_ : kNapOfHost, [&] { return is_ending_; })) {
      (void)kernels_have_ended();
      pass_on_ends();
      end_loops();
      flush_old();
      workers_.relieve();
      report_failures();
      take_sample();
      if (options_.hang_after.count() != 0) look_for_hang();
    }
  }
  while (!try_end_kernels()) std::this_thread::yield();
}
bool Monitor::try_end_kernels() {
  const std::lock_guard lock(mutex_);
  const bool have_ended = kernels_have_ended();
  pass_on_ends();
  end_loops();
  return have_ended;
}

/// One that has failed ends the run for all sides: they would wait for it. Whoever waits for the run finds
/// why.
bool Monitor::kernels_have_ended() {
  bool have_ended = true;
  for (const Stream& kernel : kernels_) {
    try {
      have_ended = kernel.is_idle() && have_ended;
    } catch (const Error&) {
      memory_.host().end(Outcome::kStopped, 0, 0, 0, 0);
    }
  }
  return have_ended;
}
void Monitor::pass_on_ends() {
  if (options_.stop.stop_requested()) memory_.host().end(Outcome::kStopped, 0, 0, 0, 0);
  bool is_over = false;
  for (std::uint32_t side = 0; side < memory_.sides(); ++side)
    is_over = is_over || memory_.state(side).how() != Outcome::kRunning;
  if (!is_over) return;
  bell_.ring();
  if (are_told_) return;
  are_told_ = true;
  for (std::uint32_t side = 0; side < memory_.sides(); ++side) {
    try {
      memory_.write(memory_.view(side).stop, 1);
    } catch (const Error&) {  // it has failed: whoever waits for the run finds that, too
    }
  }
  bell_.ring();
}

/// What is_judged_here is for the others. Each `finished` is copied before any `created` is.
void Monitor::end_loops() {
  const auto now = std::chrono::steady_clock::now();
  if (loops_ended_.empty() || now - judged_at_ < kJudgeEvery) return;
  judged_at_ = now;
  try {
    std::optional<RunMemory::Snapshot> first, then;
    for (std::size_t l = 0; l < loops_ended_.size(); ++l) {
      const LoopView& loop = memory_.loops_of_several()[l];
      if (loops_ended_[l]) continue;
      then.reset();
      if (!first.has_value()) first = memory_.snapshot();
      std::uint64_t finished[LoopView::kMost];
      const auto read_then = [&](const PolledWord* at) {
        if (!then.has_value()) then = memory_.snapshot();
        return then->word(at);
      };
      if (!loop.has_ended([&](const PolledWord* at) { return first->word(at); }, read_then, finished))
        continue;
      loops_ended_[l] = true;
      for (std::uint32_t i = 0; i < loop.n_inside; ++i) memory_.write(loop.inside[i].end, finished[i]);
      bell_.ring();
    }
  } catch (const Error&) {  // a device has failed: whoever waits for the run finds that, too
    loops_ended_.clear();
  }
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
  for (std::uint32_t number = 0; number < memory_.sides(); ++number) {
    const SideState& side = memory_.state(number);
    const Outcome how = side.how();
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
    // What goes round a loop is flushed by those inside it.
    if (ends.producers.empty() || ends.from != kHostSide || ends.is_in_loop) continue;
    const TopicView& topic = memory_.host().topics[t];
    const std::uint64_t position = topic.tail->word.load_relaxed();
    Partial& partial = partials_[t];
    const bool is_partial = (position & (topic.positions() - 1)) != 0;
    naps_short_ = naps_short_ || is_partial;
    if (!is_partial || position >> topic.shift != partial.position >> topic.shift) {
      partial = {position, now};
    } else if (now - partial.since >= topology_.topics[t].options.flush_after) {
      if (topic.flush()) bell_.ring();
    }
  }
}

/// A function of the user's. What it throws ends the run, and nothing calls one again.
template <class Call>
void Monitor::call_user(const Call& call) {
  if (has_thrown_) return;
  try {
    call();
  } catch (...) {
    has_thrown_ = true;
    on_throw_();
  }
}

void Monitor::report_failures() {
  for (std::uint32_t side = 0; side < memory_.sides(); ++side) {
    SideState& state = memory_.state(side);
    std::uint64_t& seen = failures_[side];
    const auto next = [&]() -> const FailedFrame& { return state.failed[seen % kMostFailures]; };
    for (; next().is_there.load_acquire() == seen + 1;
         state.taken.word.store_release(++seen)) {  // [failure, taken]
      const FailedFrame& f = next();
      if (trace_.has_value())
        trace_->mark(f.stage, "frame failed",
                     fmt::format(R"("frame":{},"tag":{},"code":{},"a":{},"b":{})", f.frame, f.tag, f.code,
                                 f.values[0], f.values[1]),
                     steady_ns());
      if (options_.on_frame_error) {
        call_user([&] {
          options_.on_frame_error(
              {topology_.stages[f.stage].name, f.frame, f.tag, f.code, {f.values[0], f.values[1]}});
        });
      }
    }
  }
}

void Monitor::look_for_hang() {
  // It copies all words of the GPU: several times within hang_after, and not each time.
  const auto time = std::chrono::steady_clock::now();
  if (time - looked_at_ < std::min<std::chrono::milliseconds>(options_.hang_after / 8, kLongestBetweenLooks))
    return;
  looked_at_ = time;
  std::optional<RunMemory::Snapshot> copied;
  try {
    copied = memory_.snapshot();
  } catch (const Error&) {  // the device has failed: whoever waits for the run finds that, too
    return;
  }
  const RunMemory::Snapshot& now = *copied;
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
    const std::string report = fmt::format("pipeline on {}: nothing has moved for {} ms\n{}", devices_,
                                           options_.hang_after.count(), who_waits(now));
    if (options_.on_hang) {
      call_user([&] { options_.on_hang(report); });
    } else {
      std::fputs(report.c_str(), stderr);
    }
  }
}

}  // namespace esker::pipeline::detail
