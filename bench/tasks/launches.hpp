// CUDA's dynamic parallelism, a launch a task.
#pragma once

#include <cstdint>
#include <functional>

namespace esker::bench {

/// fib(n) as its leaves, on the current device: each call is a launch of one lane, and makes two. n is at
/// most 23: launches nest 24 deep. Errors. std::runtime_error with CUDA's words.
std::function<std::uint64_t()> fib_by_launches(int n);

}  // namespace esker::bench
