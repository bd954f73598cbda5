// A run's report as text and as JSON.
#include <esker/pipeline/report.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <numeric>

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

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  return out + '"';
}
std::string quoted(const std::vector<std::string>& texts) {
  std::vector<std::string> all;
  for (const std::string& text : texts) all.push_back(quoted(text));
  return fmt::format("[{}]", fmt::join(all, ","));
}

}  // namespace

std::chrono::nanoseconds Report::Stage::latency(double part) const {
  const std::uint64_t all = std::accumulate(latencies.begin(), latencies.end(), std::uint64_t{0});
  const auto wanted = static_cast<std::uint64_t>(std::ceil(static_cast<double>(all) * part));
  std::uint64_t seen = 0;
  for (std::size_t b = 0; b < latencies.size(); ++b) {
    seen += latencies[b];
    if (all != 0 && seen >= wanted) return std::chrono::nanoseconds{std::int64_t{1} << (b + 1)};
  }
  return {};
}

std::string Report::text() const {
  std::string text = fmt::format("{:.3f} ms, {} frames failed, {} bytes of frames\n", ms(time), failed_frames,
                                 frame_memory_bytes);
  for (const Stage& s : stages) {
    text += fmt::format(
        "{} ({} on the {}, {} teams): {} frames, {} items; busy {:.3f} ms, blocked {:.3f}, starved {:.3f}",
        s.name, to_string(s.kind), to_string(s.side), s.teams, s.frames, s.items, ms(s.busy), ms(s.blocked),
        ms(s.starved));
    if (s.skipped != 0) text += fmt::format("; {} skipped", s.skipped);
    if (s.teams_at_end != s.teams) text += fmt::format("; {} teams at the end", s.teams_at_end);
    if (s.latency(1).count() != 0)
      text += fmt::format("; latency within {:.3f} ms (half), {:.3f} (99 %)", ms(s.latency(0.5)),
                          ms(s.latency(0.99)));
    text += '\n';
  }
  for (const Topic& t : topics) {
    text += fmt::format("topic {} ({} slots{}): {} frames", t.name, t.slots,
                        t.crosses ? fmt::format(", {}", pipeline::to_string(t.crossing)) : std::string(),
                        t.frames);
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
        R"({}{{"name":{},"kind":"{}","side":"{}","teams":{},"teams_at_end":{},"inputs":{},"outputs":{},"frames":{},"items":{},"skipped":{},)"
        R"("busy_ns":{},"blocked_ns":{},"starved_ns":{},"latencies":[{}]}})",
        i == 0 ? "" : ",", quoted(s.name), to_string(s.kind), to_string(s.side), s.teams, s.teams_at_end,
        quoted(s.inputs), quoted(s.outputs), s.frames, s.items, s.skipped, s.busy.count(), s.blocked.count(),
        s.starved.count(), fmt::join(s.latencies, ","));
  }
  text += R"(],"topics":[)";
  for (std::size_t i = 0; i < topics.size(); ++i) {
    const Topic& t = topics[i];
    text += fmt::format(
        R"({}{{"name":{},"crossing":"{}","crosses":{},"slots":{},"frames":{},"dropped":{},"lost":{}}})",
        i == 0 ? "" : ",", quoted(t.name), pipeline::to_string(t.crossing), t.crosses, t.slots, t.frames,
        t.dropped, t.lost);
  }
  return text + "]}";
}

}  // namespace esker::pipeline
