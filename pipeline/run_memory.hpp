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

/// A topic whose frames a copy engine moves between the host's ring and that of a device.
struct Crossed {
  std::uint32_t topic, side;  // the device's
  bool to_device;
  std::uint32_t subscription;  // the mover's, of the ring that it takes from
};

/// Contract Written before a run, by one thread. Words lie where they are polled, as far as other
///          sides can write there: what one side writes and another one's GPU polls is in pinned memory,
///          unless a copy brings it. What two devices share is in pinned memory, too.
/// Errors   Error{kOutOfMemory}: names the topic and its size.
class RunMemory {
 public:
  /// Takes all of it from `pool`.
  RunMemory(const std::vector<Device>& devices, MemoryPool& pool, const Topology& topology,
            const std::vector<std::uint32_t>& teams, bool balance);
  RunMemory(const RunMemory&) = delete;
  RunMemory& operator=(const RunMemory&) = delete;

  std::uint32_t sides() const { return static_cast<std::uint32_t>(sides_.size()); }
  const RunView& host() const { return view(kHostSide); }
  /// With this side's addresses: those of a device's memory are for who copies.
  const RunView& view(std::uint32_t side) const { return *sides_[side].view; }
  /// In the device's memory; null: the side is the host's.
  const RunView* on_device(std::uint32_t side) const { return sides_[side].on_device; }
  const std::vector<Crossed>& crossed() const { return crossed_; }
  SideState& state(std::uint32_t side) const { return *view(side).side; }
  /// Of several devices: nobody among their teams reads all of its words.
  const std::vector<LoopView>& loops_of_several() const { return loops_of_several_; }
  /// What the words of all sides say, at some time between the call and its end. The devices' are copied, all
  /// of them at once; the host's are read when they are asked for.
  class Snapshot {
   public:
    std::uint64_t word(const PolledWord* at) const {
      return static_cast<const Word*>(find(at))->load_acquire();
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
  Snapshot snapshot() const;
  /// A word of any side's, while the run goes on. One thread at a time.
  void write(PolledWord* word, std::uint64_t value) const;
  std::uint32_t teams(std::uint32_t stage) const { return teams_[stage]; }
  Crossing crossing(std::uint32_t topic) const { return crossings_[topic]; }
  std::uint64_t frame_memory_bytes() const { return frame_bytes_; }

 private:
  /// Memory of many small things, all 0 at first. A device's is laid out on the host, and copied when all of
  /// it is there.
  class Arena {
   public:
    struct Block {
      std::byte* at;
      std::vector<std::uint64_t> image;  // of a device's memory
      std::size_t used = 0, size;
      bool has(const void* address) const { return address >= at && address < at + used; }
    };

    Arena(MemoryPool& pool, std::uint32_t side, bool is_device)
        : pool_{pool}, side_{side}, is_device_{is_device} {}
    template <class T>
    T* take(std::size_t n = 1) {
      return static_cast<T*>(take_bytes(n * sizeof(T)));
    }
    /// Writes a word, as the run begins with it.
    void set(PolledWord* word, std::uint64_t value) { set(word, &value, sizeof value); }
    void set(const void* at, const void* bytes, std::size_t n);

    bool is_device() const { return is_device_; }
    const std::vector<Block>& blocks() const { return blocks_; }

   private:
    void* take_bytes(std::size_t bytes);
    MemoryPool& pool_;
    const std::uint32_t side_;
    const bool is_device_;
    std::vector<Block> blocks_;
  };
  struct SideMemory {
    Arena arena;
    std::unique_ptr<RunView> view;
    const RunView* on_device = nullptr;
  };

  bool has_many_teams(std::uint32_t stage) const;
  void lay_out_topic(std::uint32_t number);
  void lay_out_stage(std::uint32_t number, std::uint32_t teams);
  void lay_out_loop(std::uint32_t number);
  Arena& arena(std::uint32_t side) { return sides_[side].arena; }
  TopicView& topic(std::uint32_t side, std::uint32_t number) { return sides_[side].view->topics[number]; }
  /// The rings of a topic that is copied: the host's, and one on each device that has stages of it.
  void lay_out_rings(std::uint32_t number, std::uint64_t bytes);
  /// Bytes from one frame of a topic to the next.
  std::uint64_t stride_of(std::uint32_t topic) const;
  /// A ring's memory.
  TopicView ring(std::uint32_t number, Arena& producers, Arena& polled, Arena& freed, std::byte* frames,
                 std::uint32_t subscriptions);

  /// Memory of a topic's frames.
  std::byte* take_frames(std::uint32_t side, MemoryKind kind, std::uint64_t bytes, const std::string& what);

  const std::vector<Device> devices_;
  std::vector<Stream> streams_;  // of devices: for copies while kernels run
  MemoryPool& pool_;
  const Topology& topology_;
  const std::vector<std::uint32_t> teams_;
  const bool balance_;  // teams move between a device's stages
  std::vector<SideMemory> sides_;
  PolledWord* written_ = nullptr;  // what write() copies
  std::vector<LoopView> loops_of_several_;
  std::vector<Crossed> crossed_;
  std::vector<Crossing> crossings_;
  std::uint64_t frame_bytes_ = 0;
};

}  // namespace esker::pipeline::detail
