// Events as the JSON that Perfetto and chrome://tracing read.
#include <esker/runtime/trace_file.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>

#include <esker/config.hpp>
#include <esker/device/error.hpp>
#include <esker/device/ranges.hpp>
#include <esker/device/trace_json.hpp>

namespace esker {
namespace {

/// Readers take ids as hexadecimal numbers of at most 64 bits; a PE fits in 16.
std::string number_of(const BufferId& id) {
  return fmt::format("0x{:04x}{:04x}{:08x}", id.source, id.destination, id.sequence & 0xffffffff);
}
/// For people.
std::string text_of(const BufferId& id) {
  return fmt::format("{}.{}.{}", id.source, id.destination, id.sequence);
}

const char* letter(TracePhase phase) {
  switch (phase) {
    case TracePhase::kSpan:
      return "X";
    case TracePhase::kAsyncBegin:
      return "b";
    case TracePhase::kAsyncEnd:
      return "e";
    case TracePhase::kCounter:
      return "C";
    case TracePhase::kFlowStart:
      return "s";
    case TracePhase::kFlowStep:
      return "t";
    case TracePhase::kFlowEnd:
      return "f";
  }
  return "";
}

/// Writes one PE's events. Processes are numbered from 1, since readers take process 0 for the idle one; so
/// are threads, each with a number of its own in the whole job.
class Writer {
 public:
  Writer(std::ostream& out, std::uint32_t pe) : json_{out}, pe_{pe} {}

  void write(const Tracer& tracer, std::uint32_t n_pes) {
    json_.begin();
    metadata("process_name", 0, fmt::format("\"name\":\"PE {}\"", pe_));
    metadata("process_sort_index", 0, fmt::format("\"sort_index\":{}", pe_));
    std::uint64_t events = 0;
    std::uint64_t dropped = tracer.dropped_without_track();
    tracer.visit(
        [&](const Tracer::TrackView& track) {
          metadata("thread_name", track.index, fmt::format("\"name\":{}", json_text(track.name)));
          metadata("thread_sort_index", track.index, fmt::format("\"sort_index\":{}", track.index));
          events += track.events;
          dropped += track.dropped;
        },
        [&](const TraceEvent& event) { write(event); });
    json_.end(
        fmt::format("{{\"esker\":{},\"commit\":{},\"pe\":{},\"pes\":{},\"midnight_unix_s\":{},"
                    "\"events\":{},\"events_dropped\":{},\"sample_every_packages\":{}}}",
                    json_text(build_info().version), json_text(build_info().commit), pe_, n_pes,
                    json_.clock().midnight_s, events, dropped, Tracer::kSampleEvery));
  }

 private:
  std::uint64_t thread(std::uint32_t track) const {
    return std::uint64_t{pe_} * Tracer::kMostTracks + track + 1;
  }

  void metadata(const char* name, std::uint32_t track, const std::string& argument) {
    json_.metadata(name, pe_ + 1, thread(track), argument);
  }

  void write(const TraceEvent& event) {
    const TraceKind& kind = trace_kinds()[static_cast<std::size_t>(event.what)];
    const bool text_in_name = event.text != nullptr && kind.text_name == nullptr;
    std::string& text =
        json_.event(letter(event.phase),
                    json_text(text_in_name ? fmt::format("{}: {}", kind.name, event.text) : kind.name),
                    pe_ + 1, thread(event.track), event.at_ns);
    if (event.phase == TracePhase::kSpan) {
      text += fmt::format(R"(,"dur":{:.3f})", static_cast<double>(event.duration_ns) / 1e3);
    } else if (event.phase != TracePhase::kCounter) {
      text += fmt::format(R"(,"id":"{}")", number_of(event.buffer));
      // A flow's point belongs to the span around it, not to the next one.
      if (event.what == TraceWhat::kMessages) text += R"(,"bp":"e")";
    }
    write_arguments(text, event, kind);
    text += '}';
  }

  static void write_arguments(std::string& text, const TraceEvent& event, const TraceKind& kind) {
    if (event.phase != TracePhase::kSpan && event.phase != TracePhase::kCounter) return;
    text += R"(,"args":{)";
    bool first = true;
    const auto add = [&](const char* name, const std::string& value) {
      text += fmt::format(R"({}"{}":{})", first ? "" : ",", name, value);
      first = false;
    };
    for (std::size_t i = 0; i < kind.value_names.size() && kind.value_names[i] != nullptr; ++i) {
      add(kind.value_names[i], std::to_string(event.values[i]));
    }
    if (event.text != nullptr && kind.text_name != nullptr) add(kind.text_name, json_text(event.text));
    if (event.buffer.sequence != 0) add("buffer", json_text(text_of(event.buffer)));
    text += '}';
  }

  TraceJson json_;
  const std::uint32_t pe_;
};

}  // namespace

std::string trace_path(const std::string& file, std::uint32_t pe, std::uint32_t n_pes) {
  if (n_pes == 1) return file;
  std::filesystem::path path(file);
  const std::string name = fmt::format("{}.{}{}", path.stem().string(), pe, path.extension().string());
  return path.replace_filename(name).string();
}

TraceFile::TraceFile(const std::string& file, std::uint32_t pe, std::uint32_t n_pes, std::uint32_t slots)
    : path_{file.empty() ? "" : trace_path(file, pe, n_pes)}, pe_{pe}, n_pes_{n_pes} {
  if (path_.empty()) {
    if (ranges::are_watched()) tracer_ = std::make_unique<Tracer>(slots, false);
    return;
  }
  errno = 0;
  out_.open(path_, std::ios::trunc);
  if (!out_) {
    throw Error(Error::Kind::kConfiguration,
                fmt::format("trace: PE {} cannot write {}: {}; name another file (--trace, ESKER_TRACE)", pe,
                            path_, std::strerror(errno != 0 ? errno : EIO)));
  }
  tracer_ = std::make_unique<Tracer>(slots, true);
  tracer_->name_thread("lane thread 0, the program's");
}

TraceFile::~TraceFile() { write(); }

void TraceFile::write() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (!out_.is_open()) return;
    Writer(out_, pe_).write(*tracer_, n_pes_);
    out_.close();
    if (out_) return;
    std::fputs(
        fmt::format("esker: PE {}: the trace {} could not be written to its end\n", pe_, path_).c_str(),
        stderr);
  } catch (const std::exception& error) {
    std::fputs("esker: a trace could not be written: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
  }
}

StageStatistics read_stages(const StageCounters& counters, const Tracer* tracer) {
  StageStatistics stages;
  if (tracer != nullptr) stages.package_wait = tracer->package_wait.read();
  stages.gather = counters.gather.read();
  stages.send = counters.send.read();
  stages.apply = counters.apply.read();
  stages.fill = counters.fill.read();
  return stages;
}

}  // namespace esker
