// Figure 7 of Verner et al.: aggregate bandwidth of devices that copy at the same time.
#include <string>

#include <fmt/format.h>

#include "bench.hpp"

namespace esker::bench {

namespace {

struct End {
  End(const Device& d, std::size_t bytes, std::uint32_t seed)
      : device{d},
        there{d.memory<std::byte>(bytes)},
        back{d.memory<std::byte>(bytes)},
        from{d.pinned<std::byte>(bytes)},
        to{d.pinned<std::byte>(bytes)},
        down{d.stream()},
        up{d.stream()} {
    fill(device, from.data(), bytes, 2 * seed);
    fill(device, back.data(), bytes, 2 * seed + 1);
  }
  Device device;
  DeviceArray<std::byte> there, back;
  PinnedArray<std::byte> from, to;
  Stream down, up;
};

}  // namespace

nlohmann::json take_bandwidth(const TransferBench& bench) {
  const std::size_t bytes = bench.most_bytes;
  std::vector<End> ends;
  for (const Device& device : bench.devices)
    ends.emplace_back(device, bytes, static_cast<std::uint32_t>(ends.size()));
  nlohmann::json all;
  fmt::print("{:12} {:>10} {:>10} {:>10}  GB/s in all, copies of {} bytes\n", "devices", "H2D", "D2H", "Bi",
             bytes);
  std::vector<std::vector<std::size_t>> sets;
  for (std::size_t i = 0; i < ends.size(); ++i) sets.push_back({i});
  for (std::size_t i = 1; i < ends.size() && ends.size() > 2; ++i) sets.push_back({0, i});
  std::vector<std::size_t> every;
  for (std::size_t i = 0; i < ends.size(); ++i) every.push_back(i);
  if (every.size() > 1) sets.push_back(every);
  for (const auto& set : sets) {
    std::string name;
    for (const std::size_t i : set) name.append(name.empty() ? "" : ",").append(std::to_string(i));
    std::vector<TransferSide> sides;
    std::vector<double> sent;  // by a side
    for (const char* const way : {"h2d", "d2h", "bi"}) {
      const bool is_down = way != std::string("d2h"), is_up = way != std::string("h2d");
      std::vector<PlacedCopy> copies;
      for (const std::size_t i : set) {
        const End& e = ends[i];
        if (is_down) copies.push_back({e.device, {e.there.data(), e.from.data(), bytes}});
        if (is_up) copies.push_back({e.device, {e.to.data(), e.back.data(), bytes}});
      }
      sides.push_back({way, [&ends, &set, is_down, is_up, bytes] {
                         for (const std::size_t i : set) {
                           const End& e = ends[i];
                           if (is_down) e.device.copy_async(e.there.data(), e.from.data(), bytes, e.down);
                           if (is_up) e.device.copy_async(e.to.data(), e.back.data(), bytes, e.up);
                         }
                         for (const std::size_t i : set) {
                           ends[i].down.synchronize();
                           ends[i].up.synchronize();
                         }
                       }});
      sent.push_back(static_cast<double>(copies.size() * bytes));
      verify(copies, sides.back().call, fmt::format("devices {}, {}", name, way));
    }
    const std::vector<Microseconds> times = take_turns(bench, sides, 1);
    fmt::print("{:12}", name);
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const double rate = sent[i] / times[i].median / 1e3;
      fmt::print(" {:10.2f}", rate);
      all[name][sides[i].name + "_gb_per_s"] = rate;
    }
    fmt::print("\n");
    std::fflush(stdout);
  }
  return all;
}

}  // namespace esker::bench
