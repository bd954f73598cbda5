// A plan as a program in CUDA C++, with synthetic kernels: the paper's emitter.
#pragma once

#include <string>

#include <esker/device/platform.hpp>
#include <esker/transfer/plan/arena.hpp>
#include <esker/transfer/plan/schedule.hpp>

namespace esker::transfer {

/// A program of one source, to be compiled by nvcc and run: the kernels of the graph with linear work, one
/// allocation a side, the copies of the schedule. It runs the program 100 times as the paper does, prints the
/// time of a run, and exits with 1 if a result differs from the host's.
///
/// Errors. Error{kTransfer}: a graph of several devices, of operands at addresses, or that changes some in
///         place: the emitted program has single assignment and one device.
ESKER_API std::string emit_cuda(const OperandGraph& graph, const Schedule& schedule, const Layout& layout);

}  // namespace esker::transfer
