// How long a set of copies takes by each path, as measured on a machine.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <esker/device/device.hpp>

namespace esker::transfer {

/// How a set of copies is carried out.
enum class CopyPath : std::uint32_t {
  kSeparate,   // one call a copy: the copy engines
  kBatchCall,  // one call of the driver's for all, where it has one
  kKernel,     // a kernel whose lanes gather or scatter; host memory has to be pinned or managed
  kGraph,  // a graph of a node a copy, made for this set and waited for: to compare (see esker::DeviceGraph)
};
inline constexpr std::uint32_t kMeasuredPaths = 3;  // a graph that is made anew is never the fastest
/// "separate", "batch call", "kernel", "graph".
ESKER_API const char* to_string(CopyPath path) noexcept;

enum class Direction : std::uint32_t { kToDevice, kToHost, kWithin };
inline constexpr std::uint32_t kDirections = 3;
/// "to the device", "to the host", "within the device".
ESKER_API const char* to_string(Direction direction) noexcept;

/// Microseconds that a set of copies takes.
struct CopyTime {
  double us = 0;       // from the call to the end of the copies
  double host_us = 0;  // of these, in calls to the device, which a slower core prolongs

  /// On a core that takes `slowness` times as long for a call as the one that was measured.
  double us_at(double slowness) const { return us + (slowness - 1) * host_us; }
  CopyTime& operator+=(const CopyTime& other) {
    us += other.us;
    host_us += other.host_us;
    return *this;
  }
  CopyTime& operator-=(const CopyTime& other) {
    us -= other.us;
    host_us -= other.host_us;
    return *this;
  }
};

/// std::lerp() of both.
inline CopyTime lerp(const CopyTime& low, const CopyTime& high, double x) {
  return {std::lerp(low.us, high.us, x), std::lerp(low.host_us, high.host_us, x)};
}

/// The time of `n` copies of `bytes` each, at points of a grid; between them it is linear in each, which a
/// startup, a time a copy and a rate are exactly; where larger copies take less, it is as at the smaller
/// size.
///
/// Contract. A value. As built it holds what was measured on an H100 (docs/results/transfers.md), with the
///           host's part of an H200's host; of_machine() and measure_copies() say what holds here.
class ESKER_API CopyProfile {
 public:
  static constexpr std::uint32_t kCounts = 9, kSizes = 15;
  /// 1 to 256.
  static constexpr std::uint64_t count_at(std::uint32_t i) { return std::uint64_t{1} << i; }
  /// 512 B to 8 MiB.
  static constexpr std::uint64_t bytes_at(std::uint32_t i) { return std::uint64_t{512} << i; }

  CopyProfile();

  CopyTime time(Direction direction, CopyPath path, double n, double bytes) const;
  const CopyTime& at(Direction direction, CopyPath path, std::uint32_t count, std::uint32_t size) const {
    return times_[index(direction, path, count, size)];
  }
  void set(Direction direction, CopyPath path, std::uint32_t count, std::uint32_t size,
           const CopyTime& time) {
    times_[index(direction, path, count, size)] = time;
  }

  /// What was kept for devices of this kind, else as built. Error{kConfiguration}: the machine file is there,
  /// and says something else.
  static CopyProfile of_machine(const Device& device);
  /// For of_machine(). Error{kConfiguration}: the machine file cannot be written.
  void keep(const Device& device) const;
  /// {direction: {path: {"us": rows of counts, columns of sizes, "host_us": likewise}}}
  std::string json() const;

 private:
  static std::size_t index(Direction direction, CopyPath path, std::uint32_t count, std::uint32_t size) {
    const auto d = static_cast<std::size_t>(direction), p = static_cast<std::size_t>(path);
    return ((d * kMeasuredPaths + p) * kCounts + count) * kSizes + size;
  }

  std::vector<CopyTime> times_;
};

struct CopyMeasurement {
  std::size_t bytes = std::size_t{256} << 20;  // on each side: larger sets are computed
  std::uint32_t repeats = 7;
};
/// Measures each path, direction, number and size: some seconds. Nothing else should run on the device.
///
/// Errors. Error{kTransfer}: `bytes` is below 64 KiB.
ESKER_API CopyProfile measure_copies(const Device& device, const CopyMeasurement& how = {});

}  // namespace esker::transfer
