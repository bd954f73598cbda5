// What a run's trace has, and its file.
#include <esker/pipeline/trace.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>

#include <esker/device/trace_json.hpp>
#include <esker/error.hpp>

namespace esker::pipeline::detail {

namespace {
constexpr std::uint64_t kProcess = 1, kRunTrack = 1;
std::uint64_t track_of(std::uint32_t stage) { return stage == kNone ? kRunTrack : kRunTrack + 1 + stage; }
}  // namespace

Trace::Trace(const std::string& file, const std::string& device, const Topology& topology,
             const RunMemory& memory)
    : path_{file},
      device_{device},
      topology_{topology},
      memory_{memory},
      last_(topology.stages.size()),
      last_fill_(topology.topics.size(), ~std::uint64_t{0}) {
  errno = 0;
  out_.open(path_, std::ios::trunc);
  if (!out_)
    throw Error(
        Error::Kind::kConfiguration,
        fmt::format("pipeline: the trace {} cannot be written: {}; name another file (Options::trace)", path_,
                    std::strerror(errno != 0 ? errno : EIO)));
  for (Change& change : last_) change.activity.what = StageActivity::What::kEnded;  // nothing yet
}

bool Trace::has_space() {
  if (changes_.size() + fills_.size() + marks_.size() < kMostEvents) return true;
  ++dropped_;
  return false;
}

void Trace::add(const Sampler& sampler, std::int64_t now_ns) {
  for (std::uint32_t s = 0; s < last_.size(); ++s) {
    const auto activity = sampler.activity(s);
    if (!activity.has_value() || *activity == last_[s].activity) continue;
    last_[s].activity = *activity;
    if (has_space()) changes_.push_back({now_ns, s, *activity});
  }
  for (std::uint32_t t = 0; t < last_fill_.size(); ++t) {
    const Sampler::Fill& fill = sampler.fill(t);
    if (fill.samples == 0 || fill.now == last_fill_[t]) continue;
    last_fill_[t] = fill.now;
    if (has_space()) fills_.push_back({now_ns, t, fill.now});
  }
}

void Trace::mark(std::uint32_t stage, std::string name, std::string arguments, std::int64_t now_ns) {
  if (has_space()) marks_.push_back({now_ns, stage, std::move(name), std::move(arguments)});
}

void Trace::write(std::int64_t now_ns) noexcept {
  try {
    if (!out_.is_open()) return;
    write_all(now_ns);
    out_.close();
    if (out_) return;
    std::fputs(fmt::format("esker: the trace {} could not be written to its end\n", path_).c_str(), stderr);
  } catch (const std::exception& error) {
    std::fputs("esker: a trace could not be written: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
  }
}

void Trace::write_all(std::int64_t now_ns) {
  TraceJson json(out_);
  json.begin();
  const auto name = [&](const char* what, std::uint64_t thread, const std::string& text) {
    json.metadata(what, kProcess, thread, "\"name\":" + json_text(text));
  };
  name("process_name", 0, "pipeline on " + device_);
  name("thread_name", kRunTrack, "run");
  json.metadata("thread_sort_index", kProcess, kRunTrack, "\"sort_index\":0");
  for (std::uint32_t s = 0; s < topology_.stages.size(); ++s) {
    const StageFacts& stage = topology_.stages[s];
    name("thread_name", track_of(s),
         fmt::format("{} ({}, {} teams)", stage.name, topology_.name_of(stage.side), memory_.teams(s)));
    json.metadata("thread_sort_index", kProcess, track_of(s), fmt::format("\"sort_index\":{}", s + 1));
  }
  // A change ends the span that the one before it of its stage began.
  std::vector<Change> open(topology_.stages.size());
  for (Change& change : open) change.activity.what = StageActivity::What::kEnded;
  const auto close = [&](const Change& span, std::int64_t end_ns) {
    const auto topic = [&] { return topology_.topics[span.activity.topic].options.name; };
    std::string what = "busy";
    switch (span.activity.what) {
      case StageActivity::What::kEnded:
        return;
      case StageActivity::What::kBusy:
        break;
      case StageActivity::What::kStarved:
        what = "starved of " + topic();
        break;
      case StageActivity::What::kBlocked:
        what = "blocked by " + topic();
        break;
    }
    std::string& text = json.event("X", json_text(what), kProcess, track_of(span.stage), span.at_ns);
    text += fmt::format(R"(,"dur":{:.3f}}})", static_cast<double>(end_ns - span.at_ns) / 1e3);
  };
  for (const Change& change : changes_) {
    close(open[change.stage], change.at_ns);
    open[change.stage] = change;
  }
  for (const Change& span : open) close(span, now_ns);
  for (const Fill& fill : fills_) {
    std::string& text = json.event("C", json_text("fill of " + topology_.topics[fill.topic].options.name),
                                   kProcess, kRunTrack, fill.at_ns);
    text += fmt::format(R"(,"args":{{"frames":{}}}}})", fill.frames);
  }
  for (const Mark& mark : marks_) {
    std::string& text = json.event("i", json_text(mark.name), kProcess, track_of(mark.stage), mark.at_ns);
    text += fmt::format(R"(,"s":"{}","args":{{{}}}}})", mark.stage == kNone ? "p" : "t", mark.arguments);
  }
  json.end(fmt::format(R"({{"midnight_unix_s":{},"device":{},"events":{},"events_dropped":{}}})",
                       json.clock().midnight_s, json_text(device_),
                       changes_.size() + fills_.size() + marks_.size(), dropped_));
}

}  // namespace esker::pipeline::detail
