// What tests of batches share: machines whose rates are given, and words that go there and back.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <vector>

#include <esker/device.hpp>
#include <esker/transfer.hpp>

namespace esker::transfer {

using namespace std::chrono_literals;

inline constexpr bool kIsSimulated =
#if defined(ESKER_TEST_SIMULATED)
    true;
#else
    false;
#endif

struct AddOne {
  std::uint32_t* words;
  ESKER_HD void operator()(Lane lane) const { words[lane.global_id()] += 1; }
};

/// Copies take time, and their root is shared.
inline void give_copies_a_speed() {
  setenv("SIMULATED_COPY", "bytes_per_s=1e8,both_bytes_per_s=1.5e8,root_bytes_per_s=2e8,startup_us=500", 1);
}

/// The machine with these rates, for tests that measure nothing.
inline Topology with_rates(const std::vector<Device>& devices, double bytes_per_s, double root_bytes_per_s) {
  Topology t = machine_topology(devices);
  for (std::uint32_t link = 0; link < t.links().size(); ++link) {
    const bool is_last = t.nodes()[t.links()[link].from].kind == Topology::Kind::kDevice ||
                         t.nodes()[t.links()[link].to].kind == Topology::Kind::kDevice;
    t.set_rate(link, is_last ? LinkRate{bytes_per_s, 0, 200e-6} : LinkRate{root_bytes_per_s});
  }
  return t;
}

/// Words on a device, and what the host sends and gets.
struct Words {
  Words(const Device& device, std::size_t n, std::uint32_t first)
      : there{device.memory<std::uint32_t>(n)},
        sent{device.pinned<std::uint32_t>(n)},
        got{device.pinned<std::uint32_t>(n)} {
    std::iota(sent.data(), sent.data() + n, first);
  }
  CommandStream to(std::int32_t device, bool with_kernel = true) const {
    CommandStream stream;
    stream.to = device;
    stream.destination = there.data();
    stream.source = sent.data();
    stream.bytes = there.size_bytes();
    if (with_kernel) {
      stream.kernel = [words = there.data(), n = there.size()](const Device& d, const Stream& s) {
        d.launch(n, AddOne{words}, s);
      };
      stream.kernel_time = 1ms;
    }
    return stream;
  }
  CommandStream back(std::int32_t device) const {
    CommandStream stream;
    stream.from = device;
    stream.destination = got.data();
    stream.source = there.data();
    stream.bytes = there.size_bytes();
    return stream;
  }
  bool is_right(std::uint32_t added) const {
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (got[i] != sent[i] + added) return false;
    }
    return true;
  }
  DeviceArray<std::uint32_t> there;
  PinnedArray<std::uint32_t> sent, got;
};

}  // namespace esker::transfer
