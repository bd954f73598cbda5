// Copies in chunks: everything arrives, and a small copy overtakes a large one.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <esker/device.hpp>
#include <esker/transfer.hpp>

#include "../device/gtest.hpp"
#include "refusal.hpp"

namespace {

using namespace esker;
using namespace esker::transfer;
using namespace std::chrono_literals;

CopyQueueOptions options_of(double bytes_per_s, std::chrono::nanoseconds chunk) {
  CopyQueueOptions options;
  options.bytes_per_s = bytes_per_s;
  options.chunk_time = chunk;
  return options;
}

TEST(CopyQueue, EverythingArrivesInOrder) {
  const Device device = Device::open();
  CopyQueue there(device, options_of(1e8, 1ms)), back(device, options_of(1e8, 1ms));
  EXPECT_EQ(there.chunk_bytes(), 24u * 4096);
  constexpr std::size_t kWords = 100'003;
  const auto on_device = device.memory<std::uint32_t>(kWords);
  const auto from = device.pinned<std::uint32_t>(kWords), to = device.pinned<std::uint32_t>(kWords);
  std::iota(from.data(), from.data() + kWords, 5u);
  std::vector<CopyTicket> tickets;
  // Later ones write over part of the earlier ones.
  tickets.push_back(there.submit({on_device.data(), from.data() + 3, (kWords - 3) * 4}));
  for (const std::size_t n : {0u, 1u, 1000u, 40'000u})
    tickets.push_back(there.submit({on_device.data(), from.data(), n * 4}));
  tickets.push_back(there.submit({on_device.data() + 50'000, from.data() + 50'000, (kWords - 50'000) * 4}));
  for (const CopyTicket& ticket : tickets) ticket.synchronize();
  for (const CopyTicket& ticket : tickets) EXPECT_TRUE(ticket.is_done());
  back.submit({to.data(), on_device.data(), kWords * 4}).synchronize();
  for (std::size_t i = 0; i < kWords; ++i)
    ASSERT_EQ(to[i], i < 40'000 || i >= 50'000 ? from[i] : from[i + 3]) << i;
}

TEST(CopyQueue, ASmallCopyOvertakesALargeOne) {
  setenv("SIMULATED_COPY", "bytes_per_s=1e8", 1);
  const Device device = Device::open();
  constexpr std::size_t kLarge = 16 << 20, kSmall = 4096;  // 168 ms; a chunk takes 1 ms
  const auto on_device = device.memory<std::uint8_t>(kLarge + kSmall);
  const auto large = device.pinned<std::uint8_t>(kLarge), small = device.pinned<std::uint8_t>(kSmall),
             got = device.pinned<std::uint8_t>(kLarge + kSmall);
  for (std::size_t i = 0; i < kLarge; ++i) large[i] = static_cast<std::uint8_t>(i * 7);
  for (std::size_t i = 0; i < kSmall; ++i) small[i] = static_cast<std::uint8_t>(i * 3 + 1);
  {
    CopyQueue queue(device, options_of(1e8, 1ms));
    const CopyTicket first = queue.submit({on_device.data(), large.data(), kLarge});
    const CopyTicket second =
        queue.submit({on_device.data() + kLarge, small.data(), kSmall}, StreamPriority::kHigh);
    second.synchronize();
    EXPECT_TRUE(second.is_done());
    EXPECT_TRUE(device.backend() != Backend::kSimulated || !first.is_done());
    first.synchronize();
  }
  unsetenv("SIMULATED_COPY");
  device.copy(got.data(), on_device.data(), kLarge + kSmall);
  for (std::size_t i = 0; i < kLarge; ++i) ASSERT_EQ(got[i], large[i]) << i;
  for (std::size_t i = 0; i < kSmall; ++i) ASSERT_EQ(got[kLarge + i], small[i]) << i;
}

TEST(CopyQueue, EndsWhatItHasBeforeItIsDestroyed) {
  setenv("SIMULATED_COPY", "bytes_per_s=1e8", 1);
  const Device device = Device::open();
  constexpr std::size_t kWords = 400'000;  // 16 ms at that speed
  for (const StreamPriority last : {StreamPriority::kNormal, StreamPriority::kHigh}) {
    const auto on_device = device.memory<std::uint32_t>(2 * kWords);
    const auto from = device.pinned<std::uint32_t>(2 * kWords), to = device.pinned<std::uint32_t>(2 * kWords);
    std::iota(from.data(), from.data() + 2 * kWords, 1u);
    device.copy(on_device.data(), from.data(), from.size_bytes());
    {
      CopyQueue queue(device, options_of(1e8, 1ms));
      const bool is_high_last = last == StreamPriority::kHigh;
      queue.submit({to.data(), on_device.data(), kWords * 4},
                   is_high_last ? StreamPriority::kNormal : StreamPriority::kHigh);
      queue.submit({to.data() + kWords, on_device.data() + kWords, kWords * 4}, last);
    }
    EXPECT_EQ(to[kWords - 1], kWords);
    EXPECT_EQ(to[2 * kWords - 1], 2 * kWords);
  }
  unsetenv("SIMULATED_COPY");
}

// The device refuses its third chunk, while the first two are under way.
TEST(CopyQueue, ACopyThatFailsIsDoneWhenItsChunksAre) {
  if (Device::open().backend() != Backend::kSimulated) GTEST_SKIP() << "nothing here refuses a copy";
  setenv("SIMULATED_COPY", "bytes_per_s=1e6", 1);
  const Device device = Device::open();
  CopyQueue queue(device, options_of(1e6, 10ms));
  const std::size_t chunk = queue.chunk_bytes(), there = 2 * chunk + 4096;
  const auto from = device.memory<std::uint8_t>(there);
  const auto to = device.pinned<std::uint8_t>(4 * chunk);
  const Stream stream = device.stream();
  device.fill(from.data(), 7, there, stream);
  stream.synchronize();
  for (const StreamPriority priority : {StreamPriority::kNormal, StreamPriority::kHigh}) {
    std::fill(to.data(), to.data() + 4 * chunk, std::uint8_t{0});
    try {
      queue.submit({to.data(), from.data(), 4 * chunk}, priority).synchronize();
      ADD_FAILURE() << "it leaves its memory";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kDevice);
    }
    EXPECT_EQ(to[2 * chunk - 1], 7);
    const CopyTicket next = queue.submit({to.data(), from.data(), chunk});
    EXPECT_NO_THROW(next.synchronize());
    EXPECT_TRUE(next.is_done());
  }
  unsetenv("SIMULATED_COPY");
}

TEST(CopyQueue, RefusesWhatItCannotDo) {
  const Device device = Device::open();
  EXPECT_EQ(refusal([&] { CopyQueue queue(device, {}); }),
            "CopyQueue: 0 bytes/s, chunks of 20000 ns, 3 in flight: all are above 0");
  CopyQueue queue(device, options_of(1e9, 1ms));
  EXPECT_NE(refusal([&] {
              queue.submit({nullptr, &queue, 8});
            }).find("has no destination"),
            std::string::npos);
  queue.submit({nullptr, nullptr, 0}).synchronize();
}

}  // namespace
