// Batches on real devices: the CPU, a simulated GPU with 1 to 8 devices whose copies take time, or GPUs.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <esker/device.hpp>
#include <esker/transfer.hpp>

#include "../device/gtest.hpp"
#include "batches.hpp"
#include "refusal.hpp"

namespace {

using namespace esker;
using namespace esker::transfer;
using namespace std::chrono_literals;

TEST(Batch, MovesAndComputesOnEveryDevice) {
  unsetenv("SIMULATED_COPY");
  for (const std::size_t n : {1u, 2u, 3u, 4u, 8u}) {
    const std::vector<Device> devices = open_all_devices("auto", n);
    BatchQueue queue(devices, with_rates(devices, 1e9, 2e9));
    std::vector<Words> words;
    Batch there, back;
    for (std::size_t i = 0; i < devices.size(); ++i)
      words.emplace_back(devices[i], 100 + 1000 * i, static_cast<std::uint32_t>(i << 20));
    for (std::size_t i = 0; i < devices.size(); ++i) {
      there.push_back(words[i].to(static_cast<std::int32_t>(i)));
      back.push_back(words[i].back(static_cast<std::int32_t>(i)));
    }
    const BatchHandle first = queue.run_async(there), second = queue.run_async(back);
    EXPECT_EQ(second.synchronize().measured.size(), devices.size());
    EXPECT_TRUE(first.is_done());  // first in, first out
    for (const Words& w : words) EXPECT_TRUE(w.is_right(1));
    EXPECT_GE(first.synchronize().measured[0].kernel_begin_s, first.synchronize().measured[0].copy_end_s);
  }
}

TEST(Batch, RunsInOrderWithItsOwnEnd) {
  unsetenv("SIMULATED_COPY");
  const std::vector<Device> devices = open_all_devices("auto", 1);
  BatchQueue queue(devices, with_rates(devices, 1e9, 2e9));
  const Words words(devices[0], 5000, 7);
  std::vector<BatchHandle> handles;
  // The copy to the device restores what the kernels before it have added.
  for (int i = 0; i < 20; ++i) {
    handles.push_back(queue.run_async({words.to(0)}));
    CommandStream kernel = words.to(0);
    kernel.bytes = 0;
    handles.push_back(queue.run_async({kernel}));
    handles.push_back(queue.run_async({words.back(0)}));
  }
  handles.back().synchronize();
  for (const BatchHandle& handle : handles) EXPECT_TRUE(handle.is_done());
  EXPECT_TRUE(words.is_right(2));
}

TEST(Batch, MergedStreamsAllRun) {
  unsetenv("SIMULATED_COPY");
  const std::vector<Device> devices = open_all_devices("auto", 1);
  BatchQueue queue(devices, with_rates(devices, 1e9, 2e9), {4096});
  std::vector<Words> words;
  Batch there, back;
  for (std::uint32_t i = 0; i < 5; ++i) words.emplace_back(devices[0], 3000 * i, i);
  for (const Words& w : words) {
    there.push_back(w.to(0, w.sent.size() > 0));
    back.push_back(w.back(0));
  }
  queue.run(there);
  queue.run(back);
  for (const Words& w : words) EXPECT_TRUE(w.is_right(1));
}

/// Two devices send each other words, one with a kernel behind it. Returns the copies that it took.
std::size_t exchange() {
  give_copies_a_speed();
  const std::vector<Device> devices = open_all_devices("auto", 2);
  BatchQueue queue(devices, with_rates(devices, 1e9, 2e9));
  constexpr std::size_t kWords = 700'000;  // several pieces
  const Words a(devices[0], kWords, 0), b(devices[1], kWords, 1u << 30);
  queue.run({a.to(0, false), b.to(1, false)});
  const auto a2 = devices[0].memory<std::uint32_t>(kWords), b2 = devices[1].memory<std::uint32_t>(kWords);
  CommandStream ab = a.back(0), ba = b.back(1), from_a = a.back(0), from_b = b.back(1);
  ab.to = 1;
  ab.destination = b2.data();
  ab.kernel = [words = b2.data()](const Device& d, const Stream& s) { d.launch(kWords, AddOne{words}, s); };
  ab.kernel_time = 1ms;
  ba.to = 0;
  ba.destination = a2.data();
  const BatchReport report = queue.run({ab, ba});
  from_a.source = a2.data();
  from_b.source = b2.data();
  queue.run({from_a, from_b});
  for (std::size_t i = 0; i < kWords; ++i) {
    EXPECT_EQ(a.got[i], b.sent[i]);
    EXPECT_EQ(b.got[i], a.sent[i] + 1);
    if (::testing::Test::HasFailure()) break;
  }
  unsetenv("SIMULATED_COPY");
  return report.predicted.legs.size();
}

bool has_two_devices() { return open_all_devices("auto", 2).size() == 2; }

TEST(Batch, DevicesThatReachEachOtherExchangeDirectly) {
  if (!has_two_devices()) GTEST_SKIP() << "one device";
  const std::vector<Device> devices = open_all_devices("auto", 2);
  if (!devices[0].reach(devices[1])) GTEST_SKIP() << "that do not reach each other";
  EXPECT_EQ(exchange(), 2u);
}

TEST(Batch, OtherDevicesExchangeByWayOfTheHost) {
  if (!kIsSimulated || !has_two_devices())
    GTEST_SKIP() << "of two simulated devices, which can be kept apart";
  setenv("SIMULATED_NO_ACCESS", "1-0", 1);
  EXPECT_EQ(exchange(), 4u);
  unsetenv("SIMULATED_NO_ACCESS");
}

TEST(Batch, APathThatDevicesDoNotHaveIsRefused) {
  if (!kIsSimulated || !has_two_devices())
    GTEST_SKIP() << "of two simulated devices, which can be kept apart";
  const Topology together = with_rates(open_all_devices("auto", 2), 1e9, 2e9);
  setenv("SIMULATED_NO_ACCESS", "1-0", 1);
  const std::vector<Device> devices = open_all_devices("auto", 2);
  const std::string text = refusal([&] { BatchQueue queue(devices, together); });
  unsetenv("SIMULATED_NO_ACCESS");
  EXPECT_NE(text.find("GPU1 copies to GPU0 directly"), std::string::npos) << text;
}

TEST(Batch, ADeviceThatStandsForTwoExchangesByWayOfTheHost) {
  unsetenv("SIMULATED_COPY");
  const Device device = open_all_devices("auto", 1)[0];
  const std::vector<Device> devices{device, device};
  const Topology topology = with_rates(devices, 1e9, 2e9);
  EXPECT_TRUE(topology.is_staged(topology.device(0), topology.device(1)));
  BatchQueue queue(devices, topology);
  const Words a(device, 1000, 0), b(device, 1000, 1u << 30);
  queue.run({a.to(0), b.to(1)});
  queue.run({a.back(0), b.back(1)});
  EXPECT_TRUE(a.is_right(1));
  EXPECT_TRUE(b.is_right(1));
}

/// Batches to all devices, and both ways, whose speed measure_links() finds.
struct RandomBatches {
  RandomBatches(const std::vector<Device>& devices, std::mt19937& random) {
    for (std::size_t i = 0; i < 2 * devices.size(); ++i)
      words.emplace_back(devices[i / 2], 100'000 + random() % 400'000, static_cast<std::uint32_t>(i));
    for (std::size_t i = 0; i < devices.size(); ++i) {
      there.push_back(words[2 * i].to(static_cast<std::int32_t>(i), false));
      both.push_back(words[2 * i].back(static_cast<std::int32_t>(i)));
      both.push_back(words[2 * i + 1].to(static_cast<std::int32_t>(i), false));
      if (devices.size() < 2) continue;
      const std::size_t next = (i + 1) % devices.size();
      received.emplace_back(devices[next], words[2 * i + 1].there.size(), 0);
      CommandStream on = words[2 * i + 1].back(static_cast<std::int32_t>(i));
      on.to = static_cast<std::int32_t>(next);
      on.destination = received.back().there.data();
      around.push_back(on);
    }
  }
  static BatchQueue measured_queue(const std::vector<Device>& devices) {
    MeasureOptions options;
    options.repeats = 3;
    options.most_bytes = kIsSimulated ? 1 << 19 : 0;
    return {devices, calibrated(machine_topology(devices), measure_links(devices, options))};
  }
  std::vector<Words> words, received;
  Batch there, both, around;  // around: each device to the next one; of one device nothing
};

TEST(Batch, OfMeasuredLinksArrives) {
  give_copies_a_speed();
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const std::size_t n : {1u, 2u, 4u}) {
    const std::vector<Device> devices = open_all_devices("auto", n);
    const RandomBatches batches(devices, random);
    BatchQueue queue = RandomBatches::measured_queue(devices);
    queue.run(batches.there);
    queue.run(batches.both);
    if (!batches.around.empty()) queue.run(batches.around);
    for (std::size_t i = 0; i < devices.size(); ++i) {
      const Words& sent = batches.words[2 * i + 1];
      EXPECT_TRUE(batches.words[2 * i].is_right(0));
      if (devices.size() > 1) {
        const Words& got = batches.received[i];
        devices[(i + 1) % devices.size()].copy(got.got.data(), got.there.data(), got.there.size_bytes());
        EXPECT_TRUE(std::equal(sent.sent.data(), sent.sent.data() + sent.sent.size(), got.got.data()));
      }
      devices[i].copy(sent.got.data(), sent.there.data(), sent.there.size_bytes());
      EXPECT_TRUE(sent.is_right(0));
    }
  }
  unsetenv("SIMULATED_COPY");
}

TEST(Batch, TakesAsLongAsPredicted) {
  if (!kIsSimulated) GTEST_SKIP() << "copies have a known speed on the simulated GPU alone";
  give_copies_a_speed();
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const std::size_t n : {1u, 2u, 4u}) {
    const std::vector<Device> devices = open_all_devices("auto", n);
    const RandomBatches batches(devices, random);
    // Other programs keep this one's threads from the processors, while it measures and while it runs: one of
    // several attempts is undisturbed.
    double error = 1;
    std::string text;
    for (int attempt = 0; attempt < 8 && error > 0.1; ++attempt) {
      BatchQueue queue = RandomBatches::measured_queue(devices);
      error = 0;
      text.clear();
      for (const Batch& batch : {batches.there, batches.both, batches.around}) {
        if (batch.empty()) continue;
        double least = 1;
        for (int run = 0; run < 3; ++run) {
          const BatchReport report = queue.run(batch);
          least = std::min(least, std::abs(report.makespan_s / report.predicted.makespan_s - 1));
          text += std::to_string(report.makespan_s) + " s, not " +
                  std::to_string(report.predicted.makespan_s) + "; ";
        }
        error = std::max(error, least);
      }
    }
    EXPECT_LE(error, 0.1) << n << " devices: " << text;
  }
  unsetenv("SIMULATED_COPY");
}

TEST(Batch, ADeadlineIsAcceptedOrRefused) {
  unsetenv("SIMULATED_COPY");
  const std::vector<Device> devices = open_all_devices("auto", 1);
  BatchQueue queue(devices, with_rates(devices, 1e8, 1e12));
  const Words words(devices[0], 250'000, 0);  // a MB, 10 ms and a startup
  const Admission refused = queue.submit({words.to(0)}, 5ms);
  EXPECT_FALSE(refused.is_accepted);
  EXPECT_FALSE(refused.batch.has_value());
  EXPECT_NEAR(refused.predicted_s, 11.2e-3, 1e-6);
  EXPECT_NE(refused.reason.find(
                "it would take 11.200 ms, 0.000 of them behind batches before it, and its deadline is "
                "5.000 ms from now"),
            std::string::npos)
      << refused.reason;
  EXPECT_TRUE(queue.submit({words.to(0)}, std::chrono::nanoseconds::max()).is_accepted);
  const BatchReport& of_no_handle = queue.run_async({words.to(0)}).synchronize();  // a copy of it
  const Admission accepted = queue.submit({words.to(0)}, 30s);
  ASSERT_TRUE(accepted.is_accepted);
  // What is waiting counts.
  std::vector<BatchHandle> waiting;
  for (int i = 0; i < 50; ++i) waiting.push_back(queue.run_async({words.to(0)}));
  EXPECT_FALSE(queue.submit({words.to(0)}, 15ms).is_accepted);
  EXPECT_FALSE(accepted.batch->synchronize().is_late);
  EXPECT_EQ(of_no_handle.measured.size(), 1u);
  EXPECT_EQ(accepted.batch->synchronize().cause, "");
  for (const BatchHandle& handle : waiting) handle.synchronize();
}

TEST(Batch, AMissNamesTheLinkThatCausedIt) {
  if (!kIsSimulated) GTEST_SKIP() << "whose copies can be made slow";
  setenv("SIMULATED_COPY", "bytes_per_s=4e7", 1);
  const std::vector<Device> devices = open_all_devices("auto", 2);
  BatchQueue queue(devices, with_rates(devices, 4e8, 1e12));
  const Words words(devices[1], 250'000, 0);
  const Admission admission = queue.submit({words.to(1, false)}, 20ms);  // 25 ms at that speed
  ASSERT_TRUE(admission.is_accepted);
  const BatchReport& report = admission.batch->synchronize();
  EXPECT_TRUE(report.is_late);
  EXPECT_NE(report.cause.find("the link HUB -> GPU1 gave stream 0 0.0"), std::string::npos) << report.cause;
  unsetenv("SIMULATED_COPY");
}

TEST(Batch, AMissOfWhichNothingTookLongerNamesWhatBeganLate) {
  if (!kIsSimulated) GTEST_SKIP() << "kernels of one device that are put on streams one by one";
  unsetenv("SIMULATED_COPY");
  const std::vector<Device> devices = open_all_devices("auto", 1);
  BatchQueue queue(devices, with_rates(devices, 1e9, 2e9));
  // Each keeps the queue's thread for less than its kernel is to take, so the second one begins late.
  CommandStream slow;
  slow.to = 0;
  slow.kernel = [](const Device&, const Stream&) { std::this_thread::sleep_for(60ms); };
  slow.kernel_time = 80ms;
  const Admission admission = queue.submit({slow, slow}, 81ms);
  ASSERT_TRUE(admission.is_accepted) << admission.reason;
  const BatchReport& report = admission.batch->synchronize();
  EXPECT_TRUE(report.is_late);
  EXPECT_GT(report.waited_s + report.prepared_s + report.makespan_s, 81e-3);
  EXPECT_NE(report.cause.find("stream 1 began "), std::string::npos) << report.cause;
}

TEST(Batch, RefusesByName) {
  unsetenv("SIMULATED_COPY");
  const std::vector<Device> devices = open_all_devices("auto", 1);
  BatchQueue queue(devices, with_rates(devices, 1e9, 2e9));
  const Words words(devices[0], 100, 0), others(devices[0], 100, 0);
  CommandStream far = words.to(0);
  far.to = 9;
  EXPECT_NE(refusal([&] { queue.run({words.to(0), far}); }).find("stream 1"), std::string::npos);
  EXPECT_NE(refusal([&] { (void)queue.predict({far}); }).find("batch: stream 0: device 9 is not there"),
            std::string::npos);
  CommandStream again = others.to(0);
  again.destination = words.there.data() + 50;
  EXPECT_NE(refusal([&] { queue.run({words.to(0), again}); }).find("which overlap"), std::string::npos);
  CommandStream timeless = words.to(0);
  timeless.kernel_time = 0ns;
  EXPECT_NE(refusal([&] { queue.run({timeless}); }).find("stream 0: a kernel without a kernel_time"),
            std::string::npos);
  CommandStream missing = words.to(0);
  missing.source = nullptr;
  EXPECT_NE(refusal([&] { queue.run({missing}); }).find("has no source"), std::string::npos);
  EXPECT_GT(queue.predict({missing}).makespan_s, 0);  // a prediction needs no memory
  CommandStream before = words.back(0);
  before.kernel = words.to(0).kernel;
  before.kernel_time = 1ms;
  EXPECT_NE(refusal([&] { queue.run({before}); }).find("a kernel follows a copy to its device"),
            std::string::npos);
  queue.run({CommandStream{}});  // nothing
  EXPECT_EQ(queue.run({}).makespan_s, 0);
}

TEST(Batch, AKernelThatThrowsIsItsBatchsError) {
  unsetenv("SIMULATED_COPY");
  const std::vector<Device> devices = open_all_devices("auto", 1);
  BatchQueue queue(devices, with_rates(devices, 1e9, 2e9));
  const Words words(devices[0], 1000, 0);
  CommandStream throws = words.to(0);
  throws.kernel = [](const Device&, const Stream&) { throw std::runtime_error("no"); };
  const BatchHandle handle = queue.run_async({throws});
  EXPECT_THROW(handle.synchronize(), std::runtime_error);
  queue.run({words.to(0)});
  queue.run({words.back(0)});
  EXPECT_TRUE(words.is_right(1));
}

TEST(Batch, AProfileOfAnotherMachineIsRefusedWithBothNames) {
  unsetenv("SIMULATED_COPY");
  const std::vector<Device> devices = open_all_devices("auto", 1);
  LinkProfile profile;
  profile.machine = "a machine far away";
  const std::string here = machine_name(devices);
  const std::string text = refusal([&] { (void)calibrated(machine_topology(devices), profile); });
  EXPECT_NE(text.find("a machine far away"), std::string::npos);
  EXPECT_NE(text.find(here), std::string::npos);
  const std::string of_queue = refusal([&] { BatchQueue queue(devices, example_system()); });
  EXPECT_NE(of_queue.find("'example'"), std::string::npos);
  EXPECT_NE(of_queue.find(here), std::string::npos);
  EXPECT_NE(refusal([&] {
              BatchQueue queue(devices, machine_topology(devices));
            }).find("nobody knows the bandwidth"),
            std::string::npos);
}

TEST(LinkProfile, IsKeptForItsMachine) {
  const std::string file = ::testing::TempDir() + "/esker_machine.json";
  std::remove(file.c_str());
  setenv("ESKER_MACHINE_FILE", file.c_str(), 1);
  EXPECT_NE(refusal([] { (void)kept_profile("mine"); }).find("no links of 'mine' are kept"),
            std::string::npos);
  const LinkProfile profile{"mine", {{"A", "B", {1e9, 5e8, 1e-5, 2e-6}}, {"B", "A", {}}}};
  keep_profile(profile);
  EXPECT_EQ(to_json(kept_profile("mine")), to_json(profile));
  EXPECT_EQ(to_json(profile_from_json(to_json(profile), "a test")), to_json(profile));
  EXPECT_NE(refusal([] { (void)kept_profile("yours"); }).find("which has 'mine'"), std::string::npos);
  EXPECT_NE(refusal([] { (void)profile_from_json("[]", "a file"); }).find("profile of links in a file"),
            std::string::npos);
  // A disk that is full: what was kept stays, and nothing is left beside it.
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit sizes{};
  getrlimit(RLIMIT_FSIZE, &sizes);
  const rlimit few{10, sizes.rlim_max};
  setrlimit(RLIMIT_FSIZE, &few);
  const std::string full = refusal([&] { keep_profile(profile); }, Error::Kind::kConfiguration);
  setrlimit(RLIMIT_FSIZE, &sizes);
  EXPECT_NE(full.find("File too large"), std::string::npos) << full;
  EXPECT_EQ(to_json(kept_profile("mine")), to_json(profile));
  EXPECT_FALSE(std::filesystem::exists(file + "." + std::to_string(getpid()) + ".new"));
  std::ofstream(file) << "no JSON";
  for (const std::string& why : {refusal([] { (void)kept_profile("mine"); }, Error::Kind::kConfiguration),
                                 refusal([&] { keep_profile(profile); }, Error::Kind::kConfiguration)})
    EXPECT_NE(why.find("is no JSON object: delete it, or name another file"), std::string::npos) << why;
  // One that cannot be read is not replaced.
  std::filesystem::remove(file);
  std::filesystem::create_symlink(file, file);
  const std::string unreadable = refusal([&] { keep_profile(profile); }, Error::Kind::kConfiguration);
  EXPECT_NE(unreadable.find("cannot write '" + file + "': Too many levels"), std::string::npos) << unreadable;
  EXPECT_TRUE(std::filesystem::is_symlink(file));
  std::filesystem::remove(file);
  setenv("ESKER_MACHINE_FILE", ::testing::TempDir().c_str(), 1);
  EXPECT_NE(refusal([] { (void)kept_profile("mine"); }, Error::Kind::kConfiguration).find("is a folder"),
            std::string::npos);
  unsetenv("ESKER_MACHINE_FILE");
}

TEST(LinkProfile, IsOfCopiesOfSomeSize) {
  const std::vector<Device> devices = open_all_devices("auto", 1);
  for (const std::size_t bytes : {1u, 1000u, 65535u})
    EXPECT_NE(refusal([&] {
                (void)measure_links(devices, {bytes, 1});
              }).find("at least 65536"),
              std::string::npos);
}

}  // namespace
