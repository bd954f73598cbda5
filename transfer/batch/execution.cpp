// Copies and kernels of a batch, put on streams at their times.
#include <esker/transfer/batch/execution.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

namespace esker::transfer {

namespace {

using Clock = std::chrono::steady_clock;

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }
std::chrono::nanoseconds nanoseconds(double s) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(s * 1e9));
}

/// Where one leg, or one kernel, begins and ends. Its marks exist before the clock starts.
struct Span {
  std::size_t device = 0;
  const Stream* stream = nullptr;
  std::vector<Event> marks;  // two; none: there is no such kernel
  bool is_started = false;
};

/// Sleeps but for the last moment, since who sleeps wakes some microseconds late.
void wait_until(Clock::time_point when) {
  std::this_thread::sleep_until(when - std::chrono::microseconds(30));
  while (Clock::now() < when) std::this_thread::yield();
}

}  // namespace

const Stream& BatchExecution::stream_of(std::size_t use, std::size_t device) {
  const std::pair<std::size_t, std::size_t> key{use, device};
  const auto found = streams_.find(key);
  return found != streams_.end() ? found->second
                                 : streams_.emplace(key, devices_[device].stream()).first->second;
}

Clock::time_point BatchExecution::run(const Batch& batch, const Timeline& schedule, BatchReport* report) {
  // Memory for staged copies, before the clock starts.
  std::vector<std::size_t> stage_of(batch.size(), 0);
  std::size_t staged = 0;
  std::vector<std::uint32_t> second_of(schedule.legs.size(), Leg::kNone);
  for (std::uint32_t id = 0; id < schedule.legs.size(); ++id) {
    const Leg& leg = schedule.legs[id];
    if (leg.source == Leg::kNone) continue;
    second_of[leg.source] = id;
    stage_of[leg.stream] = staged;
    staged += (batch[leg.stream].bytes + 255) / 256 * 256;
  }
  if (staged > stage_.size())
    stage_ = devices_[0].pinned<std::byte>(staged, {"memory for staged copies", false});

  std::vector<Span> legs(schedule.legs.size()), kernels(batch.size());
  std::vector<std::vector<Event>> pieces(schedule.legs.size());   // of first halves: each in host memory
  std::vector<std::uint32_t> last_leg(batch.size(), Leg::kNone);  // whose end is that of the stream's copy
  std::vector<std::size_t> next(schedule.sequences.size(), 0);
  std::vector<bool> is_started(schedule.sequences.size(), false),
      has_kernels(schedule.sequences.size(), false);
  const auto prepare = [&](Span& span, std::size_t use, std::size_t device) {
    span.device = device;
    span.stream = &stream_of(use, device);
    for (int mark = 0; mark < 2; ++mark) span.marks.push_back(devices_[device].event());
  };
  const auto begin_span = [](Span& span) {
    span.is_started = true;
    span.stream->record(span.marks[0]);
  };
  const auto start_leg = [&](std::uint32_t id) {
    const Leg& leg = schedule.legs[id];
    const CommandStream& command = batch[leg.stream];
    const std::size_t device = legs[id].device;
    const Stream& stream = *legs[id].stream;
    const bool is_first = second_of[id] != Leg::kNone, is_second = leg.source != Leg::kNone;
    std::byte* const stage = is_first || is_second ? stage_.data() + stage_of[leg.stream] : nullptr;
    auto* const to = is_first ? stage : static_cast<std::byte*>(command.destination);
    const auto* const from = is_second ? stage : static_cast<const std::byte*>(command.source);
    const std::size_t piece = stage != nullptr    ? static_cast<std::size_t>(kStageBytes)
                              : piece_bytes_ != 0 ? piece_bytes_
                                                  : command.bytes;
    begin_span(legs[id]);
    for (std::size_t at = 0, i = 0; at < command.bytes; at += piece, ++i) {
      if (is_second) stream.wait(pieces[leg.source][i]);
      devices_[device].copy_async(to + at, from + at, std::min(piece, command.bytes - at), stream);
      if (is_first) stream.record(pieces[id][i]);
    }
    stream.record(legs[id].marks[1]);
  };
  /// As much of the sequences that have begun as waits for nothing that is not yet on a stream.
  const auto start_what_can = [&] {
    for (bool has_more = true; has_more;) {
      has_more = false;
      for (std::size_t s = 0; s < schedule.sequences.size(); ++s) {
        const Sequence& sequence = schedule.sequences[s];
        if (!is_started[s]) continue;
        for (; next[s] < sequence.legs.size(); ++next[s]) {
          const std::uint32_t source = schedule.legs[sequence.legs[next[s]]].source;
          if (source != Leg::kNone && !legs[source].is_started) break;
          start_leg(sequence.legs[next[s]]);
          has_more = true;
        }
        if (next[s] < sequence.legs.size() || has_kernels[s]) continue;
        has_kernels[s] = true;
        const Span* before = nullptr;
        for (const std::uint32_t id : sequence.kernels) {
          const Stream& stream = *kernels[id].stream;
          // One after the other, as the schedule has them, also on devices that differ.
          if (before != nullptr && before->stream != &stream) stream.wait(before->marks[1]);
          before = &kernels[id];
          if (const std::uint32_t leg = last_leg[id]; leg != Leg::kNone && legs[leg].stream != &stream)
            stream.wait(legs[leg].marks[1]);
          begin_span(kernels[id]);
          batch[id].kernel(devices_[kernels[id].device], stream);
          stream.record(kernels[id].marks[1]);
        }
      }
    }
  };

  std::vector<std::size_t> order(schedule.sequences.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return schedule.sequences[a].begin_s < schedule.sequences[b].begin_s;
  });
  // Each device's clock, beside the host's.
  std::vector<Event> begins;
  std::vector<double> offsets;
  for (std::size_t s = 0; s < schedule.sequences.size(); ++s) {
    for (const std::uint32_t id : schedule.sequences[s].legs) {
      const Leg& leg = schedule.legs[id];
      const CommandStream& command = batch[leg.stream];
      const bool leaves = leg.source == Leg::kNone && command.from != kHost;
      prepare(legs[id], leaves ? kOut : kIn, static_cast<std::size_t>(leaves ? command.from : command.to));
      if (second_of[id] == Leg::kNone) {
        last_leg[leg.stream] = id;
        continue;
      }
      for (std::size_t at = 0; at < command.bytes; at += static_cast<std::size_t>(kStageBytes))
        pieces[id].push_back(devices_[legs[id].device].event());
    }
    for (const std::uint32_t id : schedule.sequences[s].kernels) {
      const auto device = static_cast<std::size_t>(batch[id].to);
      const std::uint32_t leg = last_leg[id];
      const bool follows = leg != Leg::kNone && legs[leg].stream == &stream_of(kIn, device);
      prepare(kernels[id], follows ? kIn : kOther + s, device);
    }
  }
  for (const Device& device : devices_) begins.push_back(device.event());
  const Clock::time_point start = Clock::now();
  std::vector<bool> has_begin(devices_.size(), false);
  offsets.assign(devices_.size(), 0);
  for (const auto& [key, stream] : streams_) {
    if (has_begin[key.second]) continue;
    has_begin[key.second] = true;
    offsets[key.second] = seconds(Clock::now() - start);
    stream.record(begins[key.second]);
  }
  try {
    for (const std::size_t s : order) {
      wait_until(start + nanoseconds(schedule.sequences[s].begin_s));
      is_started[s] = true;
      start_what_can();
    }
  } catch (...) {
    // What has been started uses the caller's memory, and events of this call.
    for (const auto& [key, stream] : streams_) stream.synchronize();
    throw;
  }
  for (const auto& [key, stream] : streams_) stream.synchronize();

  const auto time_of = [&](const Span& span, std::size_t mark) {
    return offsets[span.device] + seconds(span.marks[mark].elapsed_since(begins[span.device]));
  };
  report->measured.assign(batch.size(), {});
  for (std::uint32_t id = 0; id < legs.size(); ++id) {
    StreamTimes& times = report->measured[schedule.legs[id].stream];
    if (schedule.legs[id].source == Leg::kNone) times.copy_begin_s = time_of(legs[id], 0);
    times.copy_end_s = time_of(legs[id], 1);
    times.end_s = std::max(times.end_s, times.copy_end_s);
  }
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (kernels[i].marks.empty()) continue;
    StreamTimes& times = report->measured[i];
    times.kernel_begin_s = time_of(kernels[i], 0);
    times.kernel_end_s = time_of(kernels[i], 1);
    times.end_s = std::max(times.end_s, times.kernel_end_s);
  }
  for (const StreamTimes& times : report->measured)
    report->makespan_s = std::max(report->makespan_s, times.end_s);
  return start;
}

}  // namespace esker::transfer
