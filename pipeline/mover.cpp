// The copies between a topic's two rings.
#include <esker/pipeline/mover.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

namespace esker::pipeline::detail {

namespace {
constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 20;  // of one copy
constexpr std::uint64_t kSmallBytes = std::uint64_t{256} << 10;
constexpr std::size_t kMostUnderWay = 8;
constexpr std::chrono::microseconds kLongestNap{50};
}  // namespace

Mover::Mover(const Device& device, const RunMemory& memory, const Crossed& crossed, std::uint32_t item_bytes,
             Doorbell& bell)
    : device_{device},
      run_{memory.host()},
      from_{crossed.to_device ? memory.host().topics[crossed.topic]
                              : memory.view(crossed.side).topics[crossed.topic]},
      to_{crossed.to_device ? memory.view(crossed.side).topics[crossed.topic]
                            : memory.host().topics[crossed.topic]},
      to_device_{crossed.to_device},
      subscription_{crossed.subscription},
      item_bytes_{item_bytes},
      bell_{bell},
      stream_{device.stream()},
      staged_{device.pinned<FrameWords>(from_.slots(), {"words of frames that are copied"})},
      end_{device.pinned<PolledWord>(1, {"the end of a topic"})} {}

void Mover::run() {
  use_fine_timers();
  Backoff backoff(kLongestNap, Backoff::kYieldsBesideADevice);
  while (!run_.is_over()) {
    const bool has_started = start_copies(), has_ended = end_copies();
    if (has_started || has_ended) {
      backoff.reset();
      continue;
    }
    std::uint32_t count = 0;
    if (under_way_.empty() && !from_.sees(started_, count) && from_.has_ended_before(started_)) {
      if (to_device_) {
        end_[0].word.store_relaxed(started_);
        device_.copy_async(to_.end, &end_[0], sizeof(std::uint64_t), stream_);
        stream_.synchronize();
      } else {
        to_.close(started_);
        bell_.ring();
      }
      return;
    }
    backoff.wait(bell_, [] { return false; });
  }
  stream_.synchronize();
}

bool Mover::start_copies() {
  if (under_way_.size() >= kMostUnderWay) return false;
  const std::uint64_t most = std::clamp<std::uint64_t>(kMostBytes / from_.stride, 1, from_.slots());
  std::uint64_t n = 0;
  std::uint32_t count = 0;
  while (n < most && from_.sees(started_ + n, count) && to_.has_room(started_ + n)) {
    if (n != 0 && from_.slot_of(started_ + n) == 0) break;  // not next to the others
    ++n;
  }
  // A small copy waits for the one before it: meanwhile more frames come, and go together.
  if (n == 0 || (!under_way_.empty() && n * from_.stride < kSmallBytes && 2 * n < from_.slots()))
    return false;
  copy(started_, n);
  started_ += n;
  return true;
}

void Mover::copy(std::uint64_t first, std::uint64_t n) {
  std::uint32_t last_count = 0;
  (void)from_.sees(first + n - 1, last_count);
  const std::uint64_t slot = from_.slot_of(first);
  const std::uint64_t bytes =
      (n - 1) * from_.stride + std::uint64_t{last_count & ~TopicView::kFailedBit} * item_bytes_;
  if (bytes != 0)
    device_.copy_async(to_.frames + slot * to_.stride, from_.frames + slot * from_.stride, bytes, stream_);
  if (to_device_) {
    for (std::uint64_t i = 0; i < n; ++i) {
      const FrameWords& words = from_.words[slot + i];
      FrameWords& staged = staged_[slot + i];
      staged.published.store_relaxed(words.published.load_relaxed());
      staged.tag = words.tag;
      staged.born_ns = words.born_ns;
    }
    device_.copy_async(to_.words + slot, &staged_[slot], n * sizeof(FrameWords), stream_);
  }
  if (spare_.empty()) spare_.push_back(device_.event());
  Copy started{std::move(spare_.back()), first, n};
  spare_.pop_back();
  stream_.record(started.event);
  under_way_.push_back(std::move(started));
}

bool Mover::end_copies() {
  bool any = false;
  while (!under_way_.empty() && under_way_.front().event.is_done()) {
    Copy& done = under_way_.front();
    for (std::uint64_t i = 0; i < done.n; ++i) {
      if (!to_device_) publish(done.first + i);
      from_.release(subscription_, done.first + i);
    }
    spare_.push_back(std::move(done.event));
    under_way_.pop_front();
    any = true;
  }
  if (any) bell_.ring();
  return any;
}

void Mover::publish(std::uint64_t frame) {
  const FrameWords& words = from_.words[from_.slot_of(frame)];
  const std::uint64_t published = words.published.load_relaxed();
  const auto count = static_cast<std::uint32_t>(published);
  to_.publish(frame, count & ~TopicView::kFailedBit, words.tag, words.born_ns,
              (count & TopicView::kFailedBit) != 0);
}

}  // namespace esker::pipeline::detail
