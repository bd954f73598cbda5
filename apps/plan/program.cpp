// The paper's graphs as running code: plans made of graphs, kernels by name, input, verification.
#include "program.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <esker/config.hpp>

#include "kernels.hpp"

namespace plan_apps {

namespace transfer = esker::transfer;
using Reads = std::span<const std::span<const float>>;
using Writes = std::span<const std::span<float>>;

namespace {

std::uint32_t side_of(std::uint64_t floats) {
  return static_cast<std::uint32_t>(std::sqrt(static_cast<double>(floats)));
}

transfer::OperandGraph make_graph(const Shape& s, std::uint32_t side) {
  const std::uint64_t bytes = s.floats * sizeof(float);
  const std::uint64_t tile_bytes = std::uint64_t{side} * side * sizeof(float);
  const auto n = [&](std::uint32_t papers) { return s.n == 0 ? papers : s.n; };
  if (s.floats == 0 || s.floats > std::uint64_t{1} << 28) throw esker::UsageError("--floats is 1 to 2^28");
  if (s.n > 4096) throw esker::UsageError("--n is at most 4096");
  if (s.graph == "figure2") return transfer::figure2_graph(bytes);
  if (s.graph == "random") {
    static_assert(Synthetic::kMost >= 3);
    return transfer::random_graph({n(24), 10, 2, 3, 2, 2, s.device_share}, s.seed, bytes);
  }
  if (s.graph == "chain") return transfer::chain_graph(n(20), s.device_share, s.seed, bytes);
  if (s.graph == "tree") {
    if (s.n > 12) throw esker::UsageError("--n of a tree is its levels: at most 12");
    return transfer::tree_graph(n(4), s.outbound, s.device_share, s.seed, bytes);
  }
  if (s.graph == "horner") return transfer::horner_graph(n(10), bytes);
  if (s.graph == "cholesky") {
    if (s.n > 10) throw esker::UsageError("--n of cholesky is its tiles in a row: at most 10");
    return transfer::cholesky_graph(n(4), s.syrk_on_host, tile_bytes);
  }
  if (s.graph == "matmul") return transfer::matmul_graph(tile_bytes);
  if (s.graph == "cg" && s.linear) throw esker::UsageError("--linear: cg has operands of one element");
  if (s.graph == "cg") return transfer::cg_graph(bytes);
  throw esker::UsageError("no graph has the name " + s.graph);
}

/// Synthetic work on the operands as words.
Synthetic synthetic(Reads in, Writes out, std::uint32_t seed) {
  Synthetic work{{}, {}, static_cast<std::uint32_t>(in.size()), static_cast<std::uint32_t>(out.size()), seed};
  for (std::size_t r = 0; r < in.size(); ++r)
    work.in[r] = reinterpret_cast<const std::uint32_t*>(in[r].data());
  for (std::size_t w = 0; w < out.size(); ++w) work.out[w] = reinterpret_cast<std::uint32_t*>(out[w].data());
  return work;
}

}  // namespace

Program::Program(const std::vector<esker::Device>& devices, const Shape& shape)
    : devices_{devices},
      shape_{shape},
      side_{side_of(shape.floats)},
      graph_{make_graph(shape, side_)},
      plan_{devices} {
  for (const esker::Device& device : devices_) partial_sums_.push_back(device.memory<double>(kPartialSums));
  for (std::uint32_t i = 0; i < graph_.operands(); ++i) {
    const transfer::Operand& operand = graph_.operand(i);
    operands_.push_back(
        plan_.operand<float>(operand.bytes / sizeof(float),
                             {transfer::name_of(graph_, i), operand.on_entry  ? transfer::Life::kInput
                                                            : operand.on_exit ? transfer::Life::kResult
                                                                              : transfer::Life::kInside}));
  }
  std::uint32_t dealt = 0;
  for (std::uint32_t k = 0; k < graph_.kernels(); ++k) {
    const auto device = static_cast<std::uint32_t>(dealt % devices_.size());
    is_synthetic() ? add_synthetic(k, device) : add_real(k, device);
    if (graph_.place(k) != 0) ++dealt;
  }
}

bool Program::is_synthetic() const {
  return shape_.linear || shape_.graph == "figure2" || shape_.graph == "random" || shape_.graph == "chain" ||
         shape_.graph == "tree";
}

std::vector<transfer::PlanOperand<float>> Program::operands_of(std::span<const std::uint32_t> numbers) const {
  std::vector<transfer::PlanOperand<float>> all;
  for (const std::uint32_t number : numbers) all.push_back(operands_[number]);
  return all;
}

void Program::add_synthetic(std::uint32_t k, std::uint32_t d) {
  const auto reads = operands_of(graph_.reads(k)), writes = operands_of(graph_.writes(k));
  const std::uint64_t words = writes.front().size;
  if (graph_.place(k) == 0) {
    plan_.on_host(
        reads, writes, [k, words](Reads in, Writes out) { synthetic(in, out, k).on_host(words); },
        graph_.kernel_name(k));
  } else {
    plan_.on_device(reads, writes,
                    [device = devices_[d], k, words](const esker::Stream& stream, Reads in, Writes out) {
                      device.launch(words, synthetic(in, out, k), stream);
                    },
                    {graph_.kernel_name(k), d});
  }
}

void Program::add_real(std::uint32_t k, std::uint32_t d) {
  const auto reads = operands_of(graph_.reads(k)), writes = operands_of(graph_.writes(k));
  const std::string& name = graph_.kernel_name(k);
  const auto is = [&](std::string_view prefix) { return name.compare(0, prefix.size(), prefix) == 0; };
  const std::uint32_t n = side_;
  const std::uint64_t elements = std::uint64_t{n} * n, floats = shape_.floats;
  // A function that puts a kernel on the stream, by what its operands are.
  const auto on_device = [&](std::uint64_t lanes, auto make) {
    plan_.on_device(reads, writes,
                    [device = devices_[d], lanes, make](const esker::Stream& stream, Reads in, Writes out) {
                      device.launch(lanes, make(in, out), stream);
                    },
                    {name, d});
  };
  if (is("mul")) {
    on_device(floats, [](Reads in, Writes out) {
      return Multiply{in[0].data(), in[1].data(), out[0].data()};
    });
  } else if (is("add")) {
    on_device(floats, [](Reads in, Writes out) { return Sum{in[0].data(), in[1].data(), out[0].data()}; });
  } else if (is("POTRF")) {
    plan_.on_host(
        reads, writes,
        [n](Reads in, Writes out) {
          const std::span<const float> a = in[0];
          const std::span<float> l = out[0];
          for (std::uint32_t i = 0; i < n; ++i) {
            for (std::uint32_t j = 0; j < n; ++j) {
              float sum = j > i ? 0 : a[i * n + j];
              for (std::uint32_t m = 0; m < std::min(i, j) && j <= i; ++m) sum -= l[i * n + m] * l[j * n + m];
              l[i * n + j] = j > i ? 0 : i == j ? std::sqrt(sum) : sum / l[j * n + j];
            }
          }
        },
        name);
  } else if (is("TRSM")) {
    on_device(n, [n](Reads in, Writes out) {
      return TileSolve{in[0].data(), in[1].data(), out[0].data(), n};
    });
  } else if (is("SYRK") && graph_.place(k) == 0) {
    plan_.on_host(
        reads, writes,
        [n, elements](Reads in, Writes out) {
          const TileUpdate update{in[0].data(), in[1].data(), in[1].data(), out[0].data(), n};
          for (std::uint64_t i = 0; i < elements; ++i) update.at(i);
        },
        name);
  } else if (is("SYRK")) {
    on_device(elements, [n](Reads in, Writes out) {
      return TileUpdate{in[0].data(), in[1].data(), in[1].data(), out[0].data(), n};
    });
  } else if (is("GEMM") && shape_.graph == "cholesky") {
    on_device(elements, [n](Reads in, Writes out) {
      return TileUpdate{in[0].data(), in[1].data(), in[2].data(), out[0].data(), n};
    });
  } else if (is("GEMM")) {
    on_device(elements, [n](Reads in, Writes out) {
      return TileProduct{in[0].data(), in[1].data(), out[0].data(), n};
    });
  } else if (is("MADD")) {
    plan_.on_host(
        reads, writes,
        [](Reads in, Writes out) {
          for (std::size_t i = 0; i < out[0].size(); ++i) out[0][i] = in[0][i] + in[1][i];
        },
        name);
  } else if (is("SPMV")) {
    plan_.on_host(
        reads, writes,
        [](Reads in, Writes out) {
          for (std::size_t i = 0; i < out[0].size(); ++i) out[0][i] = static_cast<float>(laplace(in[0], i));
        },
        name);
  } else if (is("DOT")) {
    plan_.on_device(
        reads, writes,
        [device = devices_[d], partial = partial_sums_[d].data(), floats](const esker::Stream& stream,
                                                                          Reads in, Writes out) {
          const auto lanes = std::min<std::uint64_t>(floats, kPartialSums);
          device.launch(lanes, DotParts{in[0].data(), in.back().data(), partial, floats}, stream);
          device.launch(esker::LaunchShape{256, 256}, DotSum{partial, lanes, out[0].data()}, stream);
        },
        {name, d});
  } else if (is("ALPHA")) {
    on_device(1, [](Reads in, Writes out) { return Divide{in[0].data(), in[1].data(), out[0].data()}; });
  } else if (is("AXPY")) {
    const float sign = is("AXPY_x") ? 1.0f : -1.0f;
    on_device(floats, [sign](Reads in, Writes out) {
      return Axpy{in[0].data(), in[1].data(), in[2].data(), out[0].data(), sign};
    });
  } else if (is("XPAY")) {
    on_device(floats, [](Reads in, Writes out) {
      return Xpay{in[0].data(), in[1].data(), in[2].data(), in[3].data(), out[0].data()};
    });
  } else {
    throw esker::UsageError("no kernel has the name " + name);
  }
}

std::uint32_t Program::number_of(const std::string& name) const {
  for (std::uint32_t i = 0; i < graph_.operands(); ++i) {
    if (transfer::name_of(graph_, i) == name) return i;
  }
  throw esker::UsageError("no operand has the name " + name);
}
std::span<float> Program::values_of(const std::string& name) const {
  return plan_.host(operands_[number_of(name)]);
}

void Program::fill() {
  std::mt19937 random(static_cast<std::uint32_t>(shape_.seed));
  for (std::uint32_t i = 0; i < graph_.operands(); ++i) {
    if (!graph_.operand(i).on_entry) continue;
    for (float& value : plan_.host(operands_[i])) value = static_cast<float>(random() >> 8) / 16777216.0f;
  }
  if (shape_.graph == "cholesky") {  // symmetric, and its diagonal larger than the rest of each row
    const std::uint32_t tiles = shape_.n == 0 ? 4 : shape_.n;
    for (std::uint32_t t = 0; t < tiles; ++t) {
      const std::span<float> a = values_of(fmt::format("A{}{}", t, t));
      for (std::uint32_t i = 0; i < side_; ++i) {
        for (std::uint32_t j = 0; j < i; ++j) a[j * side_ + i] = a[i * side_ + j];
        a[i * side_ + i] += static_cast<float>(tiles * side_);
      }
    }
  }
  if (shape_.graph == "cg") {  // x = 0, p = r
    const std::span<float> r = values_of("r"), p = values_of("p"), x = values_of("x");
    std::copy(r.begin(), r.end(), p.begin());
    std::fill(x.begin(), x.end(), 0.0f);
    double rho = 0;
    for (const float value : r) rho += static_cast<double>(value) * static_cast<double>(value);
    values_of("rho")[0] = static_cast<float>(rho);
  }
}

void Program::clear_results() {
  for (std::uint32_t i = 0; i < graph_.operands(); ++i) {
    if (!graph_.operand(i).on_exit) continue;
    const std::span<float> result = plan_.host(operands_[i]);
    std::fill(result.begin(), result.end(), -1e9f);
  }
}

void Program::feed_back() {
  if (shape_.graph != "cg") return;
  if (values_of("rho'")[0] == 0) return fill();  // nothing is left to be solved
  for (const char* name : {"x", "r", "p", "rho"}) {
    const std::span<float> from = values_of(std::string(name) + "'"), to = values_of(name);
    std::copy(from.begin(), from.end(), to.begin());
  }
}

}  // namespace plan_apps
