// Pipelines over two devices: what one device's stages publish the other's take, in every shape.
#include <esker/device.hpp>
#include <esker/pipeline.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "../device/gtest.hpp"
#include "counting.hpp"

namespace esker::testing {
namespace {

using namespace pipeline;
using std::chrono::milliseconds;

#if defined(ESKER_TEST_SIMULATED)
constexpr std::uint32_t kFrames = 40, kItems = 300;
#else
constexpr std::uint32_t kFrames = 400, kItems = 5000;
#endif

/// Two GPUs; where there is one, that and the host's cores, which stand for both on the CPU.
std::vector<Device> two_devices() {
  const Device first = Device::open();
  const DeviceProperties& has = first.properties();
  const bool has_two = has.backend != Backend::kCpu && has.devices > 1;
  return {first, Device::open(has_two ? std::string(to_string(has.backend)) + ":1" : "cpu")};
}
bool are_gpus(const std::vector<Device>& devices) { return devices[1].backend() != Backend::kCpu; }
struct Add {
  std::uint32_t term, fails_at = ~0u;
  ESKER_HD void operator()(auto& stage, const Frame<const std::uint32_t>& in,
                           Frame<std::uint32_t>& out) const {
    for (std::uint32_t i = stage.lane(); i < in.count; i += stage.lanes()) {
      out[i] = in[i] + term;
      if (in[i] == fails_at) stage.fail(9, in[i]);
    }
  }
};
/// host -> device 0 -> device 1 -> device 0 -> host.
struct There {
  There(const std::vector<Device>& devices, Options options, Crossing crossing, std::uint32_t slots,
        std::uint32_t n)
      : p{devices, options} {
    for (const char* name : {"a", "b", "c", "d"})
      t.push_back(p.topic<std::uint32_t>(
          {.name = name, .frame_bytes = n * 4, .frames = slots, .crossing = crossing}));
  }
  template <class Sink>
  void start(std::uint32_t frames, std::uint32_t n, std::uint32_t parts, std::uint32_t fails_at,
             const Sink& sink) {
    next = 0;
    p.start(
        on_host::source("count", Count{t[0], frames, n, &next}).into(t[0]),
        on_device::map("first", t[0], t[1], Add{1}),
        on_device::map("second", t[1], t[2], Add{2, fails_at}).on(1).parts(parts),
        on_device::map("third", t[2], t[3], Add{4}).on(0).staged(),
        on_host::frames("sink", [sink](auto&, const Frame<const std::uint32_t>& f) { sink(f); }).from(t[3]));
  }
  Pipeline p;
  std::vector<Topic<std::uint32_t>> t;
  std::uint32_t next = 0;
};
void go_there_and_back(const std::vector<Device>& devices, Crossing crossing, std::uint32_t slots,
                       std::uint32_t n, std::uint32_t parts, bool balance) {
  Options options = small_groups();
  options.balance = balance;
  There there(devices, options, crossing, slots, n);
  std::uint32_t seen = 0;
  bool is_right = true;
  there.start(kFrames, n, parts, ~0u, [&](const auto& frame) {
    is_right = is_right && frame.count == n && frame.number == seen;
    for (std::uint32_t i = 0; i < frame.count; ++i) is_right = is_right && frame[i] == seen * n + i + 7;
    ++seen;
  });
  there.p.wait();
  EXPECT_TRUE(is_right);
  EXPECT_EQ(seen, kFrames);
  for (const Report::Topic& topic : there.p.report().topics) {
    EXPECT_EQ(topic.frames, kFrames);
    EXPECT_EQ(topic.lost, 0u);
  }
}
TEST(PipelineDevices, MapEachFrameInOrder) {
  for (const Crossing crossing : {Crossing::kDirect, Crossing::kBatched, Crossing::kManaged}) {
    for (const std::uint32_t slots : {1u, 2u, 64u})
      go_there_and_back(two_devices(), crossing, slots, 50, 1, false);
  }
}
TEST(PipelineDevices, MapPartsOfFrames) {
  go_there_and_back(two_devices(), Crossing::kDirect, 8, 300, 3, false);
}
TEST(PipelineDevices, KeepTheirTeams) {
  go_there_and_back(two_devices(), Crossing::kDirect, 64, 50, 1, true);
}
TEST(PipelineDevices, MayBeTheHostsCores) {
  const Device device = Device::open(), cores = Device::open("cpu");
  for (const Crossing crossing : {Crossing::kDirect, Crossing::kBatched}) {
    go_there_and_back({device, cores}, crossing, 4, 50, 1, false);
    go_there_and_back({cores, device}, crossing, 4, 50, 2, false);
  }
}

/// Even numbers one way, odd ones another, and each third twice.
struct Branch {
  Topic<std::uint32_t> even, odd;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const {
    stage.emit(n % 2 == 0 ? even : odd, n);
    if (n % 3 == 0) stage.emit(n % 2 == 0 ? even : odd, n);
  }
};
struct Pass {
  Topic<std::uint32_t> to;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const { stage.emit(to, n); }
};
auto numbers(const Topic<std::uint32_t>& to, std::uint32_t n, std::atomic<std::uint32_t>& next) {
  return on_host::source("numbers",
                         [to, n, &next](auto& stage) {
                           const std::uint32_t i = next++;
                           if (i >= n) return false;
                           stage.emit(to, i);
                           return true;
                         })
      .into(to);
}
/// One topic goes to both devices and to the host; another one from the second device to both.
TEST(PipelineDevices, GiveEachSubscriberEachItem) {
  for (const Crossing crossing : {Crossing::kDirect, Crossing::kBatched}) {
    for (const std::uint32_t slots : {1u, 3u, 16u}) {
      Pipeline p(two_devices(), small_groups());
      const auto topic = [&](const char* name) {
        return p.topic<std::uint32_t>(
            {.name = name, .frame_bytes = 20, .frames = slots, .crossing = crossing});
      };
      const auto in = topic("in"), even = topic("even"), odd = topic("odd"), left = topic("left"),
                 right = topic("right"), other = topic("other");
      std::atomic<std::uint32_t> next{0};
      std::uint64_t all = 0, evens = 0, lefts = 0, rights = 0, others = 0;
      const auto sum = [](std::uint64_t& to) { return [&to](auto&, const std::uint32_t& n) { to += n; }; };
      p.run(numbers(in, kItems, next), on_host::items("all", sum(all)).from(in),
            on_device::items("branch", Branch{even, odd}).on(1).from(in).into(even, odd),
            on_device::items("other", Pass{other}).from(in).into(other),
            on_device::items("left", Pass{left}).from(odd).into(left),
            on_device::items("right", Pass{right}).on(1).from(odd).into(right),
            on_host::items("evens", sum(evens)).from(even), on_host::items("lefts", sum(lefts)).from(left),
            on_host::items("rights", sum(rights)).from(right),
            on_host::items("others", sum(others)).from(other));
      std::uint64_t sums[2] = {0, 0};
      for (std::uint64_t n = 0; n < kItems; ++n) sums[n % 2] += n % 3 == 0 ? 2 * n : n;
      const std::uint64_t whole = std::uint64_t{kItems} * (kItems - 1) / 2;
      EXPECT_EQ(all, whole);
      EXPECT_EQ(others, whole);
      EXPECT_EQ(evens, sums[0]);
      EXPECT_EQ(lefts, sums[1]);
      EXPECT_EQ(rights, sums[1]);
    }
  }
}

// --- Loops.

/// Goes down to 0, and then on.
struct Down {
  Topic<std::uint32_t> again, on;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const {
    if (n == 0) return stage.emit(on, n);
    stage.emit(again, n - 1);
  }
};
TEST(PipelineDevices, FeedALoopOfAnother) {
  Pipeline p(two_devices(), small_groups());
  const auto in = p.topic<std::uint32_t>({.name = "in", .frame_bytes = 16, .frames = 4});
  const auto start = p.topic<std::uint32_t>({.name = "start", .frame_bytes = 16, .frames = 4});
  const auto again = p.topic<std::uint32_t>({.name = "again", .frame_bytes = 16, .frames = 8192});
  const auto done = p.topic<std::uint32_t>({.name = "done", .frame_bytes = 16, .frames = 4});
  std::atomic<std::uint32_t> next{0};
  std::uint32_t seen = 0;
  p.run(numbers(in, 40, next), on_device::items("pass", Pass{start}).from(in).into(start),
        on_device::items("down", Down{again, done}).on(1).from(start, again).into(again, done),
        on_host::items("sink", [&](auto&, const std::uint32_t&) { ++seen; }).from(done));
  EXPECT_EQ(seen, 40u);
}
/// Each device sends the other what it has, with the host or without; nothing is downstream on the host, or a
/// stage is.
TEST(PipelineDevices, EndALoopOfBothExactly) {
  for (const bool over_host : {false, true}) {
    for (std::uint32_t round = 0; round < 5; ++round) {
      Pipeline p(two_devices(), small_groups());
      const auto topic = [&](const char* name, std::uint32_t frames) {
        return p.topic<std::uint32_t>({.name = name, .frame_bytes = 16, .frames = frames});
      };
      const auto start = topic("start", 4), there = topic("there", 4096), back = topic("back", 4096),
                 home = topic("home", 4096), done = topic("done", 4);
      std::atomic<std::uint32_t> next{0};
      std::uint32_t seen = 0;
      const auto source = on_host::source("numbers", [&](auto& stage) {
                            const std::uint32_t i = next++;
                            if (i == 10) std::this_thread::sleep_for(milliseconds{3});  // a bubble
                            if (i >= 20) return false;
                            stage.emit(start, i);
                            return true;
                          }).into(start);
      const auto sink = on_host::items("sink", [&](auto&, const std::uint32_t&) { ++seen; }).from(done);
      const auto first = on_device::items("first", Down{there, done});
      const auto second = on_device::items("second", Pass{back}).on(1).from(there).into(back);
      if (over_host) {
        p.run(source, first.from(start, home).into(there, done), second,
              on_host::items("home", Pass{home}).from(back).into(home), sink);
      } else {
        p.run(source, first.from(start, back).into(there, done), second, sink);
      }
      EXPECT_EQ(seen, 20u);
      EXPECT_EQ(p.report().topics[1].frames, p.report().stages[2].frames);
    }
  }
}
struct CountDown {
  Topic<std::uint32_t> again;
  ESKER_HD void operator()(auto& stage, const std::uint32_t& n) const {
    if (n != 0) stage.emit(again, n - 1);
  }
};
TEST(PipelineDevices, EndALoopAfterTheHostsStages) {
  Pipeline p(two_devices(), small_groups());
  const auto start = p.topic<std::uint32_t>({.name = "start", .frame_bytes = 16, .frames = 4});
  const auto there = p.topic<std::uint32_t>({.name = "there", .frame_bytes = 16, .frames = 4096});
  const auto back = p.topic<std::uint32_t>({.name = "back", .frame_bytes = 16, .frames = 4096});
  std::atomic<std::uint32_t> next{0};
  p.run(numbers(start, 30, next), on_device::items("first", CountDown{there}).from(start, back).into(there),
        on_device::items("second", Pass{back}).on(1).from(there).into(back));
  EXPECT_EQ(p.report().stages[2].items, 30u * 29 / 2);
}

// --- What goes wrong, and what is said.

TEST(PipelineDevices, EndWhenAStageOfOneFails) {
  for (int round = 0; round < 5; ++round) {
    There there(two_devices(), small_groups(), Crossing::kDirect, 4, 10);
    there.start(kFrames, 10, 1, 101, [](const auto&) {});
    try {
      there.p.wait();
      ADD_FAILURE() << "it ended well";
    } catch (const PipelineError& error) {
      EXPECT_EQ(error.reason(), PipelineError::Reason::kFailed) << error.what();
      EXPECT_NE(std::string(error.what()).find("stage 'second' failed with code 9 (101, 0)"),
                std::string::npos)
          << error.what();
    }
  }
}
TEST(PipelineDevices, StopAndDrain) {
  for (const Crossing crossing : {Crossing::kDirect, Crossing::kBatched}) {
    There there(two_devices(), small_groups(), crossing, 4, 10);
    for (const bool drains : {true, false, true}) {
      std::uint64_t seen = 0;
      there.start(~0u, 10, 1, ~0u, [&](const auto&) { ++seen; });
      std::this_thread::sleep_for(milliseconds{10});
      if (drains) {
        EXPECT_TRUE(there.p.drain(milliseconds{20'000}));
        there.p.wait();
        EXPECT_EQ(seen, there.next);
      } else {
        there.p.stop();
        EXPECT_THROW(there.p.wait(), PipelineError);
      }
    }
  }
}
TEST(PipelineDevices, AreNamedInReports) {
  const std::vector<Device> devices = two_devices();
  std::atomic<bool> has_hung{false};
  std::string hang;
  Options options = small_groups();
  options.hang_after = milliseconds{40};
  options.on_hang = [&](const std::string& text) {
    if (!has_hung.exchange(true)) hang = text;
  };
  There there(devices, options, Crossing::kDirect, 4, 10);
  there.start(kFrames, 10, 1, ~0u, [&](const auto& frame) {
    while (frame.number == 3 && !has_hung) std::this_thread::sleep_for(milliseconds{1});
  });
  const Report& report = there.p.wait();
  const char* const first = devices[0].backend() == Backend::kCpu ? "host" : "device 0";
  const char* const second = are_gpus(devices) ? "device 1" : "host";
  EXPECT_EQ(report.stages[0].on, "host");
  EXPECT_EQ(report.stages[1].on, first);
  EXPECT_EQ(report.stages[2].on, second);
  EXPECT_EQ(report.topics[1].crosses, first != std::string(second));
  EXPECT_NE(report.text().find(std::string("second (map on the ") + second), std::string::npos)
      << report.text();
  EXPECT_NE(hang.find(std::string("stage 'first' (") + first), std::string::npos) << hang;
  EXPECT_NE(hang.find(std::string("stage 'second' (") + second), std::string::npos) << hang;
}
TEST(PipelineDevices, RefuseWhatIsWrong) {
  const auto says = [](const auto& run, const std::string& part) {
    try {
      run();
      ADD_FAILURE() << "it was taken: " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  const std::vector<Device> devices = two_devices();
  says([] { Pipeline none(std::vector<Device>{}); }, "it has no device");
  Pipeline p(devices, small_groups());
  const auto a = p.topic<std::uint32_t>({.name = "a"}), b = p.topic<std::uint32_t>({.name = "b"});
  const auto nothing = [](auto&) { return false; };
  const auto sink = [](auto&, const std::uint32_t&) {};
  says(
      [&] {
        p.run(on_host::source("s", nothing).into(a), on_device::map("m", a, b, Add{1}).on(2),
              on_host::items("t", sink).from(b));
      },
      "stage 'm' is on device 2, and the pipeline has 2");
  if (devices[0].backend() == Backend::kCpu) return;
  says([&] { Pipeline twice({devices[0], Device::open()}); }, "is named twice");
  says(
      [&] {
        p.run(on_host::source("s", nothing).into(a), on_device::items("m", Pass{b}).from(a).into(b),
              on_device::items("n", Pass{b}).on(1).from(a).into(b), on_host::items("t", sink).from(b));
      },
      "publish into 'b': make a topic for each");
}

}  // namespace
}  // namespace esker::testing
