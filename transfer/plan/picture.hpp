// Schedules for people: the report, and a picture for Graphviz.
#pragma once

#include <span>
#include <string>

#include <esker/device/platform.hpp>
#include <esker/transfer/plan/arena.hpp>
#include <esker/transfer/plan/schedule.hpp>

namespace esker::transfer {

/// What the paper prints, the times and the program with its copies; then startups with their bound and who
/// proves it, and memory by place.
ESKER_API std::string report_of(const OperandGraph& graph, std::span<const Transfer> transfers,
                                const Schedule& schedule, const Layout& layout);

/// The kernel-vector graph as Figure 2 draws it, for `dot -Tsvg`: kernels as ellipses, yellow on the host and
/// blue on a device; operands as boxes, yellow on the host alone, cyan on devices alone, green on both, with
/// a black frame on entry and a red one on exit. Operands of one startup share a number.
ESKER_API std::string to_dot(const OperandGraph& graph, const Schedule& schedule);

}  // namespace esker::transfer
