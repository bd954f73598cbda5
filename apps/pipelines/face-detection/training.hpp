// The tables of the cascade, trained when the program starts, on pictures that no run is measured on.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cascade.hpp"
#include "picture.hpp"
#include "pyramid.hpp"

namespace faces {

/// The pixels and the codes of a whole pyramid; codes on a level's border are 0.
struct CodedPyramid {
  Pyramid pyramid;
  std::vector<std::uint8_t> pixels, codes;

  explicit CodedPyramid(const Picture& picture)
      : pyramid{Pyramid::of(picture.width, picture.height, 1)},
        pixels(pyramid.n_pixels),
        codes(pyramid.n_pixels) {
    std::copy(picture.pixels.begin(), picture.pixels.end(), pixels.begin());
    for (std::uint32_t l = 0; l < pyramid.n_levels; ++l) {
      const Level& level = pyramid.levels[l];
      std::uint8_t* const to = &pixels[level.first_pixel];
      for (std::uint32_t i = 0; l != 0 && i < level.width * level.height; ++i) {
        const Level& above = pyramid.levels[l - 1];
        to[i] = scaled_pixel(&pixels[above.first_pixel], above.width, i % level.width, i / level.width);
      }
      for (std::uint32_t y = 1; y + 1 < level.height; ++y) {
        for (std::uint32_t x = 1; x + 1 < level.width; ++x)
          codes[level.first_pixel + y * level.width + x] = code_of(to, level.width, x, y);
      }
    }
  }
};

namespace detail {

/// A window's own codes, row by row.
using WindowCodes = std::vector<std::uint8_t>;

inline WindowCodes window_codes(const CodedPyramid& coded, std::uint32_t l, std::uint32_t x,
                                std::uint32_t y) {
  const Level& level = coded.pyramid.levels[l];
  WindowCodes codes;
  for (std::uint32_t row = y; row < y + kWindow; ++row) {
    const auto from = coded.codes.begin() + level.first_pixel + std::ptrdiff_t{row} * level.width + x;
    codes.insert(codes.end(), from, from + kWindow);
  }
  return codes;
}

struct Samples {
  std::vector<WindowCodes> faces, others;
};

/// Of each planted face the window that fits it best, and windows anywhere that are not alike.
inline Samples collect_samples(std::uint32_t pictures) {
  constexpr std::uint64_t kTrainingSeed = 0x6661636573;
  constexpr std::uint32_t kOthers = 200;  // of a picture
  const Scene scene{240, 180, 4, kTrainingSeed};
  Samples samples;
  for (std::uint32_t number = 0; number < pictures; ++number) {
    const Picture picture = make_picture(scene, number);
    const CodedPyramid coded(picture);
    const Pyramid& pyramid = coded.pyramid;
    for (const Box& face : picture.planted) {
      std::uint32_t best = 0;
      const auto misfit = [&](std::uint32_t l) {
        return std::abs(std::log(face.side / (kWindow * std::pow(1.25, l))));
      };
      for (std::uint32_t l = 1; l < pyramid.n_levels; ++l) best = misfit(l) < misfit(best) ? l : best;
      const double scale = std::pow(1.25, best), over = (face.side - kWindow * scale) / 2;
      const auto place = [&](std::uint32_t at, std::uint32_t size) {
        return static_cast<std::uint32_t>(
            std::clamp(std::round((at + over) / scale), 0.0, static_cast<double>(size) - kWindow));
      };
      samples.faces.push_back(window_codes(coded, best, place(face.x, pyramid.levels[best].width),
                                           place(face.y, pyramid.levels[best].height)));
    }
    Draw draw(inputs::Random(kTrainingSeed + 1).stream(number));
    for (std::uint32_t i = 0; i < kOthers; ++i) {
      const std::uint32_t l = draw.below(pyramid.n_levels);
      const std::uint32_t x = draw.below(pyramid.levels[l].width - kWindow + 1),
                          y = draw.below(pyramid.levels[l].height - kWindow + 1);
      const auto shows = [&](const Box& face) { return are_alike(box_of(l, x, y), face); };
      if (std::none_of(picture.planted.begin(), picture.planted.end(), shows))
        samples.others.push_back(window_codes(coded, l, x, y));
    }
  }
  return samples;
}

/// How likely each code is in a cell. A code that was never seen counts as seen half a time.
inline std::vector<double> likelihoods(const std::vector<WindowCodes>& windows, std::uint32_t cell) {
  std::vector<double> seen(256, 0.5);
  for (const WindowCodes& codes : windows) {
    for (std::uint32_t i = 0; i < Cascade::kCell * Cascade::kCell; ++i) {
      const std::uint32_t x = 1 + cell % Cascade::kSide * Cascade::kCell + i % Cascade::kCell,
                          y = 1 + cell / Cascade::kSide * Cascade::kCell + i / Cascade::kCell;
      ++seen[codes[y * kWindow + x]];
    }
  }
  const double all = std::accumulate(seen.begin(), seen.end(), 0.0);
  for (double& n : seen) n /= all;
  return seen;
}

}  // namespace detail

/// Scores are eighths of a unit of the natural logarithm. Cells are in the order of the divergence between
/// faces and others. A stage passes what is no more than 4.5 standard deviations below the mean of the faces:
/// with 4 one planted face in a thousand is missed, with 6 windows chain large faces to what is beside them.
inline Cascade trained_cascade(std::uint32_t pictures = 60) {
  const detail::Samples samples = detail::collect_samples(pictures);
  constexpr double kDeviations = 4.5;
  Cascade cascade{};
  std::vector<double> divergences(Cascade::kCells, 0.0);
  for (std::uint32_t cell = 0; cell < Cascade::kCells; ++cell) {
    const auto of_faces = detail::likelihoods(samples.faces, cell),
               of_others = detail::likelihoods(samples.others, cell);
    for (std::size_t code = 0; code < 256; ++code) {
      const double ratio = std::log(of_faces[code] / of_others[code]);
      cascade.scores[cell][code] = static_cast<std::int8_t>(std::clamp(std::round(8 * ratio), -127.0, 127.0));
      divergences[cell] += (of_faces[code] - of_others[code]) * ratio;
    }
  }
  std::iota(cascade.order, cascade.order + Cascade::kCells, std::uint8_t{0});
  std::stable_sort(cascade.order, cascade.order + Cascade::kCells,
                   [&](std::uint8_t a, std::uint8_t b) { return divergences[a] > divergences[b]; });
  for (std::uint32_t stage = 0; stage < Cascade::kStages; ++stage) {
    double sum = 0, squares = 0;
    for (const auto& codes : samples.faces) {
      const double score = cascade.score(stage, codes.data(), kWindow);
      sum += score;
      squares += score * score;
    }
    const auto n = static_cast<double>(samples.faces.size());
    const double mean = sum / n, deviation = std::sqrt(squares / n - mean * mean);
    cascade.least[stage] = static_cast<std::int32_t>(std::floor(mean - kDeviations * deviation));
  }
  return cascade;
}

}  // namespace faces
