// The graphs of Kessler's evaluation, for programs, tests and figures.
#pragma once

#include <cstdint>
#include <string>

#include <esker/device/platform.hpp>
#include <esker/transfer/plan/operand_graph.hpp>

namespace esker::transfer {

/// Figure 2: 5 kernels, 13 operands.
ESKER_API OperandGraph figure2_graph(std::uint64_t bytes);

struct RandomGraph {
  std::uint32_t kernels, on_entry;
  std::uint32_t least_reads, most_reads, least_writes, most_writes;
  double device_share = 0.5;  // of the kernels
};
/// Section 5.1: numbers of operands in these ranges, each as likely; a kernel reads different operands of
/// those that are there. What nobody reads is wanted on exit.
ESKER_API OperandGraph random_graph(const RandomGraph& shape, std::uint64_t seed, std::uint64_t bytes);

/// Each kernel reads what the one before it has written. With `device_share` 1 all are on the device.
ESKER_API OperandGraph chain_graph(std::uint32_t kernels, double device_share, std::uint64_t seed,
                                   std::uint64_t bytes);
/// Binary, of 2^levels - 1 kernels. Outbound: from one operand, each kernel writes two. Inbound: to one.
ESKER_API OperandGraph tree_graph(std::uint32_t levels, bool outbound, double device_share,
                                  std::uint64_t seed, std::uint64_t bytes);
/// A polynomial of this degree by Horner's rule, a multiplication and an addition a step, all on the device.
ESKER_API OperandGraph horner_graph(std::uint32_t degree, std::uint64_t bytes);
/// Left-looking, of tiles x tiles: POTRF on the host, TRSM, SYRK and GEMM on the device, or SYRK on the host
/// too. Kernels read what they change and write a new value (single assignment).
ESKER_API OperandGraph cholesky_graph(std::uint32_t tiles, bool syrk_on_host, std::uint64_t bytes);
/// 2 x 2 tiles: 8 GEMM on the device, each two of them followed by their MADD on the host.
ESKER_API OperandGraph matmul_graph(std::uint64_t bytes);
/// The body of the loop of conjugate gradients: the product with the matrix on the host, the rest on the
/// device. Operands p, x, r and the scalar r'r are there on entry.
ESKER_API OperandGraph cg_graph(std::uint64_t bytes);

}  // namespace esker::transfer
