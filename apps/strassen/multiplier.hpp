// The memory of a product on a device, and the program that computes it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <esker/device.hpp>
#include <esker/tasks.hpp>

#include "matrices.hpp"
#include "strassen_task.hpp"

namespace strassen {

/// Rows of blocks that are worth no division: adding quadrants waits for memory.
inline std::uint32_t best_cutoff(const esker::Device& device) {
  return device.backend() == esker::Backend::kCpu ? 128 : 1024;
}

/// Two matrices on a device, their product, and the arena for what is between.
class Operands {
 public:
  /// Of n rows; blocks of at most `cutoff` rows are multiplied as they are.
  Operands(const esker::Device& device, std::uint32_t n, std::uint32_t cutoff)
      : device_{device},
        n_{n},
        host_plan_{plan_for(n, cutoff)},
        memory_{device.memory<float>(3 * elements() + host_plan_.arena_elements(),
                                     {"matrices to multiply, and sums of their quadrants", false})},
        plan_{device.memory<Plan>(1, {"how a product is divided"})} {
    host_plan_.arena = c() + elements();
    device.copy(plan_.data(), &host_plan_, sizeof(Plan));
  }

  const esker::Device& device() const { return device_; }
  const Plan& host_plan() const { return host_plan_; }
  Plan* plan() const { return plan_.data(); }
  /// In rows of host_plan().side, as the matrices of put() and get() are.
  float* a() const { return memory_.data(); }
  float* b() const { return a() + elements(); }
  float* c() const { return b() + elements(); }
  std::size_t arena_bytes() const { return host_plan_.arena_elements() * sizeof(float); }
  std::size_t device_bytes() const { return memory_.size_bytes(); }
  Tolerance tolerance() const {
    return {double{1} * host_plan_.levels, double{1} * (host_plan_.side >> host_plan_.levels),
            double{1} * n_};
  }

  void put(const Matrix& of_a, const Matrix& of_b) const {
    device_.copy(a(), of_a.elements.data(), elements() * sizeof(float));
    device_.copy(b(), of_b.elements.data(), elements() * sizeof(float));
  }
  /// What a run leaves out is no number from then on.
  void forget() const {
    const esker::Stream stream = device_.stream();
    device_.fill(c(), 0xff, elements() * sizeof(float) + arena_bytes(), stream);
    stream.synchronize();
  }
  void get(Matrix& of_c) const { device_.copy(of_c.elements.data(), c(), elements() * sizeof(float)); }

 private:
  static Plan plan_for(std::uint32_t n, std::uint32_t cutoff) {
    const std::uint32_t levels = Plan::levels_for(n, cutoff);
    return {Plan::side_for(n, levels), levels, nullptr};
  }
  std::size_t elements() const { return std::size_t{host_plan_.side} * host_plan_.side; }

  const esker::Device device_;
  const std::uint32_t n_;
  Plan host_plan_;
  esker::DeviceArray<float> memory_;
  esker::DeviceArray<Plan> plan_;
};

/// Multiplies them, any number of times. Runs on the same operands take turns.
class Multiplier {
 public:
  Multiplier(const Operands& operands, esker::tasks::Options options)
      : operands_{operands}, tasks_{operands.device(), with_plan(options, operands)} {}
  void run() {
    tasks_.run(Multiply::all(operands_.host_plan(), operands_.a(), operands_.b(), operands_.c()));
  }
  const esker::tasks::Report& report() const { return tasks_.report(); }

 private:
  static esker::tasks::Options with_plan(esker::tasks::Options options, const Operands& operands) {
    options.local = operands.plan();
    return options;
  }
  const Operands& operands_;
  esker::tasks::ForkJoin<Multiply> tasks_;
};

}  // namespace strassen
