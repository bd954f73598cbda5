// The memory of a task graph's channels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/tasks/channel.hpp>
#include <esker/tasks/graph_check.hpp>
#include <esker/tasks/graph_hang.hpp>
#include <esker/tasks/graph_state.hpp>
#include <esker/tasks/hang.hpp>
#include <esker/tasks/options.hpp>

namespace esker::tasks::detail {

ESKER_PASS_BEGIN

/// Whole words of it.
template <class T>
struct alignas(alignof(T) < 4 ? 4 : alignof(T)) Cell {
  T value;
};

/// A channel of some type.
class AnyRing {
 public:
  virtual ~AnyRing() = default;
  virtual Ring view() const = 0;
  virtual void reset() = 0;
};
template <class T>
class RingOf final : public AnyRing {
 public:
  RingOf(const Device& device, std::uint32_t capacity) : channel_{device, {.capacity = capacity}} {}
  Ring view() const override { return channel_.view().template as<std::byte>(); }
  void reset() override { channel_.reset(); }

 private:
  Channel<Cell<T>> channel_;
};

/// Contract As Graph, whose it is: reports have the channels' options, by their numbers.
class GraphChannels {
 public:
  GraphChannels(const Device& device, const Options& options) : device_{device}, options_{options} {}

  template <class T>
  std::uint32_t add(GraphReport& report, const GraphChannelOptions& options, bool is_output) {
    static_assert(std::is_trivially_copyable_v<T>, "elements cross processors byte by byte");
    const auto number = static_cast<std::uint32_t>(memory_.size());
    GraphReport::Channel channel;
    channel.name = options.name.empty() ? "channel " + std::to_string(number) : options.name;
    if (number == kMostChannels || domains_ != 0) refuse_channel(channel.name, domains_ != 0);
    channel.options = options;
    channel.is_output = is_output;
    channel.element_bytes = sizeof(T);
    if (channel.options.capacity == 0) channel.options.capacity = 1;
    Memory memory;
    memory.words = sizeof(Cell<T>) / 4;
    memory.make_ring = [](const Device& device, std::uint32_t capacity) -> std::unique_ptr<AnyRing> {
      return std::make_unique<RingOf<T>>(device, capacity);
    };
    if (is_output) {
      memory.stacks = device_.memory<std::byte>(std::size_t{channel.options.capacity} * sizeof(T),
                                                {"an output of tasks"});
      memory.stack_capacity = channel.options.capacity;
    } else {
      memory.ring = memory.make_ring(device_, channel.options.capacity);
    }
    memory_.push_back(std::move(memory));
    report.channels.push_back(channel);
    return number;
  }

  void seed(std::uint32_t number, const void* elements, std::size_t n, std::size_t element_bytes,
            const Stream& stream) {
    Memory& memory = memory_[number];
    const std::size_t bytes = n * element_bytes;
    if (memory.seeds.size() < bytes)
      memory.seeds = device_.memory<std::byte>(bytes, {"elements that a task graph begins with", false});
    if (bytes != 0) {
      device_.copy_async(memory.seeds.data(), elements, bytes, stream);
      stream.synchronize();  // the user's memory is theirs again
    }
    memory.seed_count = n;
  }

  /// How many elements of each channel a domain's scratchpad has place for, and where.
  void lay_out(const GraphReport& report, std::uint32_t batch, std::uint32_t sums) {
    std::uint32_t words = 0;
    buffer_ = 2 * batch;
    for (const Memory& memory : memory_) words += memory.words;
    while (buffer_ > 1 && words * buffer_ > kMostWords) buffer_ /= 2;
    auto at = static_cast<std::uint32_t>(2 * sums + memory_.size() * sizeof(OwnChannel) / 4);
    for (std::size_t c = 0; c < memory_.size(); ++c) {
      memory_[c].buffer_at = at;
      if (!report.channels[c].is_output) at += buffer_ * memory_[c].words;
    }
    words_ = (at + 1) / 2 * 2;
  }
  std::uint32_t buffer() const { return buffer_; }
  std::uint32_t words() const { return words_; }

  /// What is for full channels: each has an equal part of memory_bytes.
  void allocate(const GraphReport& report, std::uint32_t domains) {
    if (domains_ == domains) return;
    for (std::size_t c = 0; c < memory_.size(); ++c) {
      const GraphReport::Channel& channel = report.channels[c];
      Memory& memory = memory_[c];
      if (channel.is_output || channel.options.when_full == WhenFull::kFail) continue;
      const std::uint64_t part = options_.memory_bytes / users_of_memory(report);
      if (channel.options.when_full == WhenFull::kSpill) {
        if (memory.spill != nullptr) continue;
        // An element has a place in two rings, of powers of two.
        const std::uint64_t n = std::min<std::uint64_t>(part / (memory.bytes() + 32), 1u << 30);
        if (n == 0) refuse_memory_of(channel.name, options_.memory_bytes);
        memory.spill = memory.make_ring(device_, static_cast<std::uint32_t>(n));
      } else {
        const std::uint64_t n = std::min<std::uint64_t>(part / domains / memory.bytes(), 1u << 30);
        if (n == 0) refuse_memory_of(channel.name, options_.memory_bytes);
        memory.stack_capacity = static_cast<std::uint32_t>(n);
        memory.stacks =
            device_.memory<std::byte>(n * domains * memory.bytes(), {"stacks of a task graph", false});
      }
    }
    domains_ = domains;
  }
  void reset() {
    for (Memory& memory : memory_) {
      if (memory.ring != nullptr) memory.ring->reset();
      if (memory.spill != nullptr) memory.spill->reset();
    }
  }

  /// Into the state that a run begins with. Returns how many seeds there are.
  std::uint64_t write(const GraphReport& report, GraphState& state) const {
    std::uint64_t seeds = 0;
    for (std::size_t c = 0; c < memory_.size(); ++c) {
      const Memory& memory = memory_[c];
      ChannelState& channel = state.channels[c];
      channel.ring = memory.ring != nullptr ? memory.ring->view() : Ring{};
      channel.spill = memory.spill != nullptr ? memory.spill->view() : Ring{};
      channel.stacks = memory.stacks.data();
      channel.seeds = memory.seeds.data();
      channel.seed_count = memory.seed_count;
      channel.stack_capacity = memory.stack_capacity;
      channel.words = memory.words;
      channel.buffer_at = memory.buffer_at;
      channel.when_full = report.channels[c].options.when_full;
      channel.next.store_relaxed(0);
      for (auto& count : channel.counts) count.store_relaxed(0);
      channel.most_waiting.store_relaxed(0);
      channel.most_stacked.store_relaxed(0);
      seeds += memory.seed_count;
    }
    return seeds;
  }
  void read(const GraphState& state, GraphReport& report) const {
    report.peak_memory_bytes = 0;
    for (std::size_t c = 0; c < memory_.size(); ++c) {
      const ChannelState& from = state.channels[c];
      GraphReport::Channel& to = report.channels[c];
      to.elements = from.counts[kElements].load_relaxed();
      if (to.is_output) to.elements = std::min<std::uint64_t>(from.next.load_relaxed(), to.options.capacity);
      to.batches = from.counts[kBatches].load_relaxed();
      to.full_batches = from.counts[kFullBatches].load_relaxed();
      to.shared = from.counts[kShared].load_relaxed();
      to.spilled = from.counts[kSpilled].load_relaxed();
      to.inlined = from.counts[kInlined].load_relaxed();
      to.peak = from.most_waiting.load_relaxed();
      to.peak_inlined = from.most_stacked.load_relaxed();
      report.peak_memory_bytes += (to.peak + to.peak_inlined) * memory_[c].bytes();
      if (to.is_output) report.peak_memory_bytes += to.elements * to.element_bytes;
    }
    report.memory_bound = memory_bound(report);
  }
  /// While a run is under way; its state is there in the device's memory.
  std::vector<Fullness> see(const GraphState* state, const Peek& peek) const {
    const auto seen = peek(state, 1);
    std::vector<Fullness> all(memory_.size());
    for (std::size_t c = 0; c < memory_.size(); ++c) {
      const ChannelState& channel = seen[0].channels[c];
      Fullness& is = all[c];
      if (memory_[c].ring == nullptr) {
        is.elements = std::min<std::uint64_t>(channel.next.load_relaxed(), memory_[c].stack_capacity);
        continue;
      }
      is = {waiting_in(channel.ring, peek), 0, channel.spill.capacity(), channel.seed_count,
            channel.seeds_left()};
      if (is.spill_capacity != 0) is.spilled = waiting_in(channel.spill, peek);
    }
    return all;
  }
  std::uint64_t memory_bound(const GraphReport& report) const {
    std::uint64_t bound = users_of_memory(report) != 0 ? options_.memory_bytes : 0;
    for (std::size_t c = 0; c < memory_.size(); ++c)
      bound += std::uint64_t{report.channels[c].options.capacity} * memory_[c].bytes();
    return bound;
  }
  const std::byte* elements(std::uint32_t output) const { return memory_[output].stacks.data(); }

 private:
  static constexpr std::uint32_t kMostWords = 1536;  // of a domain's buffers: more would cost domains

  struct Memory {
    std::uint32_t words = 0;  // of an element
    std::uint64_t bytes() const { return std::uint64_t{words} * 4; }
    std::uint32_t buffer_at = 0;
    std::unique_ptr<AnyRing> ring, spill;
    std::unique_ptr<AnyRing> (*make_ring)(const Device& device, std::uint32_t capacity) = nullptr;
    DeviceArray<std::byte> seeds, stacks;  // stacks: of an output, its elements
    std::uint64_t seed_count = 0;
    std::uint32_t stack_capacity = 0;
  };

  static std::uint64_t waiting_in(const Ring& ring, const Peek& peek) {
    using Published = IndexRing<Scope::kDevice>;
    const auto header = peek(ring.published().header(), Published::kHeaderWords);
    return Published::was_size(header.data());
  }
  static std::uint64_t users_of_memory(const GraphReport& report) {
    std::uint64_t users = 0;
    for (const auto& channel : report.channels) {
      if (!channel.is_output && channel.options.when_full != WhenFull::kFail) ++users;
    }
    return users;
  }

  const Device device_;
  const Options options_;
  std::vector<Memory> memory_;
  std::uint32_t buffer_ = 0, words_ = 0;
  std::uint32_t domains_ = 0;  // 0: nothing has run
};

ESKER_PASS_END

}  // namespace esker::tasks::detail
