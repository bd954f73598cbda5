// Traces of whole runs over loopback, held against the counters, and stage statistics.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <esker/runtime/trace_file.hpp>

#include "pes.hpp"
#include "updates.hpp"

namespace esker::testing {
namespace {

using nlohmann::json;

/// A folder that lasts as long as the object.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_{::testing::TempDir() + "esker-trace-XXXXXX"} {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no folder " + path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

json load(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("there is no " + file);
  return json::parse(in);
}

std::uint64_t count(const json& trace, const std::string& name, const std::string& phase) {
  std::uint64_t n = 0;
  for (const json& event : trace["traceEvents"]) n += event["name"] == name && event["ph"] == phase ? 1 : 0;
  return n;
}

std::uint64_t sum(const json& trace, const std::string& name, const std::string& argument) {
  std::uint64_t total = 0;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == name) total += event["args"][argument].get<std::uint64_t>();
  }
  return total;
}

/// Spans of one thread lie inside each other or apart.
void expect_nested(const json& trace) {
  struct Span {
    double begin, end;
  };
  std::map<std::uint64_t, std::vector<Span>> threads;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"];
    const double duration = event["dur"];
    EXPECT_GE(duration, 0);
    threads[event["tid"]].push_back({begin, begin + duration});
  }
  constexpr double kRounding = 1e-3;  // the end is a sum of two numbers in microseconds
  for (auto& [thread, spans] : threads) {
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
      return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::vector<Span> open;
    for (const Span& span : spans) {
      while (!open.empty() && open.back().end <= span.begin + kRounding) open.pop_back();
      if (!open.empty()) {
        EXPECT_LE(span.end, open.back().end + kRounding) << "thread " << thread;
      }
      open.push_back(span);
    }
  }
}

/// Every way of messages begins once and ends once, on whichever PE, and goes forward in time.
void expect_whole_flows(const std::vector<json>& traces) {
  struct Flow {
    std::vector<double> starts, steps, ends;
  };
  std::map<std::string, Flow> flows;
  std::uint64_t from_lanes = 0;
  for (const json& trace : traces) {
    for (const json& event : trace["traceEvents"]) {
      if (event["name"] != "messages") continue;
      Flow& flow = flows[event["id"]];
      (event["ph"] == "s" ? flow.starts : event["ph"] == "t" ? flow.steps : flow.ends).push_back(event["ts"]);
    }
  }
  constexpr double kClocks = 100;  // each PE reads how its clocks differ
  for (auto& [id, flow] : flows) {
    ASSERT_EQ(flow.starts.size(), 1u) << id;
    ASSERT_EQ(flow.ends.size(), 1u) << id;
    for (const double step : flow.steps) {
      EXPECT_LE(flow.starts[0], step + kClocks) << id;
      EXPECT_LE(step, flow.ends[0] + kClocks) << id;
    }
    from_lanes += flow.steps.size() >= 2 ? 1 : 0;
  }
  EXPECT_FALSE(flows.empty());
  EXPECT_GT(from_lanes, 0u) << "no package was followed";
}

struct Seen {
  Statistics statistics;
  StageStatistics stages;
};

/// Updates and messages of handlers between two PEs; what each counted.
std::vector<Seen> run_traffic(const Config& config) {
  std::vector<Seen> seen(2);
  run_pes(2, config, [&](Runtime& rt) {
    check_updates<std::uint64_t>(rt, "increments", Update::kInc, 0, 20'000);
    const auto words = rt.heap().allocate<std::uint64_t>(2);
    const auto echo = rt.register_handler<std::uint64_t, std::uint32_t>(
        "echo", [=](HandlerContext& context, std::uint64_t& word, const std::uint32_t&) {
          ++word;
          shmem_inc(context, &words[1], context.source());
        });
    rt.launch(
        2000, [=](WorkItem item) { shmem_am(item, echo, &words[0], 0, 1 - item.pe()); }, "echoes");
    rt.barrier_all();
    EXPECT_EQ(words[1], 2000u);
    rt.barrier_all();
    seen[rt.pe()] = {rt.statistics(), rt.stage_statistics()};
  });
  return seen;
}

TEST(Trace, AgreesWithTheCounters) {
  for (const std::uint32_t threads : {1u, 2u}) {
    SCOPED_TRACE(std::to_string(threads) + " threads of each kind");
    const TemporaryFolder folder;
    Config config = tiny_config();
    config.trace = folder.file("run.json");
    config.cpu_threads = threads;
    config.aggregators = threads;
    config.apply_helpers = threads - 1;
    const std::vector<Seen> seen = run_traffic(config);
    const std::vector<json> traces{load(folder.file("run.0.json")), load(folder.file("run.1.json"))};
    for (std::uint32_t pe = 0; pe < 2; ++pe) {
      SCOPED_TRACE("PE " + std::to_string(pe));
      const json& trace = traces[pe];
      const auto& [statistics, stages] = seen[pe];
      EXPECT_EQ(trace["otherData"]["events_dropped"], 0u);
      EXPECT_EQ(count(trace, "send", "b"), statistics.buffers_sent);
      EXPECT_EQ(count(trace, "send", "e"), statistics.buffers_sent);
      EXPECT_EQ(count(trace, "ship", "X"), statistics.buffers_sent);
      EXPECT_EQ(count(trace, "receive", "X"), seen[1 - pe].statistics.buffers_sent);
      EXPECT_EQ(count(trace, "close", "X"), stages.gather.count());
      EXPECT_EQ(count(trace, "gather", "b"), stages.gather.count());
      EXPECT_EQ(count(trace, "gather", "e"), stages.gather.count());
      EXPECT_EQ(count(trace, "apply", "X"), stages.apply.count() * std::max(1u, config.apply_helpers));
      EXPECT_EQ(sum(trace, "publish", "messages"), statistics.messages_published);
      EXPECT_EQ(sum(trace, "repack", "messages"), statistics.messages_published);
      EXPECT_EQ(count(trace, "publish", "X"), statistics.packages);
      EXPECT_EQ(stages.package_wait.count(), statistics.packages);
      EXPECT_EQ(count(trace, "launch: echoes", "X"), 1u);
      EXPECT_EQ(count(trace, "run: echoes", "X"), threads);
      EXPECT_GT(count(trace, "wait: barrier_all", "X"), 0u);
      // The same on the network's track.
      EXPECT_GE(count(trace, "wait: termination detection: some PE is not idle or has not called it", "X"),
                count(trace, "wait: barrier_all", "X"));
      EXPECT_EQ(count(trace, "thread_name", "M"), 2 + threads + (threads - 1) + (threads - 1));
      expect_nested(trace);
    }
    expect_whole_flows(traces);
  }
}

TEST(Trace, OnePeWritesTheFileAsItIsNamed) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.trace = folder.file("alone");
  run_pes(1, config, [](Runtime& rt) { rt.barrier_all(); });
  EXPECT_EQ(load(folder.file("alone"))["otherData"]["pes"], 1u);
  EXPECT_EQ(trace_path("a.b/c", 0, 1), "a.b/c");
  EXPECT_EQ(trace_path("a.b/c", 3, 4), "a.b/c.3");
  EXPECT_EQ(trace_path("a.b/c.d.json", 3, 4), "a.b/c.d.3.json");
}

TEST(Trace, OffIsNoTracer) {
  run_pes(2, [](Runtime& rt) {
    EXPECT_EQ(detail::ContextAccess::of(rt.device_context()).tracer, nullptr);
    rt.launch(100, [](WorkItem) {});
    rt.barrier_all();
    EXPECT_EQ(rt.stage_statistics().package_wait.count(), 0u);
  });
}

TEST(Trace, AFileThatCannotBeWrittenIsAnErrorAtTheStart) {
  Config config = tiny_config();
  config.trace = "/there/is/no/such/folder/trace.json";
  Pes pes(2, config);
  bool ran = false;
  const auto failed = pes.run_and_catch([&](Runtime&) { ran = true; });
  EXPECT_FALSE(ran);
  for (std::uint32_t pe = 0; pe < 2; ++pe) {
    ASSERT_TRUE(failed[pe].has_value());
    EXPECT_EQ(failed[pe]->kind, Error::Kind::kConfiguration);
    EXPECT_NE(failed[pe]->message.find("/there/is/no/such/folder/trace." + std::to_string(pe) + ".json"),
              std::string::npos)
        << failed[pe]->message;
  }
}

TEST(Trace, OfAJobThatFailsIsWrittenAsFarAsItGot) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.trace = folder.file("failed.json");
  Pes pes(2, config);
  const auto failed = pes.run_and_catch([](Runtime& rt) {
    const auto word = rt.heap().allocate<std::uint64_t>(1);
    const auto bad = rt.register_handler<std::uint64_t, std::uint32_t>(
        "bad", [](HandlerContext&, std::uint64_t&, const std::uint32_t&) {
          throw std::runtime_error("on purpose");
        });
    if (rt.pe() == 0) rt.launch(1, [=](WorkItem item) { shmem_am(item, bad, &word[0], 0, 1); });
    rt.barrier_all();
  });
  EXPECT_TRUE(failed[0].has_value());
  const json sender = load(folder.file("failed.0.json"));
  EXPECT_EQ(sum(sender, "publish", "messages"), 1u);
  expect_nested(sender);
  const json receiver = load(folder.file("failed.1.json"));
  EXPECT_EQ(count(receiver, "apply", "X"), 1u);
  expect_nested(receiver);
}

TEST(Trace, NamesOfKernelsMayHoldAnything) {
  const TemporaryFolder folder;
  Config config = tiny_config();
  config.trace = folder.file("names.json");
  run_pes(1, config, [](Runtime& rt) {
    std::string name = "say \"\\\n\xff\"";
    rt.launch(
        1, [](WorkItem) {}, name.c_str());
    name.assign(name.size(), 'x');  // the caller's no longer
  });
  const json trace = load(folder.file("names.json"));
  EXPECT_EQ(count(trace, "launch: say \"\\\n\ufffd\"", "X"), 1u);
}

TEST(StageStatistics, CountEveryBuffer) {
  const std::vector<Seen> seen = run_traffic(tiny_config());
  std::uint64_t gathered = 0;
  std::uint64_t applied = 0;
  for (const auto& [statistics, stages] : seen) {
    EXPECT_GT(statistics.buffers_sent, 0u);
    EXPECT_EQ(stages.send.count(), statistics.buffers_sent);
    EXPECT_EQ(stages.fill.count(), stages.gather.count());
    EXPECT_EQ(stages.package_wait.count(), 0u);
    EXPECT_LE(stages.fill.max, 1'000'000u);
    gathered += stages.gather.count();
    applied += stages.apply.count();
  }
  EXPECT_EQ(gathered, applied);
}

TEST(StageStatistics, AsJsonHaveCountsQuantilesAndBuckets) {
  const std::vector<Seen> seen = run_traffic(tiny_config());
  const StageStatistics& stages = seen[0].stages;
  const json all = json::parse(to_json(stages));
  EXPECT_EQ(all["package_wait"]["count"], 0u);
  EXPECT_FALSE(all["package_wait"].contains("p50"));
  for (const char* name : {"gather", "send", "apply", "fill"}) {
    SCOPED_TRACE(name);
    const json& one = all[name];
    std::uint64_t in_buckets = 0;
    double end = -1;
    for (const json& bucket : one["buckets"]) {
      in_buckets += bucket["count"].get<std::uint64_t>();
      EXPECT_GT(bucket["up_to"].get<double>(), end);
      end = bucket["up_to"];
    }
    EXPECT_EQ(one["count"], in_buckets);
    EXPECT_LE(one["p50"].get<double>(), one["p99"].get<double>());
    EXPECT_LE(one["p99"].get<double>(), one["max"].get<double>());
    EXPECT_LE(one["max"].get<double>(), end);
  }
  EXPECT_EQ(all["send"]["count"], seen[0].statistics.buffers_sent);
}

}  // namespace
}  // namespace esker::testing
