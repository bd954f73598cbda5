// A vertex, an edge or a slot on some PE, in a word that messages carry.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>

namespace graph {

/// Encoding. The PE in the top 16 bits, the index of the PE's vertex, edge or slot in the other 48.
class Location {
 public:
  Location() = default;
  ESKER_HD Location(std::uint32_t pe, std::uint64_t index)
      : word_{static_cast<std::uint64_t>(pe) << kIndexBits | index} {}

  ESKER_HD std::uint32_t pe() const { return static_cast<std::uint32_t>(word_ >> kIndexBits); }
  ESKER_HD std::uint64_t index() const { return word_ & ((std::uint64_t{1} << kIndexBits) - 1); }

  // By hand: nvcc forgets defaulted ones.
  friend bool operator==(const Location& a, const Location& b) { return a.word_ == b.word_; }
  friend bool operator<(const Location& a, const Location& b) { return a.word_ < b.word_; }

 private:
  static constexpr unsigned kIndexBits = 48;
  std::uint64_t word_ = 0;
};

}  // namespace graph
