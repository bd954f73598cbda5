// How long a small copy waits behind a large one that has just begun.
#include <chrono>
#include <string>
#include <thread>

#include <fmt/format.h>

#include <esker/transfer.hpp>

#include "../harness/measure.hpp"
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
  fill(device, from.data(), large, 1);
  fill(device, small.data(), kSmall, 2);
  const Stream stream = device.stream(), other = device.stream(StreamPriority::kHigh);
  const Event end = device.event();
  const Copy large_copy{on_device.data(), from.data(), large};
  const Copy small_copy{on_device.data() + large, small.data(), kSmall};
  const auto start = [&](const Copy& copy, const Stream& on) {
    device.copy_async(copy.to, copy.from, copy.bytes, on);
  };

  const double whole = 1e-6 * take_turns(bench,
                                         {{"alone",
                                           [&] {
                                             start(large_copy, stream);
                                             stream.synchronize();
                                           }}},
                                         1)[0]
                                  .median;
  CopyQueueOptions options;
  options.bytes_per_s = static_cast<double>(large) / whole;
  CopyQueue queue(device, options);

  // A side's call ends with the large copy; it keeps the seconds from the call of the small one to its end.
  std::vector<std::vector<double>> waits(3);
  const auto wait_for_small = [&](std::size_t side, const auto& small_one) {
    std::this_thread::sleep_for(duration<double>(whole / 5));  // the large one has begun
    const Clock::time_point called = Clock::now();
    small_one();
    waits[side].push_back(duration<double>(Clock::now() - called).count());
  };
  const std::vector<TransferSide> sides{
      {"in chunks",
       [&] {
         const CopyTicket first = queue.submit(large_copy);
         wait_for_small(0, [&] { queue.submit(small_copy, StreamPriority::kHigh).synchronize(); });
         first.synchronize();
       }},
      {"one stream",
       [&] {
         start(large_copy, stream);
         wait_for_small(1, [&] {
           start(small_copy, stream);
           stream.record(end);
           end.synchronize();
         });
       }},
      {"two streams", [&] {
         start(large_copy, stream);
         wait_for_small(2, [&] {
           start(small_copy, other);
           other.record(end);
           end.synchronize();
         });
         stream.synchronize();
       }}};
  for (const TransferSide& side : sides)
    verify(std::vector<PlacedCopy>{{device, large_copy}, {device, small_copy}}, side.call, side.name);
  for (std::vector<double>& of_side : waits) of_side.clear();
  const std::vector<Microseconds> times = take_turns(bench, sides, 1);
  nlohmann::json all = {
      {"large_bytes", large}, {"large_alone_s", whole}, {"chunk_bytes", queue.chunk_bytes()}};
  fmt::print("{} bytes alone: {:.3f} ms; chunks of {} bytes\n", large, whole * 1e3, queue.chunk_bytes());
  for (std::size_t i = 0; i < sides.size(); ++i) {
    waits[i].erase(waits[i].begin());  // the turn that is not timed
    const Rate waited = summarise(waits[i]);
    const double large_s = 1e-6 * times[i].median;
    fmt::print("{:12} 4 KiB: {:10.1f} us (up to {:.1f}); the large one {:.3f} ms, {:.3f} of alone\n",
               sides[i].name, waited.median * 1e6, waited.highest * 1e6, large_s * 1e3, large_s / whole);
    all[sides[i].name] = {
        {"small_median_s", waited.median}, {"small_max_s", waited.highest}, {"large_median_s", large_s}};
  }
  return all;
}

}  // namespace esker::bench
