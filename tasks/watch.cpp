// What a run kept of itself, for the host: as a list, and as a trace.
#include <esker/tasks/watch.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace esker::tasks {

namespace detail {

Watched watched_in(const Watch::Memory& memory) {
  Watched watched;
  const std::uint64_t ended = memory.spans.load_relaxed();
  const auto kept = static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(ended, Watch::kMostSpans));
  watched.spans.assign(memory.kept, memory.kept + kept);
  watched.spans_dropped = ended - static_cast<std::uint64_t>(kept);
  std::sort(watched.spans.begin(), watched.spans.end(),
            [](const Span& a, const Span& b) { return a.ended_ns < b.ended_ns; });
  for (std::uint32_t channel = 0; channel < Watch::kChannels; ++channel) {
    for (std::uint32_t level = 0; level < Watch::kLevels; ++level) {
      const auto& counts = memory.counts[channel][level];
      const LevelCounts found{channel, level == 0 ? 0 : 1u << (level - 1), counts[0].load_relaxed(),
                              counts[1].load_relaxed(), counts[2].load_relaxed()};
      if (found.tasks != 0) watched.levels.push_back(found);
    }
    const std::uint64_t given = memory.given[channel].load_relaxed();
    if (given != 0) {
      watched.given.resize(channel + 1);
      watched.given[channel] = given;
    }
  }
  return watched;
}

}  // namespace detail

std::string trace_json(const Watched& watched) {
  std::uint64_t first = ~std::uint64_t{0};
  for (const Span& span : watched.spans) first = std::min(first, span.began_ns);
  std::string text = fmt::format(
      "{{\"otherData\":{{\"spans_dropped\":{}}},\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
      "{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"tid\":0,\"args\":{{\"name\":\"domains\"}}}}",
      watched.spans_dropped);
  for (const Span& span : watched.spans) {
    text += fmt::format(
        ",\n{{\"ph\":\"X\",\"name\":\"work\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},"
        "\"args\":{{\"tasks\":{}}}}}",
        span.domain + 1, static_cast<double>(span.began_ns - first) / 1e3,
        static_cast<double>(span.ended_ns - span.began_ns) / 1e3, span.tasks);
  }
  return text + "\n]}\n";
}

}  // namespace esker::tasks
