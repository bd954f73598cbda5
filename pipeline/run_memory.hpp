// The memory of a run: topics' frames and words, and each side's view of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <esker/device/device.hpp>
#include <esker/pipeline/memory_pool.hpp>
#include <esker/pipeline/run_view.hpp>
#include <esker/pipeline/topology.hpp>

namespace esker::pipeline::detail {

/// A topic whose frames a copy engine moves: a ring on each side.
struct Crossed {
  std::uint32_t topic;
  bool to_device;
  std::uint32_t host_subscription;  // to_device: the mover's, of the host's ring
};

/// Contract Written before a run, by one thread. Words lie where they are polled, as far as the other
///          side can write there: what the host writes and the GPU polls is in pinned memory, unless a
///          copy brings it.
/// Errors   Error{kOutOfMemory}: names the topic and its size.
class RunMemory {
 public:
  /// Takes all of it from `pool`.
  RunMemory(const Device& device, MemoryPool& pool, const Topology& topology,
            const std::vector<std::uint32_t>& teams, bool balance);
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  const RunView& host() const { return *host_; }
  /// In the device's memory; null: no stage is there.
  const RunView* device() const { return device_view_; }
  /// The same with the device's addresses, for those who copy there.
  const RunView& device_addresses() const { return *device_; }
  PolledWord* device_stop() const { return device_->stop; }
  const std::vector<Crossed>& crossed() const { return crossed_; }
  const SideState& side(Side side) const { return *(side == Side::kHost ? host_ : device_)->side; }
  /// What the words of both sides say, at some time between the call and its end. The device's are copied, on
  /// `stream`, all of them at once.
  class Snapshot {
   public:
    std::uint64_t word(const PolledWord* at) const {
      return static_cast<const Word*>(find(at))->load_relaxed();
    }
    const StageState& stage(const StageState* at) const { return *static_cast<const StageState*>(find(at)); }

   private:
    friend class RunMemory;
    const void* find(const void* at) const;
    struct Block {
      const std::byte* device;
      std::vector<std::uint64_t> copy;
    };
    std::vector<Block> blocks_;
  };
  Snapshot snapshot(const Stream& stream) const;
  std::uint32_t teams(std::uint32_t stage) const { return teams_[stage]; }
  Crossing crossing(std::uint32_t topic) const { return crossings_[topic]; }
  std::uint64_t frame_memory_bytes() const { return frame_bytes_; }

 private:
  /// Memory of many small things, all 0 at first. The device's is laid out on the host, and copied when all
  /// of it is there.
  class Arena {
   public:
    struct Block {
      std::byte* at;
      std::vector<std::uint64_t> image;  // of the device's memory
      std::size_t used = 0, size;
    };

    Arena(const Device& device, MemoryPool& pool, bool is_device)
        : device_{device}, pool_{pool}, is_device_{is_device} {}
    template <class T>
    T* take(std::size_t n = 1) {
      return static_cast<T*>(take_bytes(n * sizeof(T)));
    }
    /// Writes a word, as the run begins with it.
    void set(PolledWord* word, std::uint64_t value) { set(word, &value, sizeof value); }
    void set(const void* at, const void* bytes, std::size_t n);
    void copy_to_device();

    const std::vector<Block>& blocks() const { return blocks_; }

   private:
    void* take_bytes(std::size_t bytes);
    const Device device_;
    MemoryPool& pool_;
    const bool is_device_;
    std::vector<Block> blocks_;
  };

  bool has_many_teams(std::uint32_t stage) const;
  void lay_out_topic(std::uint32_t number);
  void lay_out_stage(std::uint32_t number, std::uint32_t teams);
  void lay_out_loops();
  Arena& arena(Side side) { return side == Side::kHost ? host_arena_ : device_arena_; }
  /// A ring's memory, in the view of `side` or of both.
  TopicView ring(std::uint32_t number, Arena& producers, Arena& polled, Arena& freed, std::byte* frames,
                 std::uint32_t subscriptions);

  /// Memory of frames.
  std::byte* take_frames(MemoryKind kind, std::uint64_t bytes, const std::string& what);

  const Device device_handle_;
  MemoryPool& pool_;
  const Topology& topology_;
  const std::vector<std::uint32_t> teams_;
  const bool balance_;  // teams move between the device's stages
  Arena host_arena_, device_arena_;
  std::unique_ptr<RunView> host_, device_;
  RunView* device_view_ = nullptr;
  std::vector<Crossed> crossed_;
  std::vector<Crossing> crossings_;
  std::uint64_t frame_bytes_ = 0;
};

}  // namespace esker::pipeline::detail
