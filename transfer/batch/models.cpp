// Weights of the modelled systems, and where each is from.
#include <esker/transfer/batch/models.hpp>

#include <esker/error.hpp>

#include <fmt/format.h>

namespace esker::transfer {

namespace {

using Kind = Topology::Kind;
using Engines = Topology::Engines;

constexpr double kMiB = 1 << 20;

LinkRate at(double gigabytes_per_s, double both = 0) { return {gigabytes_per_s * 1e9, both * 1e9}; }

/// GB/s of `mib` MiB in `ms`, as Table 2 has them.
constexpr double speed(double mib, double ms) { return mib * kMiB / (ms * 1e-3) / 1e9; }

}  // namespace

Topology example_system() {
  Topology t("example");
  const auto memory = t.add("MEM", Kind::kMemory), cpu = t.add("CPU", Kind::kProcessor);
  const auto hub = t.add("IOH", Kind::kHub);
  t.connect(memory, cpu, {}, {});
  t.connect(cpu, hub, at(8), at(8));
  for (int i = 0; i < 4; ++i) t.connect(hub, t.add(fmt::format("GPU{}", i), Kind::kDevice), at(6), at(6));
  return t;
}

Topology nehalem_system() {
  // Table 2, to the device: 10 ms of each time are the kernel. 128 MiB share the hub's link with as many,
  // then 128 MiB go alone.
  constexpr double kHub = 2 * speed(128, 38.46 - 10), kGpu = speed(128, 60.71 - 38.46);
  constexpr double kHubBack = 2 * speed(128, 61.12), kGpuBack = speed(128, 91.69 - 61.12);
  constexpr double kRemote = 0.8 * kGpu, kRemoteBack = 0.8 * kGpuBack;
  Topology t("nehalem");
  const auto memory = t.add("M0", Kind::kMemory), cpu0 = t.add("CPU0", Kind::kProcessor);
  const auto cpu1 = t.add("CPU1", Kind::kProcessor), memory1 = t.add("M1", Kind::kMemory);
  const auto hub0 = t.add("IOH0", Kind::kHub), hub1 = t.add("IOH1", Kind::kHub);
  t.connect(memory, cpu0, at(kHub), at(kHubBack));
  t.connect(memory1, cpu1, {}, {});
  t.connect(cpu0, hub0, at(kHub), at(kHubBack));
  t.connect(cpu0, cpu1, at(1.33 * kRemote), at(kRemoteBack));
  t.connect(cpu1, hub1, {}, {});
  for (int i = 0; i < 4; ++i) {
    const auto gpu = t.add(fmt::format("GPU{}", i), Kind::kDevice, Engines::kOne);
    t.connect(i < 2 ? hub0 : hub1, gpu, at(i < 2 ? kGpu : kRemote), at(i < 2 ? kGpuBack : kRemoteBack));
  }
  return t;
}

Topology sandy_bridge_system() {
  // Table 2: 32 MiB and as much of 64 MiB share a card, the rest of 64 MiB goes alone; 128 and 256 MiB alike.
  constexpr double kCard0 = 2 * speed(128, 32.25 - 10), kGpu0 = speed(128, 43.74 - 32.25);
  constexpr double kCard1 = 2 * speed(32, 15.60 - 10), kGpu2 = speed(32, 18.40 - 15.60);
  constexpr double kCard0Back = 2 * speed(128, 22.02), kGpu0Back = speed(128, 34.11 - 22.02);
  constexpr double kCard1Back = 2 * speed(32, 5.72), kGpu2Back = speed(32, 8.59 - 5.72);
  constexpr double kCardBoth = 10, kAll = kCard0 + kCard1, kAllBack = kCard0Back + kCard1Back;
  constexpr double kAllBoth = 1.1 * (kAll + kAllBack) / 4;
  Topology t("sandy-bridge");
  const auto memory = t.add("M0", Kind::kMemory), cpu0 = t.add("CPU0", Kind::kProcessor);
  const auto cpu1 = t.add("CPU1", Kind::kProcessor), memory1 = t.add("M1", Kind::kMemory);
  const auto card0 = t.add("SW0", Kind::kSwitch), card1 = t.add("SW1", Kind::kSwitch);
  t.connect(memory, cpu0, at(kAll, kAllBoth), at(kAllBack, kAllBoth));
  t.connect(memory1, cpu1, {}, {});
  t.connect(cpu0, cpu1, {}, {});  // QPI at 16 GB/s is wider than the card behind it
  t.connect(cpu0, card0, at(kCard0, kCardBoth), at(kCard0Back, kCardBoth));
  t.connect(cpu1, card1, at(kCard1, kCardBoth), at(kCard1Back, kCardBoth));
  for (int i = 0; i < 4; ++i) {
    const auto gpu = t.add(fmt::format("GPU{}", i), Kind::kDevice);
    t.connect(i < 2 ? card0 : card1, gpu, at(i < 2 ? kGpu0 : kGpu2), at(i < 2 ? kGpu0Back : kGpu2Back));
  }
  return t;
}

Topology modelled_system(const std::string& name) {
  if (name == "example") return example_system();
  if (name == "nehalem") return nehalem_system();
  if (name == "sandy-bridge") return sandy_bridge_system();
  throw Error(Error::Kind::kTransfer,
              fmt::format("modelled_system: there is no '{}': example, nehalem, sandy-bridge", name));
}

}  // namespace esker::transfer
