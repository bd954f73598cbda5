// Waits between lanes: the last reader and writer of each stretch of memory.
#include <esker/transfer/plan/step_order.hpp>

#include <algorithm>

namespace esker::transfer {

namespace {

/// One more than the number of a step; 0: none.
using After = std::uint32_t;

/// By lane, the last step that has read and written the bytes between two neighbouring bounds.
struct Stretch {
  std::vector<After> read, written;

  void touch(std::uint32_t lane, After step, bool is_written) {
    if (!is_written) {
      read[lane] = step;
      return;
    }
    // Whoever waits for this step waits for those before it.
    std::fill(read.begin(), read.end(), 0);
    std::fill(written.begin(), written.end(), 0);
    written[lane] = step;
  }
};

}  // namespace

std::vector<std::vector<std::uint32_t>> waits_between(std::span<const OrderedStep> steps,
                                                      std::uint32_t lanes) {
  std::vector<std::uintptr_t> bounds;
  for (const OrderedStep& step : steps) {
    for (const StepRange& range : step.ranges) bounds.insert(bounds.end(), {range.begin, range.end});
  }
  std::sort(bounds.begin(), bounds.end());
  bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
  std::vector<Stretch> stretches(bounds.size(), {std::vector<After>(lanes, 0), std::vector<After>(lanes, 0)});
  const auto stretch_at = [&](std::uintptr_t bound) {
    return stretches.begin() + (std::lower_bound(bounds.begin(), bounds.end(), bound) - bounds.begin());
  };

  // By lane, how far it is known to be behind each other lane.
  std::vector<std::vector<After>> behind(lanes, std::vector<After>(lanes, 0));
  std::vector<std::vector<std::uint32_t>> waits(steps.size());
  std::vector<After> needed(lanes);
  for (std::uint32_t s = 0; s < steps.size(); ++s) {
    const OrderedStep& step = steps[s];
    std::fill(needed.begin(), needed.end(), 0);
    const auto need = [&](const std::vector<After>& last) {
      for (std::uint32_t lane = 0; lane < lanes; ++lane) needed[lane] = std::max(needed[lane], last[lane]);
    };
    for (const StepRange& range : step.ranges) {
      for (auto at = stretch_at(range.begin); at != stretch_at(range.end); ++at) {
        need(at->written);
        if (range.is_written) need(at->read);
      }
    }
    for (std::uint32_t lane = 0; lane < lanes; ++lane) {
      After& known = behind[step.lane][lane];
      if (lane == step.lane || needed[lane] <= known) continue;
      known = needed[lane];
      waits[s].push_back(known - 1);
    }
    for (const StepRange& range : step.ranges) {
      for (auto at = stretch_at(range.begin); at != stretch_at(range.end); ++at)
        at->touch(step.lane, s + 1, range.is_written);
    }
  }
  return waits;
}

}  // namespace esker::transfer
