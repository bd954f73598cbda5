// Copying frames to the device.
#include <esker/net/gpu/engine/frame_staging.hpp>
#include <esker/net/gpu/engine/frames.hpp>
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

bool Frames::try_submit(ApplyJob& job) {
  if (free_.empty()) return false;
  const std::uint32_t f = free_.back();
  Slot& slot = slots_[f];
  std::byte* const staged = staging_.data() + f * layout_.staged_bytes;
  const std::uint32_t chunks = stage_frame(job.header, job.frame, layout_, staged, slot.replies);
  if (chunks == 0) {  // nothing to apply
    job.left.store(0, std::memory_order_relaxed);
    return true;
  }
  device_.use();
  const std::size_t at = layout_.frame_at - chunks * sizeof(Chunk);
  device_.copy(frames_.data() + f * layout_.slot_bytes + at, staged + at,
               chunks * sizeof(Chunk) + job.header.bytes, device_.copy_stream(),
               "copying a frame to the device");
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
