// Copy engines of the simulated GPU: copies take the time that their bandwidth says, by the clock of events.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <esker/device.hpp>

#include "gtest.hpp"

namespace {

using namespace esker;

constexpr std::size_t kBytes = 4'000'000;

/// Copies of one device, timed from a mark.
struct Lab {
  explicit Lab(int index)
      : device{Device::open("simulated:" + std::to_string(index))},
        there{device.memory<char>(kBytes)},
        back{device.memory<char>(kBytes)},
        from{device.pinned<char>(kBytes)},
        to{device.pinned<char>(kBytes)},
        streams{device.stream(), device.stream(), device.stream()},
        begin{device.event()},
        ends{device.event(), device.event(), device.event()} {}
  void down(std::size_t stream) { copy(there.data(), from.data(), stream); }
  void up(std::size_t stream) { copy(to.data(), back.data(), stream); }
  void copy(void* a, const void* b, std::size_t stream) {
    device.copy_async(a, b, kBytes, streams[stream]);
    streams[stream].record(ends[stream]);
  }
  double milliseconds(std::size_t stream) {
    begin.synchronize();
    ends[stream].synchronize();
    return std::chrono::duration<double, std::milli>(ends[stream].elapsed_since(begin)).count();
  }
  Device device;
  DeviceArray<char> there, back;
  PinnedArray<char> from, to;
  Stream streams[3];
  Event begin, ends[3];
};

/// Whether these are the times, in milliseconds. Threads may begin late where others have the processors: in
/// one of several attempts.
void expect_times(const std::string& speed, int devices,
                  const std::function<std::vector<double>(std::vector<std::unique_ptr<Lab>>&)>& body,
                  const std::vector<double>& expected) {
  setenv("SIMULATED_COPY", speed.c_str(), 1);
  std::vector<std::unique_ptr<Lab>> labs;
  for (int i = 0; i < devices; ++i) labs.push_back(std::make_unique<Lab>(i));
  std::vector<double> times;
  for (int attempt = 0; attempt < 10; ++attempt) {
    for (auto& lab : labs) lab->streams[0].record(lab->begin);
    times = body(labs);
    bool is_right = true;
    for (std::size_t i = 0; i < times.size(); ++i)
      is_right = is_right && std::fabs(times[i] - expected[i]) < 0.03 * expected[i];
    unsetenv("SIMULATED_COPY");
    if (is_right) return;
    setenv("SIMULATED_COPY", speed.c_str(), 1);
  }
  unsetenv("SIMULATED_COPY");
  for (std::size_t i = 0; i < times.size(); ++i) EXPECT_NEAR(times[i], expected[i], 0.03 * expected[i]) << i;
}

TEST(SimulatedCopies, TakeTheirBytesOverTheirRate) {
  expect_times("bytes_per_s=4e8,startup_us=5000", 1,
               [](auto& labs) {
                 labs[0]->down(0);
                 return std::vector<double>{labs[0]->milliseconds(0)};
               },
               {15});
}

TEST(SimulatedCopies, OfOneEngineGoOneByOne) {
  expect_times("bytes_per_s=4e8", 1,
               [](auto& labs) {
                 labs[0]->down(0);
                 labs[0]->down(1);
                 labs[0]->up(2);  // has an engine of its own
                 const double a = labs[0]->milliseconds(0), b = labs[0]->milliseconds(1);
                 return std::vector<double>{std::min(a, b), std::max(a, b), labs[0]->milliseconds(2)};
               },
               {10, 20, 10});
}

TEST(SimulatedCopies, ShareWhatBothDirectionsHave) {
  expect_times("bytes_per_s=4e8,both_bytes_per_s=5e8", 1,
               [](auto& labs) {
                 labs[0]->down(0);
                 labs[0]->up(1);
                 return std::vector<double>{labs[0]->milliseconds(0), labs[0]->milliseconds(1)};
               },
               {16, 16});
}

TEST(SimulatedCopies, ShareTheRootOfAllDevices) {
  expect_times("bytes_per_s=4e8,root_bytes_per_s=8e8", 4,
               [](auto& labs) {
                 std::vector<double> times;
                 for (auto& lab : labs) lab->down(0);
                 for (auto& lab : labs) times.push_back(lab->milliseconds(0));
                 return times;
               },
               {20, 20, 20, 20});
}

TEST(SimulatedCopies, AreDoneAtOnceWithoutASpeed) {
  unsetenv("SIMULATED_COPY");
  Lab lab(0);
  for (std::size_t i = 0; i < kBytes; ++i) lab.from[i] = static_cast<char>(i % 127);
  lab.down(0);
  lab.streams[0].synchronize();
  lab.device.copy(lab.to.data(), lab.there.data(), kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(lab.to[i], lab.from[i]);
}

}  // namespace
