// The producers' side: memory that a kernel and host threads share, and kernels that send. One
// implementation a device: cuda/ and cpu/.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <esker/aggregator/command.hpp>
#include <esker/device/platform.hpp>
#include <esker/queue/package_queue.hpp>

namespace esker::bench {

/// Widths of message that kernels are compiled for.
inline constexpr std::uint32_t kMessageWords[] = {1, 2, 3, 4, 8};
/// A block of an outbox that has one destination: an eighth of its pool.
inline constexpr std::uint32_t kOutboxBlockBytes = 4096;
inline constexpr std::uint32_t kOutboxGroupLanes = 256;
/// What an auto-grouping gathers at most: two stages fit in a block's static scratchpad.
inline constexpr std::uint32_t kMaxStageBytes = 2048 * 8;

enum class Election : std::uint8_t {
  kOutbox,  // what lanes of the runtime do on a GPU; there alone
  kAutoGroup,
  kPerLane,
  kPerWave,
  kPredicated,
  kFineGrain,
  kPerConvergedWave,
};

/// How the producers work.
struct Producing {
  Election election = Election::kAutoGroup;
  std::uint32_t words = 3;  // of a message
  std::uint32_t group_lanes = 1024;
  std::uint32_t slots = 512;
  std::uint32_t package_bytes = 16384;
};

/// What the lanes of one run send. Everything follows from these values, so the host can add up the same.
struct Production {
  std::uint64_t lanes;
  std::uint64_t per_lane;  // messages of a lane that sends; on average if is_divergent
  std::uint32_t destinations;
  std::uint32_t command;
  bool is_divergent;  // one lane in kIdleFactor sends, a random number of times (the thesis's GUPS-mod)

  static constexpr std::uint32_t kIdleFactor = 20;

  ESKER_HD static std::uint64_t mix(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  ESKER_HD std::uint64_t messages_of(std::uint64_t lane) const {
    if (!is_divergent) return per_lane;
    const std::uint64_t r = mix(lane);
    if (r % kIdleFactor != 0) return 0;
    return 1 + (r >> 32) % (2 * per_lane - 1);
  }
  /// Word 0 of message m of a lane: a random destination and offset. Word r is this plus r.
  ESKER_HD std::uint64_t first_word(std::uint64_t lane, std::uint64_t m) const {
    const std::uint64_t r = mix((lane + m * lanes + 1) * 0x9e3779b97f4a7c15u);
    const auto pe = static_cast<std::uint32_t>((r & 0xffffffffu) * destinations >> 32);
    return address_word(pe, (r >> 32) << 3);
  }
};

/// The queue's memory and the kernels that fill it: on a GPU the tail stands in its memory, the head and
/// the slots in pinned host memory.
///
/// Contract. One run at a time: start(), then finish() once every message has arrived, since a kernel ends
/// only when its packages find empty slots. Set-up and finish() throw std::runtime_error with what the
/// device says.
class Producers {
 public:
  explicit Producers(const Producing& how);
  ~Producers();
  Producers(const Producers&) = delete;
  Producers& operator=(const Producers&) = delete;

  const Producing& how() const { return how_; }
  PackageQueue queue() const;
  /// Lanes of this kernel that the device holds at once: a multiple of the group.
  std::uint64_t resident_lanes() const;
  /// Launches the kernel and returns at once.
  void start(const Production& production);
  void finish();
  /// What the kernel does, in words.
  std::string state() const;

 private:
  struct Memory;
  Producing how_;
  std::unique_ptr<Memory> memory_;
};

/// What the bus allows: all lanes of the device write 8-byte words, adjacent lanes adjacent words, to host
/// memory, round and round in a ring.
class PlainWriter {
 public:
  explicit PlainWriter(std::uint64_t ring_bytes);
  ~PlainWriter();
  PlainWriter(const PlainWriter&) = delete;
  PlainWriter& operator=(const PlainWriter&) = delete;

  /// Seconds that `bytes` took, rounded up to whole words.
  double write(std::uint64_t bytes);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

/// The back end that this build's kernels run on, as --device takes it, and the device's own name.
std::string producer_backend();
std::string producer_device();

}  // namespace esker::bench
