// Copying frames to the device.
#include <cstring>
#include <esker/aggregator/trace.hpp>
#include <esker/net/gpu/engine/frame_staging.hpp>
#include <esker/net/gpu/engine/frames.hpp>
#include <functional>
#include <utility>

namespace esker::gpu {

namespace {

/// Buffers of replies that can be on their way while each slot has one.
constexpr std::uint32_t kSpareReplies = 2 * kFrames;

std::shared_ptr<std::byte> shared_pinned(const OpenedDevice& device, std::size_t bytes, const char* what) {
  const auto memory =
      std::make_shared<PinnedArray<std::byte>>(device.device().pinned<std::byte>(bytes, {what}));
  return {memory, memory->data()};
}

}  // namespace

Frames::Frames(const OpenedDevice& device, std::uint32_t pe, std::uint32_t frame_bytes)
    : device_{device},
      pe_{pe},
      layout_{FrameLayout::of(frame_bytes)},
      turns_{device.device().memory<FrameTurn>(kFrames, {"frames' turns"})},
      frames_{device.device().memory<std::byte>(kFrames * layout_.slot_bytes, {"frames"})},
      staging_{device.device().pinned<std::byte>(kFrames * layout_.slot_bytes, {"frames on their way"})},
      cursors_{device.device().pinned<std::uint64_t>(kFrames, {"frames' turns on their way"})},
      replies_{layout_.frame_bytes, kFrames + kSpareReplies,
               shared_pinned(device, std::size_t{kFrames + kSpareReplies} * layout_.frame_bytes,
                             "replies to frames")} {
  for (std::uint32_t f = 0; f < kFrames; ++f) {
    free_.push_back(f);
    slots_[f].replies = replies_.try_acquire();
  }
}

void Frames::fill_in(PeState& pe_state) const {
  pe_state.frames = frames_.data();
  pe_state.frame_bytes = layout_.slot_bytes;
  pe_state.frame_at = layout_.frame_at;
  pe_state.frame_turns = turns_.data();
}

std::shared_ptr<std::byte> Frames::receive_memory(std::size_t bytes) {
  received_bytes_ = bytes;
  return received_ = shared_pinned(device_, bytes, "frames that arrive");
}

bool Frames::has_received(const std::byte* frame) const {
  if (received_ == nullptr) return false;
  const std::less<const std::byte*> before;
  return !before(frame, received_.get()) && before(frame, received_.get() + received_bytes_);
}

bool Frames::try_submit(ApplyJob& job) {
  if (free_.empty()) return false;
  const std::uint32_t f = free_.back();
  Slot& slot = slots_[f];
  std::byte* const staged = staging_.data() + f * layout_.slot_bytes;
  const std::uint32_t chunks =
      cut_frame(job.header, job.frame, layout_, staged, pe_, slot.replies->bytes.get());
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
  slot.replies->journey.opened_ns = steady_ns();
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

bool Frames::collect(const HostWords& host, ReplySink& replies) {
  bool collected = false;
  for (std::uint32_t f = 0; in_flight_ > 0 && f < kFrames; ++f) {
    Slot& slot = slots_[f];
    if (slot.job == nullptr || host.frame_done[f].load_acquire() != slot.generation) continue;  // [frame]
    send(slot.replies, replies);
    std::exchange(slot.job, nullptr)->left.store(0, std::memory_order_release);  // [job]
    free_.push_back(f);
    --in_flight_;
    collected = true;
  }
  return collected;
}

/// As they are, if that is much and the slot can have another buffer; else they are copied, to what else goes
/// there.
void Frames::send(Buffer*& replies, ReplySink& to) {
  wire::FrameHeader header;
  std::memcpy(&header, replies->bytes.get(), sizeof header);
  if (header.runs == 0) return;
  if (header.bytes >= layout_.frame_bytes / 2) {
    if (Buffer* const spare = replies_.try_acquire()) {
      replies->used = header.bytes;
      replies->messages = header.messages;
      replies->destination = header.destination;
      replies->journey.closed_ns = steady_ns();
      to.send_replies(std::exchange(replies, spare));
      return;
    }
  }
  wire::RunReader reader(replies->bytes.get());
  wire::Run run;
  while (reader.next(run))
    to.send_replies(header.destination, {run.command.word(), run.words, run.count, run.count, run.address});
}

}  // namespace esker::gpu
