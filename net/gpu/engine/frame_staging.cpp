// Cutting a frame's runs into chunks.
#include <algorithm>
#include <esker/net/gpu/engine/frame_staging.hpp>

namespace esker::gpu {

std::uint32_t cut_frame(const wire::FrameHeader& header, const std::byte* frame, const FrameLayout& layout,
                        std::byte* slot, std::vector<ReplyRun>& replies) {
  auto* chunk = reinterpret_cast<Chunk*>(slot + layout.frame_at);
  std::uint32_t chunks = 0;
  auto replies_at = static_cast<std::uint32_t>(layout.frame_at);
  wire::RunReader reader(frame);
  wire::Run run;
  while (reader.next(run)) {
    const bool asks = is_request(run.command.operation);
    for (std::uint32_t first = 0; first < run.count; first += kChunkMessages) {
      const auto at =
          static_cast<std::uint32_t>(reinterpret_cast<const std::byte*>(run.address + first) - frame);
      ++chunks;
      *--chunk = {run.command.word(),
                  run.words,
                  std::min(kChunkMessages, run.count - first),
                  run.count,
                  static_cast<std::uint32_t>(layout.frame_at) + at,
                  header.source,
                  asks ? replies_at + first * 8 : 0};
    }
    if (!asks) continue;
    const std::uint32_t words = reply_words(run.command, run.words);
    replies.push_back({reply_to(run.command).word(), words, run.count, replies_at});
    replies_at += run.count * words * 8;
  }
  return chunks;
}

}  // namespace esker::gpu
