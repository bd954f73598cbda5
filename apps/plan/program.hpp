// The paper's graphs as running code: a plan, its input, and whether its output is right.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <esker/device.hpp>
#include <esker/transfer.hpp>

namespace plan_apps {

struct Shape {
  std::string graph;    // figure2, random, chain, tree, horner, cholesky, matmul, cg
  std::uint32_t n = 0;  // kernels, levels, degree or tiles; 0: the paper's
  std::uint64_t seed = 1;
  std::uint64_t floats = 4096;  // of an operand; of a tile of a matrix its square root is taken
  double device_share = 0.5;    // of the kernels of random, chain and tree
  bool outbound = true;         // tree
  bool syrk_on_host = false;    // cholesky
  bool linear = false;          // synthetic kernels of linear work, whatever the graph
};

/// A graph, and what each of its kernels does.
class Program {
 public:
  /// Throws esker::UsageError for a shape that is none.
  /// Kernels of the device are dealt to these in turn.
  Program(const std::vector<esker::Device>& devices, const Shape& shape);

  esker::transfer::Plan& plan() { return plan_; }
  /// After build(): values for what is there on entry.
  void fill();
  /// Before a run that is to be verified: results are what no program computes.
  void clear_results();
  /// After a run. Against the same computation on the host, another one where there is one: a factorization
  /// of the whole matrix, a product without tiles.
  bool is_right() const;
  /// What a loop does between two runs: conjugate gradients go on from their results.
  void feed_back();

 private:
  static constexpr std::uint64_t kPartialSums = 16384;

  /// `device`: of a kernel that is not the host's.
  void add_synthetic(std::uint32_t kernel, std::uint32_t device);
  void add_real(std::uint32_t kernel, std::uint32_t device);
  std::vector<esker::transfer::PlanOperand<float>> operands_of(std::span<const std::uint32_t> numbers) const;
  std::uint32_t number_of(const std::string& name) const;
  std::span<float> values_of(const std::string& name) const;
  bool is_synthetic() const;
  bool is_synthetic_right() const;
  bool is_horner_right() const;
  bool is_cholesky_right() const;
  bool is_matmul_right() const;
  bool is_cg_right() const;

  std::vector<esker::Device> devices_;
  Shape shape_;
  std::uint32_t side_;                                    // of a tile
  std::vector<esker::DeviceArray<double>> partial_sums_;  // of a scalar product, by device
  esker::transfer::OperandGraph graph_;
  esker::transfer::Plan plan_;
  std::vector<esker::transfer::PlanOperand<float>> operands_;
};

}  // namespace plan_apps
