// The six kinds of work of XeFlow's Figure 9: three that compute and three that move data. The paper takes
// them from Parboil and does not say which: here they are what Parboil's programs of these names do for an
// item, over items of 16 bytes and a table that all of them read.
#pragma once

#include <cmath>
#include <cstdint>

#include <esker/lane.hpp>

#include "words.hpp"

namespace esker::bench {

enum class WorkKind : std::uint32_t { kMriQ, kCutcp, kTpacf, kSpmv, kSad, kHisto };
inline constexpr std::uint32_t kWorkKinds = 6;
constexpr const char* to_string(WorkKind kind) {
  constexpr const char* kNames[] = {"mri-q", "cutcp", "tpacf", "spmv", "sad", "histo"};
  return kNames[static_cast<std::uint32_t>(kind)];
}
/// Bound by arithmetic where frames are large; the others are bound by the bus.
constexpr bool computes(WorkKind kind) { return kind <= WorkKind::kTpacf; }

struct Workload {
  static constexpr std::uint32_t kBins = 4096, kTable = 1024;

  WorkKind kind;
  std::uint32_t n;                    // entries of the table that are used: samples, atoms, directions
  const Quad* table;                  // kTable of them
  DeviceAtomic<std::uint32_t>* bins;  // of histo; null on the host

  ESKER_HD void operator()(const Quad* in, Quad* out, std::uint32_t quads, std::uint32_t lane,
                           std::uint32_t lanes) const {
    for (std::uint32_t i = lane; i < quads; i += lanes) out[i] = of(in[i]);
  }
  ESKER_HD Quad of(const Quad& item) const {
    switch (kind) {
      case WorkKind::kMriQ:
        return mri_q(floats_of(item));
      case WorkKind::kCutcp:
        return cutcp(floats_of(item));
      case WorkKind::kTpacf:
        return tpacf(floats_of(item));
      case WorkKind::kSpmv:
        return spmv(item);
      case WorkKind::kSad:
        return sad(item);
      case WorkKind::kHisto:
        break;
    }
    return histo(item);
  }
  /// Whether a result is what the host has found, as far as its processor rounds as the device's.
  bool are_equal(const Quad& a, const Quad& b) const {
    const Floats f = floats_of(a), g = floats_of(b);
    for (std::uint32_t w = 0; w < 4; ++w) {
      if (computes(kind) ? !(std::fabs(f.v[w] - g.v[w]) <= 2 + 1e-2f * std::fabs(g.v[w]))
                         : a.words[w] != b.words[w])
        return false;
    }
    return true;
  }

 private:
  /// A voxel's sum over samples of k-space.
  ESKER_HD Quad mri_q(const Floats& at) const {
    Floats sum{};
    for (std::uint32_t k = 0; k < n; ++k) {
      const Floats s = floats_of(table[k]);
      const float angle = 6.2831853f * (s.v[0] * at.v[0] + s.v[1] * at.v[1] + s.v[2] * at.v[2]);
      sum.v[0] += s.v[3] * cosf(angle);
      sum.v[1] += s.v[3] * sinf(angle);
    }
    return quad_of(sum);
  }
  /// A lattice point's potential of the charges within a distance.
  ESKER_HD Quad cutcp(const Floats& at) const {
    constexpr float kCutoff2 = 0.5f;
    Floats sum{};
    for (std::uint32_t k = 0; k < n; ++k) {
      const Floats atom = floats_of(table[k]);
      float r2 = 1e-4f;
      for (std::uint32_t w = 0; w < 3; ++w) r2 += (atom.v[w] - at.v[w]) * (atom.v[w] - at.v[w]);
      const float s = 1 - r2 / kCutoff2;
      if (r2 < kCutoff2) sum.v[0] += atom.v[3] / sqrtf(r2) * s * s;
    }
    return quad_of(sum);
  }
  /// How many directions are within some angles of this one.
  ESKER_HD Quad tpacf(const Floats& at) const {
    Floats counts{};
    for (std::uint32_t k = 0; k < n; ++k) {
      const Floats other = floats_of(table[k]);
      const float dot = other.v[0] * at.v[0] + other.v[1] * at.v[1] + other.v[2] * at.v[2];
      for (std::uint32_t w = 0; w < 4; ++w) counts.v[w] += dot > 0.25f * static_cast<float>(w) ? 1.0f : 0.0f;
    }
    return quad_of(counts);
  }
  /// A row of four whole numbers that are not 0, times a vector.
  ESKER_HD Quad spmv(const Quad& row) const {
    Quad sums{};
    for (std::uint32_t w = 0; w < 4; ++w) {
      const std::uint32_t word = row.words[w];
      sums.words[w % 2] += (word >> 16) * table[word % kTable].words[w];
    }
    return sums;
  }
  /// Sums of absolute differences between 16 pixels and four blocks of a reference.
  ESKER_HD Quad sad(const Quad& pixels) const {
    Quad sums{};
    for (std::uint32_t r = 0; r < 4; ++r) {
      const Quad reference = table[(pixels.words[0] + r) % kTable];
      for (std::uint32_t w = 0; w < 4; ++w) {
        for (std::uint32_t b = 0; b < 32; b += 8) {
          const std::uint32_t x = pixels.words[w] >> b & 0xff, y = reference.words[w] >> b & 0xff;
          sums.words[r] += x > y ? x - y : y - x;
        }
      }
    }
    return sums;
  }
  /// The bins of four values.
  ESKER_HD Quad histo(const Quad& values) const {
    Quad found;
    for (std::uint32_t w = 0; w < 4; ++w) {
      found.words[w] = values.words[w] * 2654435761u >> 20;
      if (bins != nullptr) (void)bins[found.words[w]].fetch_add_relaxed(1);
    }
    return found;
  }
};

}  // namespace esker::bench
