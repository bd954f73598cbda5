// Runs one kernel source on whatever this test was compiled for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <esker/device/cpu/launch.hpp>
#include <esker/device/group.hpp>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gtest.hpp"

#if defined(ESKER_DEVICE_COMPILER)
#include <esker/device/launch.hpp>
#endif

namespace esker::testing {

#if defined(ESKER_DEVICE_COMPILER)
inline void* allocate_shared(std::size_t bytes) {
  void* memory = nullptr;
  return ESKER_GPU(MallocManaged)(&memory, bytes) == ESKER_GPU(Success) ? memory : nullptr;
}
inline void free_shared(void* memory) { (void)ESKER_GPU(Free)(memory); }
inline std::uint32_t hardware_wave_lanes() {
  gpu::Properties properties{};
  (void)ESKER_GPU(GetDeviceProperties)(&properties, 0);
  return static_cast<std::uint32_t>(properties.warpSize);
}
#else
inline void* allocate_shared(std::size_t bytes) {
  return ::operator new (bytes, std::align_val_t{kLineBytes});
}
inline void free_shared(void* memory) { ::operator delete (memory, std::align_val_t{kLineBytes}); }
#endif

/// Zeroed memory that kernels and the test both reach.
template <class T>
class SharedArray {
 public:
  explicit SharedArray(std::size_t count) : memory_{allocate_shared(count * sizeof(T))}, count_{count} {
    if (memory_ == nullptr) throw std::bad_alloc();
    __builtin_memset(memory_, 0, count * sizeof(T));
  }
  ~SharedArray() { free_shared(memory_); }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;

  T* data() const { return static_cast<T*>(memory_); }
  std::size_t size() const { return count_; }
  T& operator[](std::size_t i) const { return data()[i]; }

 private:
  void* memory_;
  std::size_t count_;
};

/// One way to run a kernel.
struct Way {
  LaunchShape shape;
  GroupExecution execution;  // CPU only

  std::string name() const {
    return std::to_string(shape.lanes) + " lanes, groups of " + std::to_string(shape.group_lanes) +
           ", waves of " + std::to_string(shape.wave_lanes) +
           (execution == GroupExecution::kThreads ? ", threads" : "");
  }
};

/// Group sizes that are and are not multiples of the wave, a short last group, a group of one.
inline std::vector<Way> ways() {
  std::vector<Way> all;
  for (const auto& [lanes, group] : {std::pair{1u, 1u}, {70u, 7u}, {100u, 33u}, {130u, 64u}, kLargest}) {
#if defined(ESKER_DEVICE_COMPILER)
    all.push_back({{lanes, group, hardware_wave_lanes()}, GroupExecution::kFibers});
#else
    for (const std::uint32_t wave : {4u, 32u, 64u}) {
      all.push_back({{lanes, group, wave}, GroupExecution::kFibers});
    }
    if (lanes <= 100) all.push_back({{lanes / 2 + 1, group, 4}, GroupExecution::kThreads});
#endif
  }
  return all;
}

/// Runs the kernel to its end.
template <class Kernel>
void run_on_device(const Way& way, const Kernel& kernel) {
#if defined(ESKER_DEVICE_COMPILER)
  ASSERT_EQ(gpu::launch_on_device(way.shape, nullptr, kernel), "");
  ASSERT_EQ(ESKER_GPU(DeviceSynchronize)(), ESKER_GPU(Success));
#else
  cpu::launch(way.shape, way.execution, kernel);
#endif
}

/// The same random number for the same arguments, in kernels and in their reference.
ESKER_HD inline std::uint64_t random_at(std::uint64_t seed, std::uint64_t a, std::uint64_t b = 0) {
  std::uint64_t x = seed + a * 0x9e3779b97f4a7c15u + b * 0xc2b2ae3d27d4eb4fu;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 29)) * 0x94d049bb133111ebu;
  return x ^ (x >> 32);
}

inline constexpr std::uint64_t kSeeds[] = {
    1,
#if !defined(ESKER_TEST_SANITIZED)
    20170401,
#endif
};

}  // namespace esker::testing
