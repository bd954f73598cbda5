// Figure 7 of Verner et al.: aggregate bandwidth of devices that copy at the same time.
#include <algorithm>
#include <chrono>
#include <string>

#include <fmt/format.h>

#include "bench.hpp"

namespace esker::bench {

namespace {

struct End {
  End(const Device& d, std::size_t bytes)
      : device{d},
        there{d.memory<std::byte>(bytes)},
        back{d.memory<std::byte>(bytes)},
        from{d.pinned<std::byte>(bytes)},
        to{d.pinned<std::byte>(bytes)},
        down{d.stream()},
        up{d.stream()} {}
  Device device;
  DeviceArray<std::byte> there, back;
  PinnedArray<std::byte> from, to;
  Stream down, up;
};

}  // namespace

nlohmann::json take_bandwidth(const TransferBench& bench) {
  using Clock = std::chrono::steady_clock;
  std::vector<End> ends;
  for (const Device& device : bench.devices) ends.emplace_back(device, bench.most_bytes);
  nlohmann::json all;
  fmt::print("{:12} {:>10} {:>10} {:>10}  GB/s in all, copies of {} bytes\n", "devices", "H2D", "D2H", "Bi",
             bench.most_bytes);
  std::vector<std::vector<std::size_t>> sets;
  for (std::size_t i = 0; i < ends.size(); ++i) sets.push_back({i});
  for (std::size_t i = 1; i < ends.size() && ends.size() > 2; ++i) sets.push_back({0, i});
  std::vector<std::size_t> every;
  for (std::size_t i = 0; i < ends.size(); ++i) every.push_back(i);
  if (every.size() > 1) sets.push_back(every);
  for (const auto& set : sets) {
    double rates[3];
    for (const int way : {0, 1, 2}) {
      std::vector<double> times;
      for (std::uint32_t r = 0; r <= bench.repeats; ++r) {
        const Clock::time_point start = Clock::now();
        for (const std::size_t i : set) {
          End& e = ends[i];
          if (way != 1) e.device.copy_async(e.there.data(), e.from.data(), bench.most_bytes, e.down);
          if (way != 0) e.device.copy_async(e.to.data(), e.back.data(), bench.most_bytes, e.up);
        }
        for (const std::size_t i : set) {
          ends[i].down.synchronize();
          ends[i].up.synchronize();
        }
        if (r > 0) times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      }
      std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                       times.end());
      const auto copies = static_cast<double>(set.size() * (way == 2 ? 2 : 1));
      rates[way] = copies * static_cast<double>(bench.most_bytes) / times[times.size() / 2] / 1e9;
    }
    std::string name;
    for (const std::size_t i : set) name += (name.empty() ? "" : ",") + std::to_string(i);
    fmt::print("{:12} {:10.2f} {:10.2f} {:10.2f}\n", name, rates[0], rates[1], rates[2]);
    all[name] = {{"h2d_gb_per_s", rates[0]}, {"d2h_gb_per_s", rates[1]}, {"bi_gb_per_s", rates[2]}};
  }
  return all;
}

}  // namespace esker::bench
