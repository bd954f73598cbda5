// Some processors of a GPU for what runs next, and none of the others.
#include <chrono>
#include <stdexcept>
#include <thread>

#include "sides.hpp"

namespace esker::bench {

struct WordsOfHold {
  DeviceAtomic<std::uint32_t> started, left, release;
};

/// Groups of one wave, one a processor. When all have started, those beyond `held` leave.
struct HoldProcessors {
  WordsOfHold* words;
  std::uint32_t groups, held;
  ESKER_HD void operator()(Lane lane) const {
    if (lane.lane() != 0) return;
    (void)words->started.fetch_add_relaxed(1);
    while (words->started.load_relaxed() < groups && words->release.load_relaxed() == 0) Lane::yield();
    if (lane.group_id() >= held) {
      (void)words->left.fetch_add_relaxed(1);
      return;
    }
    while (words->release.load_relaxed() == 0) {
      for (int i = 0; i < 50; ++i) Lane::yield();
    }
  }
};

class ProcessorsHeld::State {
 public:
  State(const Device& device, std::uint32_t processors_left)
      : device_{device},
        stream_{device.stream()},
        words_{device.memory<WordsOfHold>(1)},
        seen_{device.pinned<WordsOfHold>(1)} {
    const std::uint32_t processors = device.properties().processors;
    const std::uint32_t scratch = device.properties().group_scratch_bytes;
    const std::uint32_t lanes = device.properties().wave_lanes;
    const HoldProcessors hold{words_.data(), processors, processors - processors_left};
    // What a simulated GPU takes every kernel to declare does not fit beside all there is.
    const bool is_simulated = device.backend() == Backend::kSimulated;
    if (!is_simulated && device.resident_groups(hold, lanes, scratch) != processors)
      throw std::runtime_error("a processor has scratchpad for more than one group that takes all of it");
    device.launch(LaunchShape{std::uint64_t{processors} * lanes, lanes}, hold, stream_,
                  is_simulated ? 0 : scratch);
    const auto start = std::chrono::steady_clock::now();
    while (true) {
      device.copy(seen_.data(), words_.data(), sizeof(WordsOfHold));
      if (seen_[0].started.load_relaxed() == processors && seen_[0].left.load_relaxed() == processors_left)
        return;
      if (std::chrono::steady_clock::now() - start > std::chrono::seconds{5}) {
        release();
        throw std::runtime_error("processors cannot be held: the device is not idle");
      }
      std::this_thread::sleep_for(std::chrono::microseconds{50});
    }
  }
  ~State() { release(); }

 private:
  void release() {
    seen_[0].release.store_relaxed(1);
    device_.copy(&words_.data()->release, &seen_[0].release, sizeof(std::uint32_t));
    stream_.synchronize();
  }

  const Device device_;
  const Stream stream_;
  DeviceArray<WordsOfHold> words_;
  PinnedArray<WordsOfHold> seen_;
};

ProcessorsHeld::ProcessorsHeld(const Device& device, std::uint32_t processors_left) {
  if (device.backend() != Backend::kCpu && processors_left < device.properties().processors)
    state_ = std::make_unique<State>(device, processors_left);
}
ProcessorsHeld::~ProcessorsHeld() = default;

}  // namespace esker::bench
