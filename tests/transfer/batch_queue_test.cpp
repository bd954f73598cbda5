// Batches that wait in a queue: the next one's copies are on the devices before the one before has ended.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <future>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/transfer.hpp>

#include "../device/gtest.hpp"
#include "batches.hpp"

namespace {

using namespace esker;
using namespace esker::transfer;

/// Arrays of the host and of each device, random copies between them, and what these make of the arrays.
class Arrays {
 public:
  Arrays(const std::vector<Device>& devices, std::size_t words) : words_{words} {
    for (std::uint32_t i = 0; i < 3 * devices.size(); ++i) {
      host_.push_back(devices[0].pinned<std::uint32_t>(words));
      std::fill(host_[i].data(), host_[i].data() + words, i + 1);
      expected_host_.push_back(i + 1);
    }
    for (const Device& device : devices) device_.push_back(device.memory<std::uint32_t>(words));
    expected_device_.assign(devices.size(), 0);
  }
  /// Some devices copy; no array is in two copies of it.
  Batch random_batch(std::mt19937& random) {
    Batch batch;
    std::vector<bool> is_used(host_.size(), false), is_busy(device_.size(), false);
    for (std::size_t d = 0; d < device_.size(); ++d) {
      if (is_busy[d] || random() % 4 == 0) continue;
      is_busy[d] = true;
      const std::size_t other = random() % device_.size(), h = random() % host_.size();
      CommandStream copy;
      copy.bytes = words_ * sizeof(std::uint32_t);
      if (random() % 3 == 0 && !is_busy[other]) {
        is_busy[other] = true;
        copy.from = static_cast<std::int32_t>(d);
        copy.to = static_cast<std::int32_t>(other);
        copy.source = device_[d].data();
        copy.destination = device_[other].data();
        expected_device_[other] = expected_device_[d];
      } else if (is_used[h]) {
        continue;
      } else if (random() % 2 == 0) {
        copy.to = static_cast<std::int32_t>(d);
        copy.source = host_[h].data();
        copy.destination = device_[d].data();
        expected_device_[d] = expected_host_[h];
      } else {
        copy.from = static_cast<std::int32_t>(d);
        copy.source = device_[d].data();
        copy.destination = host_[h].data();
        expected_host_[h] = expected_device_[d];
      }
      if (copy.from == kHost || copy.to == kHost) is_used[h] = true;
      batch.push_back(copy);
    }
    return batch;
  }
  bool is_right() const {
    for (std::size_t h = 0; h < host_.size(); ++h) {
      for (std::size_t i = 0; i < words_; ++i) {
        if (host_[h][i] != expected_host_[h]) return false;
      }
    }
    return true;
  }

 private:
  const std::size_t words_;
  std::vector<PinnedArray<std::uint32_t>> host_;
  std::vector<DeviceArray<std::uint32_t>> device_;
  std::vector<std::uint32_t> expected_host_, expected_device_;  // each word of an array
};

/// A batch that keeps the queue until all that is to wait behind it does.
class Hold {
 public:
  explicit Hold(BatchQueue& queue) {
    CommandStream stream;
    stream.to = 0;
    stream.kernel = [ended = end_.get_future().share()](const Device&, const Stream&) { ended.wait(); };
    stream.kernel_time = 1us;
    queue.run_async({stream});
  }
  ~Hold() { end_.set_value(); }

 private:
  std::promise<void> end_;
};

TEST(BatchQueue, BatchesComeInTheirOrder) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (const std::size_t n : {1u, 2u, 4u}) {
    for (const char* kept_apart : {"", "1-0"}) {
      setenv("SIMULATED_COPY", "bytes_per_s=1e9,both_bytes_per_s=1.5e9,root_bytes_per_s=2e9,startup_us=20",
             1);
      setenv("SIMULATED_NO_ACCESS", kept_apart, 1);
      if (*kept_apart == '\0') unsetenv("SIMULATED_NO_ACCESS");
      const std::vector<Device> devices = open_all_devices("auto", n);
      BatchQueue queue(devices, with_rates(devices, 1e9, 2e9));
      Arrays arrays(devices, 20'000);
      std::vector<BatchHandle> handles;
      {
        const Hold hold(queue);
        for (int i = 0; i < 300; ++i) handles.push_back(queue.run_async(arrays.random_batch(random)));
      }
      handles.back().synchronize();
      EXPECT_TRUE(arrays.is_right()) << n << " devices" << (*kept_apart == '\0' ? "" : ", two kept apart");
      std::size_t behind = 0;
      for (const BatchHandle& handle : handles) behind += handle.synchronize().is_behind ? 1 : 0;
      if (devices[0].backend() == Backend::kCpu) {
        EXPECT_EQ(behind, 0u);
      } else {
        EXPECT_GT(behind, 0u);
      }
    }
  }
  unsetenv("SIMULATED_COPY");
  unsetenv("SIMULATED_NO_ACCESS");
}

TEST(BatchQueue, EveryStreamOfABatchWaitsForTheBatchBefore) {
  give_copies_a_speed();
  const std::vector<Device> devices = open_all_devices("auto", 2);
  if (devices.size() < 2) GTEST_SKIP() << "one device";
  BatchQueue queue(devices, with_rates(devices, 1e8, 2e9));
  const Words a(devices[0], 50'000, 5), b(devices[1], 50'000, 9), other(devices[0], 50'000, 0);
  queue.run({a.to(0, false)});
  CommandStream on = b.to(1, false);
  on.source = a.got.data();  // which the batch before brings
  for (int i = 0; i < 5; ++i) {
    std::fill(a.got.data(), a.got.data() + a.got.size(), 0u);
    std::optional<BatchHandle> last;
    {
      const Hold hold(queue);
      queue.run_async({a.back(0)});
      queue.run_async({other.to(0, false), on});
      last.emplace(queue.run_async({b.back(1)}));
    }
    last->synchronize();
    ASSERT_TRUE(std::equal(a.sent.data(), a.sent.data() + a.sent.size(), b.got.data()));
  }
  unsetenv("SIMULATED_COPY");
}

TEST(BatchQueue, TimesOfABatchBehindAnotherBeginAtItsEnd) {
  if (!kIsSimulated) GTEST_SKIP() << "copies have a known speed on the simulated GPU alone";
  setenv("SIMULATED_COPY", "bytes_per_s=1e8", 1);  // 4 ms a batch
  const std::vector<Device> devices = open_all_devices("auto", 2);
  BatchQueue queue(devices, with_rates(devices, 1e8, 2e9));
  const Words a(devices[0], 100'000, 0), b(devices[1], 100'000, 0);
  queue.run({a.to(0, false), b.to(1, false)});
  std::vector<BatchHandle> handles;
  {
    const Hold hold(queue);
    for (int i = 0; i < 10; ++i) handles.push_back(queue.run_async({a.back(0), b.to(1, false)}));
  }
  double least_s = 1;
  for (const BatchHandle& handle : handles) {
    const BatchReport& report = handle.synchronize();
    for (const StreamTimes& times : report.measured) {
      EXPECT_GE(times.copy_begin_s, -1e-9);
      EXPECT_GE(times.copy_end_s - times.copy_begin_s, 3.9e-3);
    }
    EXPECT_TRUE(report.is_behind);
    EXPECT_GE(report.makespan_s, 3.9e-3);
    least_s = std::min(least_s, report.makespan_s);  // of one whose host's threads were not kept from working
  }
  EXPECT_LT(least_s, 7e-3);  // and not from when it was given to the device
  unsetenv("SIMULATED_COPY");
}

TEST(BatchQueue, AKernelIsCalledWhenWhatIsBeforeItsBatchHasEnded) {
  give_copies_a_speed();
  const std::vector<Device> devices = open_all_devices("auto", 1);
  BatchQueue queue(devices, with_rates(devices, 1e8, 2e9));
  const Words words(devices[0], 50'000, 5), others(devices[0], 100, 0);
  queue.run({words.to(0, false)});
  std::atomic<int> right{0};
  std::vector<BatchHandle> handles;
  constexpr int kRounds = 5;
  for (int i = 0; i < kRounds; ++i) {
    std::fill(words.got.data(), words.got.data() + words.got.size(), 0u);
    CommandStream looks = others.to(0);
    looks.kernel = [&, launch = looks.kernel](const Device& device, const Stream& stream) {
      if (words.is_right(0)) ++right;
      launch(device, stream);
    };
    {
      const Hold hold(queue);
      handles = {queue.run_async({words.back(0)}), queue.run_async({looks}),
                 queue.run_async({others.back(0)})};
    }
    handles.back().synchronize();
    EXPECT_TRUE(others.is_right(1));
  }
  EXPECT_EQ(right, kRounds);
  unsetenv("SIMULATED_COPY");
}

TEST(BatchQueue, CopiesOfPageableMemoryWaitForTheirTurn) {
  give_copies_a_speed();
  const std::vector<Device> devices = open_all_devices("auto", 1);
  BatchQueue queue(devices, with_rates(devices, 1e8, 2e9));
  const Words words(devices[0], 10'000, 5), others(devices[0], 10'000, 0);
  std::vector<std::uint32_t> between(10'000, 0);
  CommandStream there = words.back(0), back = others.to(0, false);
  there.destination = between.data();
  back.source = between.data();
  std::vector<BatchHandle> handles;
  {
    const Hold hold(queue);
    for (const CommandStream& stream : {words.to(0, false), there, back, others.back(0)})
      handles.push_back(queue.run_async({stream}));
  }
  for (const BatchHandle& handle : handles) handle.synchronize();
  EXPECT_EQ(handles[0].synchronize().is_behind, devices[0].backend() != Backend::kCpu);
  EXPECT_FALSE(handles[1].synchronize().is_behind);
  EXPECT_FALSE(handles[2].synchronize().is_behind);
  EXPECT_TRUE(std::equal(between.begin(), between.end(), words.sent.data()));
  EXPECT_TRUE(std::equal(between.begin(), between.end(), others.got.data()));
  unsetenv("SIMULATED_COPY");
}

TEST(BatchQueue, ABatchThatFailsBehindAnotherFailsAlone) {
  give_copies_a_speed();
  const std::vector<Device> devices = open_all_devices("auto", 1);
  BatchQueue queue(devices, with_rates(devices, 1e8, 2e9));
  const Words words(devices[0], 10'000, 5), others(devices[0], 10'000, 9);
  CommandStream throws = others.to(0);
  throws.kernel = [](const Device&, const Stream&) { throw std::runtime_error("no"); };
  CommandStream longer = words.to(0, false);  // than what is there: the device refuses it
  longer.bytes += 4096;
  for (int i = 0; i < 5; ++i) {
    const BatchHandle first = queue.run_async({words.to(0)}), second = queue.run_async({throws}),
                      third = queue.run_async({words.back(0)}),
                      fourth = queue.run_async({kIsSimulated ? longer : throws}),
                      last = queue.run_async({words.back(0)});
    EXPECT_THROW(second.synchronize(), std::runtime_error);
    EXPECT_ANY_THROW(fourth.synchronize());
    EXPECT_NO_THROW(first.synchronize());
    EXPECT_NO_THROW(third.synchronize());
    EXPECT_NO_THROW(last.synchronize());
    EXPECT_TRUE(words.is_right(1));
  }
  unsetenv("SIMULATED_COPY");
}

}  // namespace
