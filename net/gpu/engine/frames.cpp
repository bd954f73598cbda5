// Copying frames to the device.
#include <cstring>
#include <esker/net/gpu/engine/frame_staging.hpp>
#include <esker/net/gpu/engine/frames.hpp>
#include <functional>
#include <utility>

namespace esker::gpu {

Frames::Frames(const OpenedDevice& device, std::uint32_t frame_bytes)
    : device_{device},
      layout_{FrameLayout::of(frame_bytes)},
      turns_{device.device().memory<FrameTurn>(kFrames, {"frames' turns"})},
      frames_{device.device().memory<std::byte>(kFrames * layout_.slot_bytes, {"frames"})},
      staging_{device.device().pinned<std::byte>(kFrames * layout_.staged_bytes, {"frames on their way"})},
      cursors_{device.device().pinned<std::uint64_t>(kFrames, {"frames' turns on their way"})} {
  for (std::uint32_t f = 0; f < kFrames; ++f) free_.push_back(f);
}

void Frames::fill_in(PeState& pe_state) const {
  pe_state.frames = frames_.data();
  pe_state.frame_bytes = layout_.slot_bytes;
  pe_state.frame_at = layout_.frame_at;
  pe_state.frame_turns = turns_.data();
  pe_state.staging = staging_.data();
  pe_state.staged_bytes = layout_.staged_bytes;
}

std::shared_ptr<std::byte> Frames::receive_memory(std::size_t bytes) {
  received_ = std::make_shared<PinnedArray<std::byte>>(
      device_.device().pinned<std::byte>(bytes, {"frames that arrive"}));
  return {received_, received_->data()};
}

bool Frames::has_received(const std::byte* frame) const {
  if (received_ == nullptr) return false;
  const std::less<const std::byte*> before;
  return !before(frame, received_->data()) && before(frame, received_->data() + received_->size());
}

bool Frames::try_submit(ApplyJob& job) {
  if (free_.empty()) return false;
  const std::uint32_t f = free_.back();
  Slot& slot = slots_[f];
  std::byte* const staged = staging_.data() + f * layout_.staged_bytes;
  const std::uint32_t chunks = cut_frame(job.header, job.frame, layout_, staged, slot.replies);
  if (chunks == 0) {  // nothing to apply
    job.left.store(0, std::memory_order_relaxed);
    return true;
  }
  device_.use();
  // The table and, right behind it, the frame.
  const std::size_t table_bytes = chunks * sizeof(Chunk);
  const std::size_t at = layout_.frame_at - table_bytes;
  std::byte* const on_device = frames_.data() + f * layout_.slot_bytes;
  const bool is_reachable = has_received(job.frame);
  if (!is_reachable) std::memcpy(staged + layout_.frame_at, job.frame, job.header.bytes);
  device_.copy(on_device + at, staged + at, table_bytes + (is_reachable ? 0 : job.header.bytes),
               device_.copy_stream(), "copying a frame to the device");
  if (is_reachable) {
    device_.copy(on_device + layout_.frame_at, job.frame, job.header.bytes, device_.copy_stream(),
                 "copying a frame to the device");
  }
  slot.job = &job;
  slot.generation = (slot.generation + 1) % FrameTurn::kGenerations;
  job.left.store(1, std::memory_order_relaxed);
  std::uint64_t* const cursor = &cursors_[f];
  *cursor = FrameTurn::pack(slot.generation, chunks);
  device_.copy(&turns_.data()[f].cursor, cursor, sizeof *cursor, device_.copy_stream(),
               "publishing a frame");  // [frame]
  free_.pop_back();
  ++in_flight_;
  return true;
}

bool Frames::collect(const HostWords& host, const SendReplies& send) {
  bool collected = false;
  for (std::uint32_t f = 0; in_flight_ > 0 && f < kFrames; ++f) {
    Slot& slot = slots_[f];
    if (slot.job == nullptr || host.frame_done[f].load_acquire() != slot.generation) continue;  // [frame]
    const std::byte* const staged = staging_.data() + f * layout_.staged_bytes;
    for (const ReplyRun& run : slot.replies) {
      send({run.command, run.words, run.count, run.count,
            reinterpret_cast<const std::uint64_t*>(staged + run.at)});
    }
    slot.replies.clear();
    std::exchange(slot.job, nullptr)->left.store(0, std::memory_order_release);  // [job]
    free_.push_back(f);
    --in_flight_;
    collected = true;
  }
  return collected;
}

}  // namespace esker::gpu
