// esker-bench-queue with kernels as producers: the package queue across the bus.
#pragma once

#include <esker/bench/queue/options.hpp>

namespace esker::bench {

/// Verifies and measures what the options ask for, prints it and writes the JSON. Returns the exit status.
/// Throws std::runtime_error for what the device refuses and for messages that did not arrive.
int run_kernel_bench(const Options& options);

}  // namespace esker::bench
