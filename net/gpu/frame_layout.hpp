// Frames of the network in device memory: how the host lays one out, and how lanes take its chunks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <esker/aggregator/wire.hpp>
#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>

namespace esker::gpu {

inline constexpr std::uint32_t kFrames = 64;  // that are on the device at a time
inline constexpr std::uint32_t kChunkMessages =
    256;  // of a chunk at most: small, so that many waves share a run

/// A part of a frame's run that one wave applies: word r of message i is words[r * stride + i], counted from
/// byte `at` of the frame's slot on. Word r of the reply to request i is replies[r * stride + i].
struct Chunk {
  std::uint32_t command;
  std::uint32_t words;
  std::uint32_t count;   // messages of the chunk
  std::uint32_t stride;  // messages of the run
  std::uint32_t at;
  std::uint32_t source;    // PE
  std::uint64_t* replies;  // in the host's memory; null: they are no requests
};
static_assert(std::is_trivially_copyable_v<Chunk> && sizeof(Chunk) == 32);

/// A frame's slot: the table of its chunks, which ends where the frame begins and starts with the last chunk.
/// The host's staging slot is laid out alike, so table and frame are one copy, unless the frame is copied
/// from where it has arrived.
struct FrameLayout {
  std::uint64_t frame_at = 0;     // of the frame in its slot
  std::uint64_t slot_bytes = 0;   // of table and frame
  std::uint32_t frame_bytes = 0;  // of a frame at most, and of one of replies

  static constexpr FrameLayout of(std::uint32_t frame_bytes) {
    // A run of n messages is at most 1 + n / kChunkMessages chunks.
    constexpr std::size_t kLeastRunBytes = sizeof(wire::RunHeader) + sizeof(std::uint64_t);
    const std::size_t most_chunks =
        frame_bytes / kLeastRunBytes + frame_bytes / sizeof(std::uint64_t) / kChunkMessages;
    const std::uint64_t table = whole_lines(most_chunks * sizeof(Chunk));
    return {table, table + whole_lines(frame_bytes), static_cast<std::uint32_t>(whole_lines(frame_bytes))};
  }

 private:
  static constexpr std::uint64_t whole_lines(std::uint64_t bytes) {
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
};

/// The turn of a frame's slot, in device memory.
///
/// Protocol. Once a frame is in its slot the host publishes (generation, chunks, 0). Lanes take chunks by
/// compare-exchange, so a lane that holds the cursor of an older generation takes nothing.
/// Ordering. [frame] The host writes the cursor after the frame, in the order of one stream; a lane acquires
/// it. `finished` collects the releases of all lanes that apply chunks, and the last one releases
/// HostWords::frame_done to the host.
struct FrameTurn {
  alignas(kLineBytes) DeviceAtomic<std::uint64_t> cursor;  // generation:24 | chunks:20 | next chunk:20
  DeviceAtomic<std::uint32_t> finished;                    // chunks of this generation

  static constexpr std::uint64_t kGenerations = 1u << 24;

  ESKER_HD static constexpr std::uint64_t pack(std::uint64_t generation, std::uint64_t chunks) {
    return (generation & (kGenerations - 1)) << 40 | chunks << 20;
  }
  ESKER_HD static constexpr std::uint32_t next(std::uint64_t cursor) { return cursor & 0xfffff; }
  ESKER_HD static constexpr std::uint32_t chunks(std::uint64_t cursor) { return cursor >> 20 & 0xfffff; }
  ESKER_HD static constexpr std::uint64_t generation(std::uint64_t cursor) { return cursor >> 40; }
};
static_assert(sizeof(FrameTurn) == kLineBytes && offsetof(FrameTurn, cursor) == 0);

}  // namespace esker::gpu
