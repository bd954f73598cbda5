// A run's report as text and as JSON.
#include <esker/pipeline/report.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include <esker/device/trace_json.hpp>

namespace esker::pipeline {

namespace {

const char* to_string(StageKind kind) {
  switch (kind) {
    case StageKind::kSource:
      return "source";
    case StageKind::kMap:
      return "map";
    case StageKind::kFrames:
      return "frames";
    case StageKind::kItems:
      return "items";
  }
  return "?";
}
const char* to_string(Side side) { return side == Side::kHost ? "host" : "device"; }
double ms(std::chrono::nanoseconds t) { return std::chrono::duration<double, std::milli>(t).count(); }

double us(std::chrono::nanoseconds t) { return std::chrono::duration<double, std::micro>(t).count(); }

std::string list(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  all.reserve(texts.size());
  for (const std::string& text : texts) all.push_back(json_text(text));
  return fmt::format("[{}]", fmt::join(all, ","));
}
std::string list(const std::vector<std::chrono::nanoseconds>& times) {
  std::vector<std::int64_t> all;
  all.reserve(times.size());
  for (const auto time : times) all.push_back(time.count());
  return fmt::format("[{}]", fmt::join(all, ","));
}
/// " (in 1.2, also 3.4)" of several topics; nothing where there is one, which has all of the time.
std::string causes(const std::vector<std::string>& topics,
                   const std::vector<std::chrono::nanoseconds>& times) {
  if (topics.size() < 2) return {};
  std::vector<std::string> all;
  for (std::size_t i = 0; i < topics.size(); ++i)
    all.push_back(fmt::format("{} {:.3f}", topics[i], ms(times[i])));
  return fmt::format(" ({})", fmt::join(all, ", "));
}
std::string json_of(const Latency& latency) {
  if (latency.frames == 0) return "null";
  std::string text = fmt::format(
      R"({{"unit":"us","count":{},"p50":{:.3f},"p90":{:.3f},"p99":{:.3f},"max":{:.3f},"buckets":[)",
      latency.frames, us(latency.quantile(0.5)), us(latency.quantile(0.9)), us(latency.quantile(0.99)),
      us(latency.max));
  for (std::size_t i = 0; i < latency.buckets.size(); ++i)
    text += fmt::format(R"({}{{"up_to":{:.3f},"count":{}}})", i == 0 ? "" : ",", us(latency.buckets[i].up_to),
                        latency.buckets[i].frames);
  return text + "]}";
}

}  // namespace

std::chrono::nanoseconds Latency::quantile(double part) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(static_cast<double>(frames) * part));
  std::uint64_t seen = 0;
  for (const Bucket& bucket : buckets) {
    seen += bucket.frames;
    if (seen >= wanted) return std::min(bucket.up_to, max);
  }
  return max;
}

std::string Report::text() const {
  std::string text = fmt::format("{:.3f} ms, {} frames failed, {} bytes of frames\n", ms(time), failed_frames,
                                 frame_memory_bytes);
  for (const Stage& s : stages) {
    text += fmt::format(
        "{} ({} on the {}, {} teams): {} frames, {} items; busy {:.3f} ms, blocked {:.3f}{}, starved "
        "{:.3f}{}",
        s.name, to_string(s.kind), s.on, s.teams, s.frames, s.items, ms(s.busy), ms(s.blocked),
        causes(s.outputs, s.blocked_by), ms(s.starved), causes(s.inputs, s.starved_of));
    if (s.skipped != 0) text += fmt::format("; {} skipped", s.skipped);
    if (s.teams_at_end != s.teams) text += fmt::format("; {} teams at the end", s.teams_at_end);
    if (s.latency.frames != 0)
      text += fmt::format("; latency {:.3f} ms (p50), {:.3f} (p90), {:.3f} (p99), {:.3f} (max)",
                          ms(s.latency.quantile(0.5)), ms(s.latency.quantile(0.9)),
                          ms(s.latency.quantile(0.99)), ms(s.latency.max));
    text += '\n';
  }
  for (const Topic& t : topics) {
    text += fmt::format("topic {} ({} slots{}): {} frames", t.name, t.slots,
                        t.crosses ? fmt::format(", {}", pipeline::to_string(t.crossing)) : std::string(),
                        t.frames);
    if (t.samples != 0)
      text += fmt::format("; {:.1f} of {} published and not freed (mean), {} at most", t.fill_mean,
                          t.capacity, t.fill_highest);
    if (t.dropped != 0) text += fmt::format(", {} dropped", t.dropped);
    if (t.lost != 0) text += fmt::format(", {} lost", t.lost);
    text += '\n';
  }
  return text;
}

std::string Report::json() const {
  std::string text =
      fmt::format(R"({{"seconds":{:.9f},"failed_frames":{},"frame_memory_bytes":{},"stages":[)",
                  std::chrono::duration<double>(time).count(), failed_frames, frame_memory_bytes);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Stage& s = stages[i];
    text += fmt::format(
        R"({}{{"name":{},"kind":"{}","side":"{}","on":"{}","teams":{},"teams_at_end":{},"inputs":{},"outputs":{},"frames":{},"items":{},"skipped":{},)"
        R"("busy_ns":{},"blocked_ns":{},"blocked_ns_by_output":{},"starved_ns":{},"starved_ns_by_input":{},"latency":{}}})",
        i == 0 ? "" : ",", json_text(s.name), to_string(s.kind), to_string(s.side), s.on, s.teams,
        s.teams_at_end, list(s.inputs), list(s.outputs), s.frames, s.items, s.skipped, s.busy.count(),
        s.blocked.count(), list(s.blocked_by), s.starved.count(), list(s.starved_of), json_of(s.latency));
  }
  text += R"(],"topics":[)";
  for (std::size_t i = 0; i < topics.size(); ++i) {
    const Topic& t = topics[i];
    const std::string fill =
        fmt::format(R"({{"samples":{},"mean":{:.3f},"highest":{}}})", t.samples, t.fill_mean, t.fill_highest);
    text += fmt::format(
        R"({}{{"name":{},"crossing":"{}","crosses":{},"slots":{},"capacity":{},"frame_bytes":{},"frames":{},"bytes":{},)"
        R"("dropped":{},"lost":{},"fill":{}}})",
        i == 0 ? "" : ",", json_text(t.name), pipeline::to_string(t.crossing), t.crosses, t.slots, t.capacity,
        t.frame_bytes, t.frames, t.bytes != 0 || t.frames == 0 ? std::to_string(t.bytes) : "null", t.dropped,
        t.lost, t.samples == 0 ? "null" : fill);
  }
  return text + "]}";
}

}  // namespace esker::pipeline
