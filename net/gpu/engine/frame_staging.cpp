// Cutting a frame's runs into chunks.
#include <algorithm>
#include <cstring>
#include <esker/net/gpu/engine/frame_staging.hpp>

namespace esker::gpu {

std::uint32_t stage_frame(const wire::FrameHeader& header, const std::byte* frame, const FrameLayout& layout,
                          std::byte* slot) {
  std::byte* const staged = slot + layout.frame_at;
  std::memcpy(staged, frame, header.bytes);
  auto* chunk = reinterpret_cast<Chunk*>(staged);
  std::uint32_t chunks = 0;
  wire::RunReader reader(frame);
  wire::Run run;
  while (reader.next(run)) {
    for (std::uint32_t first = 0; first < run.count; first += kChunkMessages) {
      const auto at =
          static_cast<std::uint32_t>(reinterpret_cast<const std::byte*>(run.address + first) - frame);
      ++chunks;
      *--chunk = {run.command.word(),
                  run.words,
                  std::min(kChunkMessages, run.count - first),
                  run.count,
                  static_cast<std::uint32_t>(layout.frame_at) + at,
                  header.source};
    }
  }
  return chunks;
}

}  // namespace esker::gpu
