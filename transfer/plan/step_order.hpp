// Which steps of a program wait for which, where several queues carry them out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <esker/device/platform.hpp>

namespace esker::transfer {

/// Bytes that a step reads or writes: from `begin` up to, not including, `end`.
struct StepRange {
  std::uintptr_t begin, end;
  bool is_written;
};

/// A copy or a kernel. A lane does its steps one after the other.
struct OrderedStep {
  std::uint32_t lane;
  std::vector<StepRange> ranges;
};

/// By step, the steps of other lanes that it waits for, of each lane one at most, so that the program does
/// what it does one step after the other: two steps that touch the same bytes, and do not both only read
/// them, keep their order. A lane waits for nothing twice. `lanes` is more than each step's lane.
ESKER_API std::vector<std::vector<std::uint32_t>> waits_between(std::span<const OrderedStep> steps,
                                                                std::uint32_t lanes);

}  // namespace esker::transfer
