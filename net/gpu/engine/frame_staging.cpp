// Cutting a frame's runs into chunks.
#include <algorithm>
#include <cstring>
#include <esker/device/error.hpp>
#include <esker/net/gpu/engine/frame_staging.hpp>

#include <fmt/format.h>

namespace esker::gpu {

std::uint32_t cut_frame(const wire::FrameHeader& header, const std::byte* frame, const FrameLayout& layout,
                        std::byte* slot, std::uint32_t pe, std::byte* replies) {
  auto* chunk = reinterpret_cast<Chunk*>(slot + layout.frame_at);
  std::uint32_t chunks = 0;
  wire::FrameHeader reply_frame = wire::make_header(wire::Kind::kMessages, pe, header.source);
  reply_frame.bytes = sizeof reply_frame;
  wire::RunReader reader(frame);
  wire::Run run;
  while (reader.next(run)) {
    std::uint64_t* reply = nullptr;  // to the run's first request
    if (is_request(run.command.operation)) {
      const wire::RunHeader reply_run{reply_to(run.command).word(), reply_words(run.command, run.words),
                                      run.count, 0};
      const std::uint64_t bytes = sizeof reply_run + std::uint64_t{reply_run.count} * reply_run.words * 8;
      if (bytes > layout.frame_bytes - reply_frame.bytes) {
        throw Error(Error::Kind::kNetwork,
                    fmt::format("PE {} received a frame from PE {} with requests whose replies are longer "
                                "than a frame of {} bytes",
                                pe, header.source, layout.frame_bytes));
      }
      std::memcpy(replies + reply_frame.bytes, &reply_run, sizeof reply_run);
      reply = reinterpret_cast<std::uint64_t*>(replies + reply_frame.bytes + sizeof reply_run);
      reply_frame.bytes += static_cast<std::uint32_t>(bytes);
      reply_frame.messages += reply_run.count;
      ++reply_frame.runs;
    }
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
                  reply == nullptr ? nullptr : reply + first};
    }
  }
  std::memcpy(replies, &reply_frame, sizeof reply_frame);
  return chunks;
}

}  // namespace esker::gpu
