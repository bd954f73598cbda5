// The stage on the device: scores a chunk of the target, and says which cell is the best.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>

#include "scoring.hpp"

namespace gene {

/// A frame is a chunk's bases, with the number of the chunk as its tag; of it comes one Hit.
///
/// Protocol A lane has kRows rows, in registers, and goes through the columns from left to right, one column
///          behind the lane above it, whose lowest row it reads. Where the lanes have fewer rows than the
///          query they go through the columns again: the lowest row of all is kept in between.
/// Contract Scratch is in the device's memory, for each chunk that is worked on at a time; scratch_words()
///          says how much. Chunk c has slot c modulo `slots`.
struct ScoreChunk {
  static constexpr std::uint32_t kRows = 4;
  static constexpr std::uint32_t kMostLanes = 1024;

  Chunks chunks;
  const Base* query;
  std::uint32_t* scratch;
  std::uint32_t slots, most_columns;

  /// Of one slot: the lowest row; two rows of what lanes hand down, and their hits; the chunk.
  static constexpr std::uint64_t scratch_words(std::uint32_t most_columns) {
    return most_columns + 2 * kMostLanes + 2 * kMostLanes + (most_columns + 15) / 16 * 4 + 4;
  }

  template <class Stage, class In, class Out>
  ESKER_HD void operator()(Stage& stage, const In& in, Out& out) const {
    const std::uint32_t lane = stage.lane(), lanes = stage.lanes() < kMostLanes ? stage.lanes() : kMostLanes;
    std::uint32_t* const slot = scratch + (in.tag % slots) * ((scratch_words(most_columns) + 3) / 4 * 4);
    // Hits first and bases next, which are aligned.
    auto* const hits = reinterpret_cast<std::uint64_t*>(slot);
    auto* const bases = reinterpret_cast<Bases*>(slot + 2 * kMostLanes);
    const std::uint32_t n_bases = (most_columns + 15) / 16;
    auto* const handed = reinterpret_cast<std::int32_t*>(slot + 2 * kMostLanes + 4 * n_bases);
    std::int32_t* const lowest = handed + 2 * kMostLanes;
    const std::uint32_t first = chunks.first(in.tag), begin = chunks.begin(in.tag) - first,
                        columns = chunks.end(in.tag) - first;
    for (std::uint32_t i = lane; i < in.count; i += stage.lanes()) bases[i] = in[i];
    for (std::uint32_t i = lane; i < columns; i += stage.lanes()) lowest[i] = 0;
    stage.sync();
    const Base* const target = bases->base;

    Hit best;
    for (std::uint32_t top = 0; top < chunks.query_length; top += lanes * kRows) {
      const std::uint32_t row = top + lane * kRows;
      Base mine[kRows];
      std::int32_t left[kRows] = {}, above_left = 0;
      for (std::uint32_t k = 0; k < kRows; ++k)
        mine[k] = row + k < chunks.query_length ? query[row + k] : Base{255};
      for (std::uint32_t step = 0; step < columns + lanes - 1; ++step) {
        const std::uint32_t column = step - lane;  // before its first one: huge
        if (lane < lanes && column < columns) {
          const std::int32_t above =
              lane == 0 ? lowest[column] : handed[(step + 1) % 2 * kMostLanes + lane - 1];
          std::int32_t up = above, diagonal = above_left;
          for (std::uint32_t k = 0; k < kRows; ++k) {
            const std::int32_t h =
                larger(larger(0, diagonal + score_of(mine[k], target[column])), larger(up, left[k]) - kGap);
            diagonal = left[k];
            left[k] = up = h;
            if (h >= best.score() && h != 0 && column >= begin && row + k < chunks.query_length) {
              const Hit hit = Hit::at(h, first + column, row + k);
              if (hit.word > best.word) best = hit;
            }
          }
          above_left = above;
          handed[step % 2 * kMostLanes + lane] = up;
          if (lane == lanes - 1) lowest[column] = up;
        }
        stage.sync();
      }
    }
    if (lane < lanes) hits[lane] = best.word;
    stage.sync();
    for (std::uint32_t n = lanes; n > 1; n = (n + 1) / 2) {
      const std::uint32_t other = lane + (n + 1) / 2;
      if (other < n && hits[other] > hits[lane]) hits[lane] = hits[other];
      stage.sync();
    }
    if (lane == 0) out[0] = {hits[0]};
    out.count = 1;
  }
};

}  // namespace gene
