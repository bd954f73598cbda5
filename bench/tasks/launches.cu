// A rival: CUDA's dynamic parallelism. Alone in a library, since it wants relocatable device code.
#include "launches.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>

namespace esker::bench {
namespace {

struct Words {
  unsigned long long sum;
  int error;  // of a launch from a kernel
};

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

__global__ void fib_leaves(int n, Words* words) {
  if (n < 2) {
    atomicAdd(&words->sum, static_cast<unsigned long long>(n));
    return;
  }
  fib_leaves<<<1, 1, 0, cudaStreamFireAndForget>>>(n - 1, words);
  fib_leaves<<<1, 1, 0, cudaStreamFireAndForget>>>(n - 2, words);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) words->error = static_cast<int>(error);
}

constexpr unsigned kGroupX = 64, kGroupY = 4;
constexpr unsigned kFirstParts = 32, kParts = 4;       // of a side
constexpr unsigned kMostDepth = 4, kLeastPixels = 32;  // of a side that is divided further

using mandelbrot::Picture;

/// One pixel a lane.
__global__ void draw_pixels(Picture all, unsigned left, unsigned top, unsigned side) {
  const unsigned x = blockIdx.x * kGroupX + threadIdx.x, y = blockIdx.y * kGroupY + threadIdx.y;
  if (x >= side || y >= side || left + x >= all.width || top + y >= all.height) return;
  all.steps[std::size_t{top + y} * all.width + left + x] = all.steps_at(left + x, top + y);
}
__global__ void fill_pixels(Picture all, unsigned left, unsigned top, unsigned side, unsigned steps) {
  const unsigned x = blockIdx.x * kGroupX + threadIdx.x, y = blockIdx.y * kGroupY + threadIdx.y;
  if (x >= side || y >= side || left + x >= all.width || top + y >= all.height) return;
  all.steps[std::size_t{top + y} * all.width + left + x] = steps;
}
/// A square a group.
__global__ void draw_squares(Picture all, unsigned first_x, unsigned first_y, unsigned side, unsigned depth,
                             int* failed) {
  const unsigned left = first_x + side * blockIdx.x, top = first_y + side * blockIdx.y;
  if (left >= all.width || top >= all.height) return;
  const unsigned right = min(left + side, all.width) - 1, bottom = min(top + side, all.height) - 1;
  const unsigned lane = threadIdx.y * kGroupX + threadIdx.x;
  __shared__ unsigned least, most;
  if (lane == 0) {
    least = ~0u;
    most = 0;
  }
  __syncthreads();
  unsigned low = ~0u, high = 0;
  for (unsigned i = lane; i < 4 * side; i += kGroupX * kGroupY) {
    const unsigned edge = i / side, along = i % side;
    const unsigned x = edge == 0 ? left : edge == 1 ? right : min(left + along, right);
    const unsigned y = edge == 2 ? top : edge == 3 ? bottom : min(top + along, bottom);
    const unsigned steps = all.steps_at(x, y);
    low = min(low, steps);
    high = max(high, steps);
  }
  low = __reduce_min_sync(~0u, low);
  high = __reduce_max_sync(~0u, high);
  if (lane % 32 == 0) {
    atomicMin(&least, low);
    atomicMax(&most, high);
  }
  __syncthreads();
  if (lane != 0) return;
  const dim3 group(kGroupX, kGroupY);
  const dim3 groups((side + kGroupX - 1) / kGroupX, (side + kGroupY - 1) / kGroupY);
  if (least == most) {
    fill_pixels<<<groups, group, 0, cudaStreamFireAndForget>>>(all, left, top, side, least);
  } else if (depth + 1 < kMostDepth && side / kParts > kLeastPixels) {
    draw_squares<<<dim3(kParts, kParts), group, 0, cudaStreamFireAndForget>>>(
        all, left, top, (side + kParts - 1) / kParts, depth + 1, failed);
  } else {
    draw_pixels<<<groups, group, 0, cudaStreamFireAndForget>>>(all, left, top, side);
  }
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) *failed = static_cast<int>(error);
}

/// More launches that wait than the limit, 2048 by default, are an error.
void let_wait(std::size_t launches) {
  check(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, launches), "the limit of pending launches");
}

}  // namespace

std::function<void()> draw_by_launches(const Picture& picture) {
  const unsigned side = (std::max(picture.width, picture.height) + kFirstParts - 1) / kFirstParts;
  // Each square launches once: those of all depths that there may be.
  std::size_t launches = 0, squares = std::size_t{kFirstParts} * kFirstParts;
  unsigned size = side;
  for (unsigned depth = 0; depth < kMostDepth; ++depth, squares *= kParts * kParts) {
    launches += squares;
    if (size / kParts <= kLeastPixels) break;
    size = (size + kParts - 1) / kParts;
  }
  let_wait(launches);
  int* failed = nullptr;
  check(cudaMalloc(&failed, sizeof *failed), "memory for an error");
  const std::shared_ptr<int> memory(failed, [](int* at) { (void)cudaFree(at); });
  return [=] {
    check(cudaMemset(memory.get(), 0, sizeof(int)), "no error yet");
    draw_squares<<<dim3(kFirstParts, kFirstParts), dim3(kGroupX, kGroupY)>>>(picture, 0, 0, side, 0,
                                                                             memory.get());
    check(cudaGetLastError(), "the first launch");
    check(cudaDeviceSynchronize(), "launches from kernels");
    int error = 0;
    check(cudaMemcpy(&error, memory.get(), sizeof error, cudaMemcpyDeviceToHost), "an error");
    check(static_cast<cudaError_t>(error), "a launch from a kernel");
  };
}

std::function<std::uint64_t()> fib_by_launches(int n) {
  // As many launches may wait as there are calls.
  std::size_t calls = 1, before = 1;
  for (int i = 1; i < n; ++i) {
    const std::size_t next = calls + before + 1;
    before = calls;
    calls = next;
  }
  let_wait(calls + 1);
  Words* words = nullptr;
  check(cudaMalloc(&words, sizeof(Words)), "memory for a sum");
  const std::shared_ptr<Words> memory(words, [](Words* at) { (void)cudaFree(at); });
  return [memory, n] {
    Words* const at = memory.get();
    check(cudaMemset(at, 0, sizeof(Words)), "a sum");
    fib_leaves<<<1, 1>>>(n, at);
    check(cudaGetLastError(), "the first launch");
    check(cudaDeviceSynchronize(), "launches from kernels");
    Words found{};
    check(cudaMemcpy(&found, at, sizeof found, cudaMemcpyDeviceToHost), "a sum");
    check(static_cast<cudaError_t>(found.error), "a launch from a kernel");
    return static_cast<std::uint64_t>(found.sum);
  };
}

}  // namespace esker::bench
