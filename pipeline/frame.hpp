// Frames: what stages read and fill.
#pragma once

#include <cstdint>

#include <esker/device/atomic.hpp>
#include <esker/device/platform.hpp>

namespace esker::pipeline {

/// A handle of the pipeline that made it; copied by value into stages' functions.
template <class T>
struct Topic {
  using Item = T;
  std::uint32_t pipeline, number;
};

/// Some items in a topic's memory. Of Frame<const T> the items can be read until the stage's function
/// returns, of Frame<T> they can be written until publish().
template <class T>
struct Frame {
  T* data = nullptr;
  std::uint32_t count = 0;     // items in it
  std::uint32_t capacity = 0;  // items that it has room for
  std::uint64_t number = 0;    // in its topic
  std::uint64_t tag = 0;       // the user's; map() passes it on
  std::uint64_t born_ns = 0;   // when its source opened it, by the host's steady clock

  ESKER_HD T& operator[](std::uint32_t i) const { return data[i]; }
  ESKER_HD T* begin() const { return data; }
  ESKER_HD T* end() const { return data + count; }
};

namespace detail {

/// What travels with a frame: one slot's. `published` says the round and the number of items, so that who
/// polls it learns both in one read.
struct alignas(64) FrameWords {
  SystemAtomic<std::uint64_t> published;
  std::uint64_t tag;
  std::uint64_t born_ns;
};
static_assert(sizeof(FrameWords) == 64);

}  // namespace detail

}  // namespace esker::pipeline
