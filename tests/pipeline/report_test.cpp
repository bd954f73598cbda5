// What a run says of itself: how full topics are, what stages wait for, latencies, and the trace.
#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "../device/gtest.hpp"

namespace esker::testing {
namespace {

using namespace pipeline;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using Json = nlohmann::json;

/// Lets a stage wait until the monitor has seen for a while that nothing moves: it has taken samples.
class Standstill {
 public:
  Options options() {
    Options options;
    options.group_lanes = 64;
    options.hang_after = milliseconds{40};
    options.on_hang = [this](const std::string&) { ++seen_; };
    return options;
  }
  void wait() {
    const int before = seen_;
    while (seen_ == before) std::this_thread::sleep_for(milliseconds{1});
  }

 private:
  std::atomic<int> seen_{0};
};

constexpr std::uint32_t kSlots = 4, kNumbers = 60, kHeldUp = 3;

/// Frames of one word: 0, 1, 2, ...
struct Numbers {
  Topic<std::uint32_t> to;
  std::uint32_t* next;
  std::uint32_t frames = kNumbers;
  bool operator()(auto& stage) const {
    if (*next == frames) return false;
    auto frame = stage.open(to);
    if (frame.data == nullptr) return false;
    frame.count = 1;
    frame[0] = *next;
    frame.tag = *next + 7;
    stage.publish(to, frame);
    ++*next;
    return true;
  }
};
struct Same {
  ESKER_HD void operator()(auto& stage, const Frame<const std::uint32_t>& in,
                           Frame<std::uint32_t>& out) const {
    for (std::uint32_t i = stage.lane(); i < in.count; i += stage.lanes()) out[i] = in[i];
  }
};
struct FailsAt {
  std::uint32_t word;
  ESKER_HD void operator()(auto& stage, const Frame<const std::uint32_t>& in,
                           Frame<std::uint32_t>& out) const {
    if (stage.lane() != 0) return;
    out[0] = in[0];
    if (in[0] == word) stage.fail_frame(5, in[0]);
  }
};

/// count -> in -> first -> middle -> second -> out -> sink, whose function is given. Both maps are the
/// device's.
struct Chain {
  explicit Chain(Options options, Crossing crossing = Crossing::kDirect) : p{Device::open(), options} {
    const auto topic = [&](const char* name) {
      return p.topic<std::uint32_t>({.name = name, .frame_bytes = 4, .frames = kSlots, .crossing = crossing});
    };
    in = topic("in"), middle = topic("middle"), out = topic("out");
  }
  template <class First, class Sink>
  void run(const First& first, const Sink& sink) {
    std::uint32_t next = 0;
    p.run(on_host::source("count", Numbers{in, &next}).into(in),
          on_device::map("first", in, middle, first).workers(1),
          on_device::map("second", middle, out, Same{}).workers(1),
          on_host::frames("sink", [&](auto& stage, const Frame<const std::uint32_t>& f) {
            sink(stage, f[0]);
          }).from(out));
  }
  Pipeline p;
  Topic<std::uint32_t> in, middle, out;
};
bool has_gpu() { return Device::open().backend() != Backend::kCpu; }

TEST(PipelineReport, SaysWhatIsFullAndWhoIsBlockedByIt) {
  for (const Crossing crossing : {Crossing::kDirect, Crossing::kBatched}) {
    SCOPED_TRACE(to_string(crossing));
    Standstill standstill;
    Chain chain(standstill.options(), crossing);
    chain.run(Same{}, [&](auto&, std::uint32_t n) {
      if (n == kHeldUp) standstill.wait();
    });
    const Report& report = chain.p.report();
    SCOPED_TRACE(report.text());
    for (const Report::Topic& topic : report.topics) {
      SCOPED_TRACE(topic.name);
      EXPECT_EQ(topic.capacity, topic.crosses && crossing == Crossing::kBatched ? 2 * kSlots : kSlots);
      EXPECT_GT(topic.samples, 0u);
      EXPECT_EQ(topic.fill_highest, topic.capacity);
      EXPECT_GT(topic.fill_mean, 0);
      EXPECT_LE(topic.fill_mean, static_cast<double>(topic.fill_highest));
      EXPECT_EQ(topic.frame_bytes, 4u);
      EXPECT_EQ(topic.bytes, 4u * kNumbers);
    }
    for (std::size_t s = 0; s < 3; ++s) {  // all but the sink waited for the one below
      const Report::Stage& stage = report.stages[s];
      ASSERT_EQ(stage.blocked_by.size(), 1u);
      EXPECT_GT(stage.blocked_by[0].count(), 0) << stage.name;
      EXPECT_EQ(stage.blocked, stage.blocked_by[0]);
    }
    EXPECT_EQ(report.stages[3].blocked.count(), 0);
    EXPECT_TRUE(report.stages[3].blocked_by.empty());
    EXPECT_EQ(report.topics[1].crosses, false);
    EXPECT_EQ(report.topics[0].crosses, has_gpu());
  }
}

struct Pass {
  Topic<std::uint32_t> out;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const { stage.emit(out, n); }
};
TEST(PipelineReport, SaysWhichInputWasMissing) {
  for (const std::uint32_t slow : {0u, 1u}) {
    for (const bool on_gpu : {false, true}) {
      SCOPED_TRACE(slow);
      Standstill standstill;
      Pipeline p(Device::open(), standstill.options());
      const Topic<std::uint32_t> inputs[2] = {p.topic<std::uint32_t>({.name = "first", .frame_bytes = 4}),
                                              p.topic<std::uint32_t>({.name = "second", .frame_bytes = 4})};
      const auto out = p.topic<std::uint32_t>({.name = "out", .frame_bytes = 4});
      std::atomic<std::uint32_t> seen{0};
      bool has_begun = false, has_ended = false;
      const auto fast = on_host::source("fast", [&](auto& stage) {
        if (has_begun) return false;
        stage.emit(inputs[1 - slow], 1u);
        return has_begun = true;
      });
      const auto waits = on_host::source("slow", [&](auto& stage) {
        if (has_ended) return false;
        while (seen == 0) std::this_thread::sleep_for(milliseconds{1});
        standstill.wait();
        stage.emit(inputs[slow], 2u);
        return has_ended = true;
      });
      const auto sink = on_host::items("sink", [&](auto&, const std::uint32_t&) { ++seen; }).from(out);
      if (on_gpu) {
        p.run(fast.into(inputs[1 - slow]), waits.into(inputs[slow]),
              on_device::items("both", Pass{out}).from(inputs[0], inputs[1]).into(out).workers(1), sink);
      } else {
        p.run(fast.into(inputs[1 - slow]), waits.into(inputs[slow]),
              on_host::items("both", Pass{out}).from(inputs[0], inputs[1]).into(out), sink);
      }
      const Report::Stage& both = p.report().stages[2];
      ASSERT_EQ(both.starved_of.size(), 2u);
      EXPECT_GT(both.starved_of[slow].count(), 0);
      EXPECT_EQ(both.starved, both.starved_of[0] + both.starved_of[1]);
      EXPECT_EQ(p.report().stages[3].starved, p.report().stages[3].starved_of[0]);
      EXPECT_EQ(p.report().topics[slow].bytes, 0u);  // the stage takes from both, and counts items together
    }
  }
}

TEST(PipelineReport, HasTheLatenciesOfAllFrames) {
  Standstill standstill;
  Chain chain(standstill.options());
  chain.run(Same{}, [&](auto&, std::uint32_t n) {
    if (n == kHeldUp) standstill.wait();
  });
  const Latency& latency = chain.p.report().stages[3].latency;
  EXPECT_EQ(latency.frames, kNumbers);
  std::uint64_t frames = 0;
  nanoseconds last{0};
  for (const Latency::Bucket& bucket : latency.buckets) {
    EXPECT_GT(bucket.frames, 0u);
    EXPECT_GT(bucket.up_to, last);
    frames += bucket.frames;
    last = bucket.up_to;
  }
  EXPECT_EQ(frames, kNumbers);
  EXPECT_LE(latency.max, last);
  EXPECT_GE(latency.max, milliseconds{40});  // of the frame that waited until nothing had moved for so long
  EXPECT_EQ(latency.quantile(1), latency.max);
  EXPECT_LE(latency.quantile(0.5), latency.quantile(0.9));
  EXPECT_LE(latency.quantile(0.9), latency.quantile(0.99));
  EXPECT_EQ(chain.p.report().stages[1].latency.frames, 0u);
}
TEST(PipelineReport, KnowsEachTimeToAQuarter) {
  using pipeline::detail::LatencyBuckets;
  std::uint64_t end = 0;
  for (std::uint32_t b = 0; b < LatencyBuckets::kNumber; ++b) {  // without a gap
    EXPECT_EQ(LatencyBuckets::begin(b), end);
    end = LatencyBuckets::end(b);
    EXPECT_EQ(LatencyBuckets::of(LatencyBuckets::begin(b)), b);
    EXPECT_EQ(LatencyBuckets::of(end - 1), b);
    EXPECT_LE(end - 1, LatencyBuckets::begin(b) * 5 / 4);
  }
  EXPECT_EQ(LatencyBuckets::of(~std::uint64_t{0}), LatencyBuckets::kNumber - 1);
}

TEST(PipelineReport, IsJson) {
  Standstill standstill;
  Chain chain(standstill.options());
  chain.run(Same{}, [&](auto&, std::uint32_t n) {
    if (n == kHeldUp) standstill.wait();
  });
  const Report& report = chain.p.report();
  const Json json = Json::parse(report.json());
  ASSERT_EQ(json.at("stages").size(), 4u);
  for (std::size_t s = 0; s < 4; ++s) {
    const Json& stage = json.at("stages")[s];
    EXPECT_EQ(stage.at("name"), report.stages[s].name);
    EXPECT_EQ(stage.at("blocked_ns"), report.stages[s].blocked.count());
    EXPECT_EQ(stage.at("blocked_ns_by_output").size(), stage.at("outputs").size());
    EXPECT_EQ(stage.at("starved_ns_by_input").size(), stage.at("inputs").size());
    EXPECT_EQ(stage.at("latency").is_null(), s != 3);
  }
  EXPECT_EQ(json.at("stages")[3].at("latency").at("count"), kNumbers);
  EXPECT_EQ(json.at("stages")[3].at("starved_ns_by_input")[0], report.stages[3].starved.count());
  for (std::size_t t = 0; t < 3; ++t) {
    const Json& topic = json.at("topics")[t];
    EXPECT_EQ(topic.at("fill").at("highest"), kSlots);
    EXPECT_EQ(topic.at("capacity"), kSlots);
    EXPECT_EQ(topic.at("bytes"), 4 * kNumbers);
  }
  EXPECT_NE(report.text().find("of 4 published and not freed (mean), 4 at most"), std::string::npos)
      << report.text();
}

TEST(PipelineReport, IsJsonWhateverItsNamesAre) {
  Pipeline p(Device::open("cpu"));
  const auto topic = p.topic<std::uint32_t>({.name = "odd\xff\n", .frame_bytes = 4});
  std::uint32_t next = 0;
  p.run(on_host::source("count", Numbers{topic, &next}).into(topic),
        on_host::frames("sink", [](auto&, const Frame<const std::uint32_t>&) {}).from(topic));
  EXPECT_EQ(Json::parse(p.report().json()).at("topics").at(0).at("name"), "odd\xef\xbf\xbd\n");
}

// --- The trace.

class TraceFile {
 public:
  TraceFile() : path_{::testing::TempDir() + "esker-pipeline-trace.json"} {}
  ~TraceFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }
  Json read() const { return Json::parse(std::ifstream(path_)); }

 private:
  std::string path_;
};
std::vector<Json> of(const Json& trace, const std::string& phase, const std::string& name) {
  std::vector<Json> found;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase && event.at("name") == name) found.push_back(event);
  }
  return found;
}
/// Numbers of tracks by their names, up to a parenthesis.
std::map<std::string, int> tracks(const Json& trace) {
  std::map<std::string, int> found;
  for (const Json& event : of(trace, "M", "thread_name")) {
    const std::string name = event.at("args").at("name");
    found[name.substr(0, name.find(" ("))] = event.at("tid");
  }
  return found;
}
bool has_span(const Json& trace, const std::string& stage, const std::string& name) {
  const std::vector<Json> spans = of(trace, "X", name);
  return std::any_of(spans.begin(), spans.end(),
                     [track = tracks(trace).at(stage)](const Json& span) { return span.at("tid") == track; });
}

TEST(PipelineTrace, ShowsWhatStagesDoAndHowFullTopicsAre) {
  TraceFile file;
  Standstill standstill;
  Options options = standstill.options();
  options.trace = file.path();
  Chain chain(options);
  for (int round = 0; round < 2; ++round) {  // the file is the last run's
    chain.run(FailsAt{1}, [&](auto&, std::uint32_t n) {
      if (n == kHeldUp) standstill.wait();
    });
  }
  const Json trace = file.read();
  EXPECT_TRUE(trace.at("otherData").at("midnight_unix_s").is_number());
  EXPECT_EQ(trace.at("otherData").at("events_dropped"), 0);
  EXPECT_EQ(tracks(trace).size(), 5u);
  EXPECT_TRUE(has_span(trace, "count", "blocked by in"));
  EXPECT_TRUE(has_span(trace, "first", "blocked by middle"));
  EXPECT_TRUE(has_span(trace, "second", "blocked by out"));
  EXPECT_TRUE(has_span(trace, "sink", "busy"));
  for (const char* const topic : {"in", "middle", "out"}) {
    const std::vector<Json> fills = of(trace, "C", std::string("fill of ") + topic);
    EXPECT_TRUE(std::any_of(fills.begin(), fills.end(), [](const Json& fill) {
      return fill.at("args").at("frames") == kSlots;
    })) << topic;
  }
  const std::vector<Json> failed = of(trace, "i", "frame failed");
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].at("tid"), tracks(trace).at("first"));
  EXPECT_EQ(failed[0].at("args"), Json({{"frame", 1}, {"tag", 8}, {"code", 5}, {"a", 1}, {"b", 0}}));
  ASSERT_EQ(of(trace, "i", "start").size(), 1u);
  ASSERT_EQ(of(trace, "i", "end").size(), 1u);
  const double began = of(trace, "i", "start")[0].at("ts"), ended = of(trace, "i", "end")[0].at("ts");
  std::map<int, double> ends;  // of a track's last span
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const double at = event.at("ts"), until = at + event.at("dur").get<double>();
    double& end = ends.try_emplace(event.at("tid"), began).first->second;
    EXPECT_GE(at, end - 0.01) << event;  // times are rounded to a nanosecond
    EXPECT_LE(until, ended + 0.01) << event;
    end = until;
  }
}
TEST(PipelineTrace, MarksWhatEndedTheRun) {
  TraceFile file;
  Options options;
  options.group_lanes = 64;
  options.trace = file.path();
  Chain chain(options);
  EXPECT_THROW(chain.run(Same{},
                         [&](auto& stage, std::uint32_t n) {
                           if (n != kHeldUp) return;
                           options.stop.request_stop();
                           while (!stage.stop_requested()) std::this_thread::sleep_for(milliseconds{1});
                         }),
               PipelineError);
  EXPECT_EQ(of(file.read(), "i", "stop").size(), 1u);
  EXPECT_EQ(of(file.read(), "i", "failed").size(), 0u);
  options.stop = {};
  Chain other(options);
  EXPECT_THROW(other.run(Same{},
                         [&](auto&, std::uint32_t n) {
                           if (n == kHeldUp) throw std::out_of_range("a stage's own");
                         }),
               std::out_of_range);
  EXPECT_EQ(of(file.read(), "i", "stop").size(), 0u);
  const std::vector<Json> failed = of(file.read(), "i", "failed");
  ASSERT_EQ(failed.size(), 1u);
  EXPECT_EQ(failed[0].at("tid"), tracks(file.read()).at("sink"));
  EXPECT_EQ(failed[0].at("args").at("reason"), "failed");
}
TEST(PipelineTrace, IsRefusedBeforeTheRunWhereItCannotBeWritten) {
  Options options;
  options.trace = "/no/such/folder/trace.json";
  Chain chain(options);
  bool has_run = false;
  try {
    chain.run(Same{}, [&](auto&, std::uint32_t) { has_run = true; });
    ADD_FAILURE() << "it ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kConfiguration);
    EXPECT_NE(std::string(error.what()).find(options.trace), std::string::npos) << error.what();
  }
  EXPECT_FALSE(has_run);
}

}  // namespace
}  // namespace esker::testing
