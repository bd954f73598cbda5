// Copies and kernels of a batch, put on streams at their times.
#include <esker/transfer/batch/execution.hpp>

#include <algorithm>
#include <chrono>
#include <numeric>
#include <thread>

namespace esker::transfer {

namespace {

using Clock = std::chrono::steady_clock;

/// Sequences that begin so close together begin at the same time: the host cannot tell them apart.
constexpr double kAtOnce = 2e-6;
/// Of a lead-in. On a GPU it takes 5 us, the calls for the first copy 2 to 4.
constexpr std::size_t kLeadInBytes = 96 << 10;

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }
std::chrono::nanoseconds nanoseconds(double s) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(s * 1e9));
}

/// Sleeps but for the last moment, since who sleeps wakes some microseconds late.
void wait_until(Clock::time_point when) {
  std::this_thread::sleep_until(when - std::chrono::microseconds(30));
  while (Clock::now() < when) std::this_thread::yield();
}

}  // namespace

void BatchExecution::synchronize() const {
  for (const auto& [key, stream] : streams_) stream.synchronize();
}

const Stream& BatchExecution::stream_of(std::size_t use, std::size_t device) {
  const std::pair<std::size_t, std::size_t> key{use, device};
  const auto found = streams_.find(key);
  return found != streams_.end() ? found->second
                                 : streams_.emplace(key, devices_[device].stream()).first->second;
}

Event BatchExecution::take_event(std::size_t device) {
  std::vector<Event>& events = events_[device];
  if (events.empty()) return devices_[device].event();
  Event event = std::move(events.back());
  events.pop_back();
  return event;
}

std::size_t BatchExecution::lead_in_bytes(std::size_t device) const {
  switch (devices_[device].backend()) {
    case Backend::kCpu:
      return 0;  // a copy begins with its call
    case Backend::kSimulated:
      return 64;  // its copies may be slow
    default:
      return kLeadInBytes;
  }
}

std::byte* BatchExecution::lead_in_at(std::int32_t place) {
  if (place == kHost) {
    if (!lead_in_host_) lead_in_host_ = devices_[0].pinned<std::byte>(kLeadInBytes, {"memory for lead-ins"});
    return lead_in_host_->data();
  }
  auto& at = lead_in_[static_cast<std::size_t>(place)];
  if (!at)
    at = devices_[static_cast<std::size_t>(place)].memory<std::byte>(kLeadInBytes, {"memory for lead-ins"});
  return at->data();
}

BatchRun::BatchRun(BatchExecution& execution, const Batch& batch, const Timeline& schedule)
    : execution_{execution},
      batch_{batch},
      schedule_{schedule},
      order_(schedule.sequences.size()),
      legs_(schedule.legs.size()),
      kernels_(batch.size()),
      pieces_(schedule.legs.size()),
      second_of_(schedule.legs.size(), Leg::kNone),
      last_leg_(batch.size(), Leg::kNone),
      stage_of_(batch.size(), 0),
      next_(schedule.sequences.size(), 0),
      is_started_(schedule.sequences.size(), false),
      has_kernels_(schedule.sequences.size(), false),
      device_begins_(execution.devices_.size(), nullptr),
      offsets_(execution.devices_.size(), 0) {
  std::iota(order_.begin(), order_.end(), 0u);
  std::stable_sort(order_.begin(), order_.end(), [&](std::uint32_t a, std::uint32_t b) {
    return schedule.sequences[a].begin_s < schedule.sequences[b].begin_s;
  });
  if (!order_.empty()) first_s_ = schedule.sequences[order_[0]].begin_s;
  for (std::uint32_t id = 0; id < schedule.legs.size(); ++id) {
    const Leg& leg = schedule.legs[id];
    if (leg.source == Leg::kNone) continue;
    second_of_[leg.source] = id;
    stage_of_[leg.stream] = staged_bytes_;
    staged_bytes_ += (batch[leg.stream].bytes + 255) / 256 * 256;
  }
  for (std::uint32_t s = 0; s < schedule.sequences.size(); ++s) {
    for (const std::uint32_t id : schedule.sequences[s].legs) {
      const Leg& leg = schedule.legs[id];
      const CommandStream& command = batch[leg.stream];
      const bool leaves = leg.source == Leg::kNone && command.from != kHost;
      prepare(legs_[id], leaves ? BatchExecution::kOut : BatchExecution::kIn,
              static_cast<std::size_t>(leaves ? command.from : command.to));
      if (second_of_[id] == Leg::kNone) {
        last_leg_[leg.stream] = id;
        continue;
      }
      for (std::size_t at = 0; at < command.bytes; at += static_cast<std::size_t>(kStageBytes))
        pieces_[id].push_back(execution.take_event(legs_[id].device));
    }
    for (const std::uint32_t id : schedule.sequences[s].kernels) {
      const auto device = static_cast<std::size_t>(batch[id].to);
      const std::uint32_t leg = last_leg_[id];
      const bool follows =
          leg != Leg::kNone && legs_[leg].stream == &execution.stream_of(BatchExecution::kIn, device);
      prepare(kernels_[id], follows ? BatchExecution::kIn : BatchExecution::kOther + s, device);
    }
  }
}

BatchRun::~BatchRun() {
  for (std::vector<Span>* spans : {&legs_, &kernels_}) {
    for (Span& span : *spans) {
      for (Event& mark : span.marks) execution_.give_event(span.device, std::move(mark));
    }
  }
  for (std::size_t id = 0; id < pieces_.size(); ++id) {
    for (Event& piece : pieces_[id]) execution_.give_event(legs_[id].device, std::move(piece));
  }
}

void BatchRun::prepare(Span& span, std::size_t use, std::size_t device) {
  span.device = device;
  span.stream = &execution_.stream_of(use, device);
  for (int mark = 0; mark < 2; ++mark) span.marks.push_back(execution_.take_event(device));
}

bool BatchRun::may_start_behind() const {
  const std::vector<Device>& devices = execution_.devices_;
  if (devices[0].backend() == Backend::kCpu || staged_bytes_ != 0) return false;
  const auto is_first_copy = [&](std::uint32_t s) {
    return is_at_once(s) && !schedule_.sequences[s].legs.empty();
  };
  if (std::none_of(order_.begin(), order_.end(), is_first_copy)) return false;
  // The host copies pageable memory itself, at the call.
  return std::all_of(batch_.begin(), batch_.end(), [&](const CommandStream& command) {
    if (command.bytes == 0 || (command.from != kHost && command.to != kHost)) return true;
    const void* const at = command.from == kHost ? command.source : command.destination;
    const std::int32_t device = command.from == kHost ? command.to : command.from;
    return devices[static_cast<std::size_t>(device)].range_of(at).place == MemoryPlace::kPinned;
  });
}

bool BatchRun::is_at_once(std::uint32_t sequence) const {
  return schedule_.sequences[sequence].begin_s <= first_s_ + kAtOnce;
}

/// What comes first on its stream comes after the begin of the batch, which the first mark of all is.
void BatchRun::begin_span(Span& span) {
  const Stream& stream = *span.stream;
  span.is_started = true;
  if (begin_mark_ == nullptr) {
    begin_mark_ = &span.marks[0];
    if (before_ != nullptr) {
      for (const auto& [other, end] : before_->ends_) {
        if (other != &stream) stream.wait(*end);
      }
    }
    behind_begin_.insert(&stream);
  } else if (behind_begin_.insert(&stream).second) {
    stream.wait(*begin_mark_);
  }
  if (device_begins_[span.device] == nullptr) {
    device_begins_[span.device] = &span.marks[0];
    const bool is_begin = begin_mark_ == &span.marks[0] || before_ != nullptr;
    offsets_[span.device] = first_s_ + (is_begin ? 0 : seconds(Clock::now() - begin_));
  }
  stream.record(span.marks[0]);
}

void BatchRun::end_span(const Span& span) {
  span.stream->record(span.marks[1]);
  ends_[span.stream] = &span.marks[1];
}

void BatchRun::start_leg(std::uint32_t id) {
  const Leg& leg = schedule_.legs[id];
  const CommandStream& command = batch_[leg.stream];
  const std::size_t device = legs_[id].device;
  const Stream& stream = *legs_[id].stream;
  const bool is_first = second_of_[id] != Leg::kNone, is_second = leg.source != Leg::kNone;
  std::byte* const stage = is_first || is_second ? execution_.stage_.data() + stage_of_[leg.stream] : nullptr;
  auto* const to = is_first ? stage : static_cast<std::byte*>(command.destination);
  const auto* const from = is_second ? stage : static_cast<const std::byte*>(command.source);
  const std::size_t piece = stage != nullptr               ? static_cast<std::size_t>(kStageBytes)
                            : execution_.piece_bytes_ != 0 ? execution_.piece_bytes_
                                                           : command.bytes;
  begin_span(legs_[id]);
  for (std::size_t at = 0, i = 0; at < command.bytes; at += piece, ++i) {
    if (is_second) stream.wait(pieces_[leg.source][i]);
    execution_.devices_[device].copy_async(to + at, from + at, std::min(piece, command.bytes - at), stream);
    if (is_first) stream.record(pieces_[id][i]);
  }
  end_span(legs_[id]);
}

void BatchRun::start_kernels(std::uint32_t sequence) {
  const Span* before = nullptr;
  for (const std::uint32_t id : schedule_.sequences[sequence].kernels) {
    Span& span = kernels_[id];
    // One after the other, as the schedule has them, also on devices that differ.
    if (before != nullptr && before->stream != span.stream) span.stream->wait(before->marks[1]);
    before = &span;
    if (const std::uint32_t leg = last_leg_[id]; leg != Leg::kNone && legs_[leg].stream != span.stream)
      span.stream->wait(legs_[leg].marks[1]);
    begin_span(span);
    batch_[id].kernel(execution_.devices_[span.device], *span.stream);
    end_span(span);
  }
}

void BatchRun::start_what_can() {
  for (bool has_more = true; has_more;) {
    has_more = false;
    for (std::uint32_t s = 0; s < schedule_.sequences.size(); ++s) {
      const std::vector<std::uint32_t>& legs = schedule_.sequences[s].legs;
      if (!is_started_[s]) continue;
      for (; next_[s] < legs.size(); ++next_[s]) {
        const std::uint32_t source = schedule_.legs[legs[next_[s]]].source;
        if (source != Leg::kNone && !legs_[source].is_started) break;
        start_leg(legs[next_[s]]);
        has_more = true;
      }
      // A kernel is called when what was before the batch has ended: its caller may rely on it.
      if (next_[s] < legs.size() || has_kernels_[s] || before_ != nullptr) continue;
      has_kernels_[s] = true;
      start_kernels(s);
    }
  }
}

void BatchRun::start_behind(const BatchRun& before) {
  before_ = &before;
  for (const std::uint32_t s : order_) is_started_[s] = is_at_once(s) && !schedule_.sequences[s].legs.empty();
  start_what_can();
  before_ = nullptr;
}

void BatchRun::lead_in() {
  if (order_.empty() || schedule_.sequences[order_[0]].legs.empty()) return;
  const std::uint32_t id = schedule_.sequences[order_[0]].legs[0];
  const CommandStream& command = batch_[schedule_.legs[id].stream];
  const std::size_t bytes = execution_.lead_in_bytes(legs_[id].device);
  if (bytes == 0) return;
  // A staged copy's halves are to and from the host.
  const bool is_first = second_of_[id] != Leg::kNone, is_second = schedule_.legs[id].source != Leg::kNone;
  std::byte* const to = execution_.lead_in_at(is_first ? kHost : command.to);
  const std::byte* const from = execution_.lead_in_at(is_second ? kHost : command.from);
  execution_.devices_[legs_[id].device].copy_async(to, from, bytes, *legs_[id].stream);
}

void BatchRun::start() {
  try {
    if (staged_bytes_ > execution_.stage_.size())
      execution_.stage_ =
          execution_.devices_[0].pinned<std::byte>(staged_bytes_, {"memory for staged copies", false});
    if (begin_mark_ == nullptr) lead_in();
    begin_ = Clock::now();
    bool has_clock = false;
    for (const std::uint32_t s : order_) {
      if (!is_at_once(s)) {
        // From here on by the host's clock.
        if (!has_clock && begin_mark_ != nullptr) {
          begin_mark_->synchronize();
          begin_ = Clock::now();
        }
        has_clock = true;
        wait_until(begin_ + nanoseconds(schedule_.sequences[s].begin_s - first_s_));
      }
      is_started_[s] = true;
      start_what_can();
    }
  } catch (...) {
    // What has been started uses the caller's memory, and events of this batch.
    execution_.synchronize();
    throw;
  }
}

void BatchRun::finish(BatchReport* report) const {
  for (const auto& [stream, end] : ends_) end->synchronize();
  const auto time_of = [&](const Span& span, std::size_t mark) {
    const Event &at = span.marks[mark], &device_begin = *device_begins_[span.device];
    return offsets_[span.device] + (&at == &device_begin ? 0 : seconds(at.elapsed_since(device_begin)));
  };
  report->measured.assign(batch_.size(), {});
  report->makespan_s = 0;
  for (std::uint32_t id = 0; id < legs_.size(); ++id) {
    StreamTimes& times = report->measured[schedule_.legs[id].stream];
    if (schedule_.legs[id].source == Leg::kNone) times.copy_begin_s = time_of(legs_[id], 0);
    times.copy_end_s = time_of(legs_[id], 1);
    times.end_s = std::max(times.end_s, times.copy_end_s);
  }
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].marks.empty()) continue;
    StreamTimes& times = report->measured[i];
    times.kernel_begin_s = time_of(kernels_[i], 0);
    times.kernel_end_s = time_of(kernels_[i], 1);
    times.end_s = std::max(times.end_s, times.kernel_end_s);
  }
  for (const StreamTimes& times : report->measured)
    report->makespan_s = std::max(report->makespan_s, times.end_s);
}

}  // namespace esker::transfer
