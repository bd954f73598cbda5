// The cascade of classifiers: a window is a face if each of them says so.
#pragma once

#include <cstdint>

#include <esker/lane.hpp>

#include "windows.hpp"

namespace faces {

/// A window without its border is 6 x 6 cells of 3 x 3 pixels. A cell's feature is its histogram of codes
/// (Ahonen, Hadid and Pietikainen, 2004), compared with those that faces and other windows have there: the
/// logarithm of their likelihoods' ratio, to which each pixel adds what its code has in a table (Ojala,
/// Pietikainen and Maenpaa, 2002, section 2.5). Whole numbers, so that each processor decides the same.
struct Cascade {
  static constexpr std::uint32_t kCell = 3, kSide = (kWindow - 2) / kCell, kCells = kSide * kSide;
  static constexpr std::uint32_t kStages = 4;

  std::int8_t scores[kCells][256];  // of a code in a cell
  std::uint8_t order[kCells];       // cells, row by row from the window's upper left; the most telling first
  std::int32_t least[kStages];      // that a window's cells of a stage have in all, if it may be a face

  /// What a stage's cells of the window have in all. `codes` are its own at its upper left, `width` a row.
  ESKER_HD std::int32_t score(std::uint32_t stage, const std::uint8_t* codes, std::uint32_t width) const {
    std::int32_t sum = 0;
    for (std::uint32_t i = first_of(stage); i < end_of(stage); ++i) {
      const std::uint32_t cell = order[i];
      const std::uint8_t* row =
          codes + std::size_t{1 + cell / kSide * kCell} * width + 1 + cell % kSide * kCell;
      for (std::uint32_t y = 0; y < kCell; ++y, row += width) {
        for (std::uint32_t x = 0; x < kCell; ++x) sum += scores[cell][row[x]];
      }
    }
    return sum;
  }
  ESKER_HD bool passes(std::uint32_t stage, const std::uint8_t* codes, std::uint32_t width) const {
    return score(stage, codes, width) >= least[stage];
  }

  /// The stages' cells in `order`.
  ESKER_HD static constexpr std::uint32_t end_of(std::uint32_t stage) {
    constexpr std::uint32_t ends[kStages] = {3, 8, 18, kCells};
    return ends[stage];
  }
  ESKER_HD static constexpr std::uint32_t first_of(std::uint32_t stage) {
    return stage == 0 ? 0 : end_of(stage - 1);
  }
};

}  // namespace faces
