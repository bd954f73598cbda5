// Frames of the network on the device: their slots, their way there, and their end.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <esker/aggregator/buffer.hpp>
#include <esker/net/apply_pool.hpp>
#include <esker/net/device_engine.hpp>
#include <esker/net/gpu/engine/opened_device.hpp>
#include <esker/net/gpu/frame_layout.hpp>
#include <esker/net/gpu/pe_state.hpp>

namespace esker::gpu {

/// Contract. The network's owner. A job stays valid until its `left` is 0.
/// Ordering. [frame], see FrameTurn and HostWords; [job] job.left is released once the frame is applied.
class Frames {
 public:
  /// Of this PE. Frames have up to `frame_bytes`.
  Frames(const OpenedDevice& device, std::uint32_t pe, std::uint32_t frame_bytes);

  /// The part of the PE state that lanes need to take chunks.
  void fill_in(PeState& pe_state) const;
  /// Memory in which frames may arrive: the device copies them from there. At most once.
  std::shared_ptr<std::byte> receive_memory(std::size_t bytes);
  /// Sends a frame to the device, where lanes apply it. False: all slots are in use.
  bool try_submit(ApplyJob& job);
  /// Ends the jobs whose frames are applied, and sends the replies to their requests. True if there was one.
  bool collect(const HostWords& host, ReplySink& replies);
  std::uint32_t in_flight() const { return in_flight_; }

 private:
  struct Slot {
    ApplyJob* job = nullptr;  // null: free
    std::uint64_t generation = 0;
    Buffer* replies = nullptr;  // a frame: those to its requests
  };

  bool has_received(const std::byte* frame) const;
  void send(Buffer*& replies, ReplySink& to);

  const OpenedDevice& device_;
  const std::uint32_t pe_;
  const FrameLayout layout_;
  DeviceArray<FrameTurn> turns_;
  DeviceArray<std::byte> frames_;
  std::shared_ptr<std::byte> received_;  // copied from there too
  std::size_t received_bytes_ = 0;
  PinnedArray<std::byte> staging_;      // what is copied to frames_
  PinnedArray<std::uint64_t> cursors_;  // what is copied to the turns
  BufferPool replies_;                  // lanes write them there
  std::array<Slot, kFrames> slots_;
  std::vector<std::uint32_t> free_;
  std::uint32_t in_flight_ = 0;
};

}  // namespace esker::gpu
