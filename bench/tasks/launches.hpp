// CUDA's dynamic parallelism: a launch a task of fib, a launch a square of a picture.
#pragma once

#include <cstdint>
#include <functional>

#include "../../apps/mandelbrot/picture.hpp"

namespace esker::bench {

/// fib(n) as its leaves, on the current device: each call is a launch of one lane, and makes two. n is at
/// most 23: launches nest 24 deep. Errors. std::runtime_error with CUDA's words.
std::function<std::uint64_t()> fib_by_launches(int n);

/// Mariani and Silver's method as published for dynamic parallelism (A. Adinetz, NVIDIA's developer blog,
/// 2014), with its sizes: a group computes the border of a square and launches what fills the square, what
/// computes each of its pixels, or 16 groups for its parts. Returns when all is drawn. Errors as above.
std::function<void()> draw_by_launches(const mandelbrot::Picture& picture);

}  // namespace esker::bench
