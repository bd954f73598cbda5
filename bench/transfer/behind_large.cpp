// How long a small copy waits behind a large one that has just begun.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include <fmt/format.h>

#include <esker/transfer.hpp>

#include "bench.hpp"

namespace esker::bench {

nlohmann::json take_behind_large(const TransferBench& bench) {
  using namespace transfer;
  using Clock = std::chrono::steady_clock;
  using std::chrono::duration;
  const Device& device = bench.devices[0];
  const std::size_t large = bench.most_bytes;
  constexpr std::size_t kSmall = 4096;
  const auto on_device = device.memory<std::byte>(large + kSmall);
  const auto from = device.pinned<std::byte>(large), small = device.pinned<std::byte>(kSmall);
  for (std::size_t i = 0; i < kSmall; ++i) small[i] = static_cast<std::byte>(i * 5 + 1);
  const Stream stream = device.stream(), other = device.stream(StreamPriority::kHigh);
  const Event end = device.event();

  std::vector<double> alone;
  for (std::uint32_t r = 0; r <= bench.repeats; ++r) {
    const Clock::time_point start = Clock::now();
    device.copy_async(on_device.data(), from.data(), large, stream);
    stream.synchronize();
    if (r > 0) alone.push_back(duration<double>(Clock::now() - start).count());
  }
  std::nth_element(alone.begin(), alone.begin() + static_cast<std::ptrdiff_t>(alone.size() / 2), alone.end());
  const double whole = alone[alone.size() / 2];
  CopyQueueOptions options;
  options.bytes_per_s = static_cast<double>(large) / whole;
  CopyQueue queue(device, options);

  // Each: seconds from the call to the end of the small copy, and of the large one from its own.
  struct Times {
    double small_s, large_s;
  };
  const auto begin_large = [&] { std::this_thread::sleep_for(duration<double>(whole / 5)); };
  const struct {
    const char* name;
    std::function<Times()> run;
  } sides[] = {
      {"in chunks",
       [&] {
         const Clock::time_point start = Clock::now();
         const CopyTicket first = queue.submit({on_device.data(), from.data(), large});
         begin_large();
         const Clock::time_point called = Clock::now();
         queue.submit({on_device.data() + large, small.data(), kSmall}, StreamPriority::kHigh).synchronize();
         const double waited = duration<double>(Clock::now() - called).count();
         first.synchronize();
         return Times{waited, duration<double>(Clock::now() - start).count()};
       }},
      {"one stream",
       [&] {
         const Clock::time_point start = Clock::now();
         device.copy_async(on_device.data(), from.data(), large, stream);
         begin_large();
         const Clock::time_point called = Clock::now();
         device.copy_async(on_device.data() + large, small.data(), kSmall, stream);
         stream.record(end);
         end.synchronize();
         return Times{duration<double>(Clock::now() - called).count(),
                      duration<double>(Clock::now() - start).count()};
       }},
      {"two streams", [&] {
         const Clock::time_point start = Clock::now();
         device.copy_async(on_device.data(), from.data(), large, stream);
         begin_large();
         const Clock::time_point called = Clock::now();
         device.copy_async(on_device.data() + large, small.data(), kSmall, other);
         other.record(end);
         end.synchronize();
         const double waited = duration<double>(Clock::now() - called).count();
         stream.synchronize();
         return Times{waited, duration<double>(Clock::now() - start).count()};
       }}};
  nlohmann::json all = {
      {"large_bytes", large}, {"large_alone_s", whole}, {"chunk_bytes", queue.chunk_bytes()}};
  fmt::print("{} bytes alone: {:.3f} ms; chunks of {} bytes\n", large, whole * 1e3, queue.chunk_bytes());
  for (const auto& side : sides) {
    std::vector<double> waits, larges;
    bool is_right = true;
    for (std::uint32_t r = 0; r <= bench.repeats; ++r) {
      const Times times = side.run();
      std::byte read[kSmall];
      device.copy(read, on_device.data() + large, kSmall);
      is_right = is_right && std::memcmp(read, small.data(), kSmall) == 0;
      device.fill(on_device.data() + large, 0, kSmall, stream);
      stream.synchronize();
      if (r == 0) continue;
      waits.push_back(times.small_s);
      larges.push_back(times.large_s);
    }
    std::sort(waits.begin(), waits.end());
    std::sort(larges.begin(), larges.end());
    const double median_wait = waits[waits.size() / 2], median_large = larges[larges.size() / 2];
    fmt::print("{:12} 4 KiB: {:10.1f} us (up to {:.1f}); the large one {:.3f} ms, {:.3f} of alone{}\n",
               side.name, median_wait * 1e6, waits.back() * 1e6, median_large * 1e3, median_large / whole,
               is_right ? "" : " WRONG");
    all[side.name] = {{"small_median_s", median_wait},
                      {"small_max_s", waits.back()},
                      {"large_median_s", median_large},
                      {"verified", is_right}};
  }
  return all;
}

}  // namespace esker::bench
