// How full topics are, and what stages wait for: read from time to time while a run goes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/pipeline/run_memory.hpp>
#include <esker/pipeline/topology.hpp>

namespace esker::pipeline::detail {

/// What all teams of a stage do, as far as its topics tell.
struct StageActivity {
  enum class What : std::uint32_t { kBusy, kStarved, kBlocked, kEnded };
  What what = What::kBusy;
  std::uint32_t topic =
      kNone;  // kStarved: its first input that has not ended; kBlocked: the output that is full
  bool operator==(const StageActivity&) const = default;
};

/// Contract The monitor's thread calls. A sample reads a few words of each topic and stage and writes none.
///          Words that are in a GPU's memory, which are those of topics between stages of the GPU, it has
///          copied, and more seldom: until that has happened once nothing is known of these topics.
/// Errors   Error of the device, from a copy.
class Sampler {
 public:
  Sampler(const Topology& topology, const RunMemory& memory);

  void sample(std::chrono::steady_clock::time_point now);

  struct Fill {
    std::uint64_t samples = 0, sum = 0, highest = 0;
    std::uint64_t now = 0;  // in the last sample
  };
  const Fill& fill(std::uint32_t topic) const { return topics_[topic].fill; }
  /// That a frame of the topic goes through, one after the other.
  std::uint32_t rings(std::uint32_t topic) const { return topics_[topic].rings; }
  /// In the last sample. None: not known.
  std::optional<StageActivity> activity(std::uint32_t stage) const;

 private:
  /// How far those have come who read a ring: subscribers, and the movers of a topic that they copy.
  struct Reader {
    const Word* freed;     // one a slot; null: in the GPU's memory
    std::uint64_t at;      // frames
    std::uint32_t behind;  // the mover that it reads what it has moved; kNone: it reads what is published
  };
  struct TopicState {
    TopicView ring;               // that producers publish into
    bool is_visible;              // to the host, without a copy
    std::vector<Reader> readers;  // subscribers, in order
    std::vector<Reader> movers;
    std::uint32_t rings = 1;
    std::uint64_t published = 0;
    std::uint64_t reserved = 0;  // with those that are being filled
    bool has_ended = false;
    Fill fill;
  };
  void sample_visible(TopicState& topic, bool is_from_host);
  static std::uint64_t there_for(const TopicState& topic, const Reader& reader);
  void sample_copied(TopicState& topic, std::uint32_t number, const RunMemory::Snapshot& words);
  std::uint64_t available(std::uint32_t topic, std::uint32_t reader) const;
  bool is_full(std::uint32_t topic, std::uint32_t producer) const;

  static constexpr std::chrono::milliseconds kCopyEvery{10};
  const Topology& topology_;
  const RunMemory& memory_;
  bool copies_ = false;  // some topic is in the GPU's memory
  std::chrono::steady_clock::time_point copied_at_{};
  std::vector<TopicState> topics_;
};

}  // namespace esker::pipeline::detail
