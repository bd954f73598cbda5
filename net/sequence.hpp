// Which frames of one source are applied, though they arrive and finish out of order.
#pragma once

#include <cstdint>
#include <set>

namespace esker {

/// Contract. Numbers start at 1, and each is added once. One thread.
class Sequence {
 public:
  void add(std::uint64_t n) {
    if (n != prefix_ + 1) {
      beyond_.insert(n);
      return;
    }
    ++prefix_;
    while (!beyond_.empty() && *beyond_.begin() == prefix_ + 1) {
      beyond_.erase(beyond_.begin());
      ++prefix_;
    }
  }
  /// All numbers up to this one have been added.
  std::uint64_t prefix() const { return prefix_; }

 private:
  std::uint64_t prefix_ = 0;
  std::set<std::uint64_t> beyond_;
};

}  // namespace esker
