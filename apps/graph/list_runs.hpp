// Lists on the heap that lanes read in runs, and append to.
#pragma once

#include <cstdint>

#include <esker/esker.hpp>
#include <esker/lane.hpp>

namespace graph {

/// A lane takes one element of a list on a GPU, where others' atomics do not keep it waiting, and a run of
/// kHostRun on a CPU, where it reserves space in another list once a run: reserving for each element would
/// make threads contend for the list's length.
inline constexpr std::uint64_t kHostRun = 256;
/// Launches over a list of `count` what `kernel.template operator()<Run>()` makes for runs of Run.
template <class MakeKernel>
void launch_runs(esker::Runtime& rt, std::uint64_t count, const char* name, const MakeKernel& kernel) {
  if (rt.runs_on_device()) {
    rt.launch(count, kernel.template operator()<1>(), name);
  } else {
    rt.launch((count + kHostRun - 1) / kHostRun, kernel.template operator()<kHostRun>(), name);
  }
}

/// Elements `first` to `end` of a list of `count` are lane `id`'s, if lanes have kRun each.
template <std::uint64_t kRun>
struct RunOf {
  std::uint64_t first, end;
  ESKER_HD RunOf(std::uint64_t id, std::uint64_t count)
      : first{id * kRun}, end{count - first < kRun ? count : first + kRun} {}
};

/// Reserves so many elements at a list's end and returns the first one's index. Any lanes and handlers at a
/// time.
ESKER_HD inline std::uint64_t reserve(std::uint64_t& length, std::uint64_t count) {
  return reinterpret_cast<esker::DeviceAtomic<std::uint64_t>&>(length).fetch_add_relaxed(count);
}

/// What a lane appends to a list: some elements at a time where lanes have long runs.
template <class T, std::uint64_t kRun>
class Appender {
 public:
  ESKER_HD Appender(std::uint64_t& length, esker::SymmetricArray<T> list) : length_{length}, list_{list} {}
  ESKER_HD ~Appender() { flush(); }
  Appender(const Appender&) = delete;
  Appender& operator=(const Appender&) = delete;

  ESKER_HD void add(const T& element) {
    if constexpr (kRun == 1) {  // compilers for GPUs add up constants of a wave's lanes
      list_[reserve(length_, 1)] = element;
    } else {
      own_[count_++] = element;
      if (count_ == kMost) flush();
    }
  }

 private:
  static constexpr std::uint32_t kMost = kRun == 1 ? 1 : 64;
  ESKER_HD void flush() {
    if (count_ == 0) return;
    const std::uint64_t at = reserve(length_, count_);
    for (std::uint32_t i = 0; i < count_; ++i) list_[at + i] = own_[i];
    count_ = 0;
  }

  std::uint64_t& length_;
  const esker::SymmetricArray<T> list_;
  std::uint32_t count_ = 0;
  T own_[kMost];
};

}  // namespace graph
