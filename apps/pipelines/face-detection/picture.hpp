// Synthetic grey pictures: gradients, clutter and noise, and drawn faces at places and sizes that are known.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "../../inputs/random.hpp"
#include "windows.hpp"

namespace faces {

struct Picture {
  std::uint32_t width, height;
  std::vector<std::uint8_t> pixels;  // row by row
  std::vector<Box> planted;
};

/// What every picture of a run has in common.
struct Scene {
  std::uint32_t width, height;
  std::uint32_t faces;  // of a picture, as far as there is space
  std::uint64_t seed;
};

namespace detail {

/// Random numbers one after the other.
class Draw {
 public:
  explicit Draw(const inputs::RandomStream& stream) : stream_{stream} {}
  double between(double low, double high) { return low + (high - low) * inputs::unit(stream_[next_++]); }
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(inputs::scaled(stream_[next_++], n));
  }

 private:
  inputs::RandomStream stream_;
  std::uint64_t next_ = 0;
};

inline double blob(double u, double v, double at_u, double at_v, double width, double height) {
  const double x = (u - at_u) / width, y = (v - at_v) / height;
  return std::exp(-(x * x + y * y) / 2);
}

/// How bright a face is at (u, v), each from -1 to 1 across its box: an oval with brows, eyes, nose and
/// mouth.
inline double face_at(double u, double v) {
  return 0.5 - 0.4 * (u * u + v * v)  // skin, lit from the front
         - 0.8 * (blob(u, v, -0.36, -0.2, 0.15, 0.1) + blob(u, v, 0.36, -0.2, 0.15, 0.1))  // eyes
         - 0.4 * (blob(u, v, -0.36, -0.5, 0.22, 0.06) + blob(u, v, 0.36, -0.5, 0.22, 0.06)) +
         0.3 * blob(u, v, 0, 0.0, 0.08, 0.22) - 0.3 * blob(u, v, 0, 0.3, 0.16, 0.06)  // nose
         - 0.7 * blob(u, v, 0, 0.62, 0.3, 0.08);                                      // mouth
}
/// How much of (u, v) the face covers, 0 to 1.
inline double cover_at(double u, double v) {
  const double radius = std::sqrt(u * u / 0.72 + v * v / 0.95);
  return std::clamp((1 - radius) * 10, 0.0, 1.0);
}

/// Brightness of pixels, before the noise.
class Canvas {
 public:
  Canvas(std::uint32_t width, std::uint32_t height, Draw& draw)
      : width_{width}, height_{height}, values_(std::size_t{width} * height) {
    const double base = draw.between(90, 150), across = draw.between(-50, 50), down = draw.between(-50, 50);
    for (std::uint32_t y = 0; y < height; ++y) {
      for (std::uint32_t x = 0; x < width; ++x)
        values_[at(x, y)] = base + across * x / width + down * y / height;
    }
  }
  /// An ellipse or a rectangle, which is shaded.
  void add_clutter(Draw& draw) {
    const double middle_x = draw.between(0, width_), middle_y = draw.between(0, height_);
    const double half_width = draw.between(3, width_ / 6.0), half_height = draw.between(3, height_ / 6.0);
    const double value = draw.between(-60, 60), slope_u = draw.between(-30, 30),
                 slope_v = draw.between(-30, 30);
    const bool is_round = draw.below(2) == 0;
    paint(middle_x - half_width, middle_y - half_height, 2 * half_width, 2 * half_height,
          [&](double& pixel, double u, double v) {
            if (!is_round || u * u + v * v <= 1) pixel += value + slope_u * u + slope_v * v;
          });
  }
  void add_face(const Box& box, Draw& draw) {
    const double base = draw.between(100, 150), contrast = draw.between(90, 130);
    paint(box.x, box.y, box.side, box.side, [&](double& pixel, double u, double v) {
      const double cover = cover_at(u, v);
      pixel += cover * (base + contrast * face_at(u, v) - pixel);
    });
  }
  std::vector<std::uint8_t> pixels(const inputs::RandomStream& noise) const {
    std::vector<std::uint8_t> pixels(values_.size());
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const double grain = 3 * (inputs::unit(noise[2 * i]) + inputs::unit(noise[2 * i + 1]) - 1);
      pixels[i] = static_cast<std::uint8_t>(std::clamp(values_[i] + grain + 0.5, 0.0, 255.0));
    }
    return pixels;
  }

 private:
  std::size_t at(std::uint32_t x, std::uint32_t y) const { return std::size_t{y} * width_ + x; }
  /// function(pixel, u, v) for the pixels of a rectangle, across which u and v go from -1 to 1.
  template <class Function>
  void paint(double left, double top, double width, double height, const Function& function) {
    const auto first = [](double from) {
      return static_cast<std::uint32_t>(std::max(std::ceil(from - 0.5), 0.0));
    };
    for (std::uint32_t y = first(top); y < height_ && y + 0.5 < top + height; ++y) {
      for (std::uint32_t x = first(left); x < width_ && x + 0.5 < left + width; ++x)
        function(values_[at(x, y)], 2 * (x + 0.5 - left) / width - 1, 2 * (y + 0.5 - top) / height - 1);
    }
  }

  std::uint32_t width_, height_;
  std::vector<double> values_;
};

inline bool are_apart(const Box& a, const Box& b) {
  const std::uint32_t gap = std::max(a.side, b.side) / 4;
  return a.x + a.side + gap <= b.x || b.x + b.side + gap <= a.x || a.y + a.side + gap <= b.y ||
         b.y + b.side + gap <= a.y;
}

}  // namespace detail

/// The same for a scene and a number, always. Sizes of faces are from a window's to two thirds of the height.
inline Picture make_picture(const Scene& scene, std::uint32_t number) {
  const inputs::Random random(scene.seed);
  detail::Draw draw(random.stream(2 * std::uint64_t{number}));
  detail::Canvas canvas(scene.width, scene.height, draw);
  for (std::uint32_t i = 0; i < 24; ++i) canvas.add_clutter(draw);
  Picture picture{scene.width, scene.height, {}, {}};
  const std::uint32_t shorter = std::min(scene.width, scene.height);
  const double least = kWindow + 1, most = std::max(least, shorter * 2 / 3.0);
  for (std::uint32_t attempt = 0; attempt < 20 * scene.faces && picture.planted.size() < scene.faces;
       ++attempt) {
    Box box{};
    box.side =
        std::min(shorter, static_cast<std::uint32_t>(least * std::pow(most / least, draw.between(0, 1))));
    box.x = draw.below(scene.width - box.side + 1);
    box.y = draw.below(scene.height - box.side + 1);
    const auto is_apart = [&](const Box& other) { return detail::are_apart(box, other); };
    if (!std::all_of(picture.planted.begin(), picture.planted.end(), is_apart)) continue;
    canvas.add_face(box, draw);
    picture.planted.push_back(box);
  }
  picture.pixels = canvas.pixels(random.stream(2 * std::uint64_t{number} + 1));
  return picture;
}

}  // namespace faces
