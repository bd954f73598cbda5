// The work of the ping-pong: each 32-bit word is doubled. The same for Esker and its rivals.
#pragma once

#include <cstdint>

#include <esker/device/platform.hpp>

namespace esker::bench {

/// What a lane reads and writes at a time.
struct alignas(16) Quad {
  std::uint32_t words[4];
};

/// The same as numbers.
struct Floats {
  float v[4];
};
ESKER_HD inline Floats floats_of(const Quad& quad) {
  Floats f;
  __builtin_memcpy(&f, &quad, sizeof f);
  return f;
}
ESKER_HD inline Quad quad_of(const Floats& f) {
  Quad quad;
  __builtin_memcpy(&quad, &f, sizeof f);
  return quad;
}

/// Lane `lane` of `lanes` doubles its part of n quads: four loads are under way at a time.
ESKER_HD inline void double_quads(const Quad* in, Quad* out, std::uint32_t n, std::uint32_t lane,
                                  std::uint32_t lanes) {
  constexpr std::uint32_t kAhead = 4;
  std::uint32_t i = lane;
  for (; i + (kAhead - 1) * lanes < n; i += kAhead * lanes) {
    Quad some[kAhead];
    for (std::uint32_t k = 0; k < kAhead; ++k) some[k] = in[i + k * lanes];
    for (std::uint32_t k = 0; k < kAhead; ++k) {
      for (std::uint32_t& word : some[k].words) word *= 2;
      out[i + k * lanes] = some[k];
    }
  }
  for (; i < n; i += lanes) {
    Quad one = in[i];
    for (std::uint32_t& word : one.words) word *= 2;
    out[i] = one;
  }
}

struct DoubleFrames {
  ESKER_HD void operator()(auto& stage, const auto& in, auto& out) const {
    double_quads(in.data, out.data, in.count, stage.lane(), stage.lanes());
  }
};

/// The words of slot s, before they are doubled.
inline std::uint32_t word_of(std::uint64_t slot, std::uint64_t i) {
  return static_cast<std::uint32_t>(slot * 2654435761u + i);
}
inline void fill_slot(Quad* at, std::uint64_t quads, std::uint64_t slot) {
  for (std::uint64_t i = 0; i < quads; ++i) {
    for (std::uint32_t w = 0; w < 4; ++w) at[i].words[w] = word_of(slot, 4 * i + w);
  }
}
inline bool is_right(const Quad& quad, std::uint64_t i, std::uint64_t slot, std::uint32_t times) {
  for (std::uint32_t w = 0; w < 4; ++w) {
    if (quad.words[w] != word_of(slot, 4 * i + w) * times) return false;
  }
  return true;
}
/// The first and the last words of a slot, or all.
inline bool is_right(const Quad* at, std::uint64_t quads, std::uint64_t slot, std::uint32_t times, bool all) {
  if (!is_right(at[0], 0, slot, times) || !is_right(at[quads - 1], quads - 1, slot, times)) return false;
  for (std::uint64_t i = 0; all && i < quads; ++i) {
    if (!is_right(at[i], i, slot, times)) return false;
  }
  return true;
}

}  // namespace esker::bench
