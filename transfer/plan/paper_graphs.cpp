// The graphs of Kessler's evaluation.
#include <esker/transfer/plan/paper_graphs.hpp>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <fmt/format.h>

#include <esker/error.hpp>

namespace esker::transfer {

namespace {

using List = std::vector<std::uint32_t>;

std::uint32_t value(OperandGraph& graph, std::string name, std::uint64_t bytes, bool on_entry = false) {
  return graph.add_operand({std::move(name), bytes, on_entry, false});
}

/// Places at random, the same share of kernels on the device.
class Places {
 public:
  Places(double device_share, std::uint64_t seed) : share_{device_share}, random_{seed} {}
  std::uint32_t next() { return std::uniform_real_distribution<double>(0, 1)(random_) < share_ ? 1 : 0; }

 private:
  double share_;
  std::mt19937_64 random_;
};

}  // namespace

OperandGraph figure2_graph(std::uint64_t bytes) {
  OperandGraph graph;
  enum : std::uint32_t { A, B, C, D, E, F, G, H, I, J, K, L, M };
  for (std::uint32_t i = A; i <= M; ++i)
    value(graph, std::string(1, static_cast<char>('A' + i)), bytes, i <= C);
  graph.add_kernel("Kernel0", 1, List{B, A}, List{D, E});
  graph.add_kernel("Kernel1", 0, List{E, B}, List{F, G});
  graph.add_kernel("Kernel2", 1, List{C, F}, List{H, I});
  graph.add_kernel("Kernel3", 1, List{F, H}, List{J, K});
  graph.add_kernel("Kernel4", 1, List{H, E}, List{L, M});
  graph.want_results();
  return graph;
}

OperandGraph random_graph(const RandomGraph& shape, std::uint64_t seed, std::uint64_t bytes) {
  if (shape.least_reads > shape.most_reads || shape.least_writes > shape.most_writes || shape.on_entry == 0) {
    throw Error(
        Error::Kind::kTransfer,
        fmt::format("random_graph: {} operands on entry, {} to {} reads, {} to {} writes", shape.on_entry,
                    shape.least_reads, shape.most_reads, shape.least_writes, shape.most_writes));
  }
  std::mt19937_64 random(seed);
  const auto between = [&](std::uint32_t least, std::uint32_t most) {
    return least + static_cast<std::uint32_t>(random() % (most - least + 1));
  };
  OperandGraph graph;
  for (std::uint32_t i = 0; i < shape.on_entry; ++i) value(graph, fmt::format("v{}", i), bytes, true);
  List there(shape.on_entry);
  std::iota(there.begin(), there.end(), 0u);
  for (std::uint32_t k = 0; k < shape.kernels; ++k) {
    const bool on_device = std::uniform_real_distribution<double>(0, 1)(random) < shape.device_share;
    const std::uint32_t reads =
        std::min(between(shape.least_reads, shape.most_reads), static_cast<std::uint32_t>(there.size()));
    for (std::uint32_t i = 0; i < reads; ++i) std::swap(there[i], there[i + random() % (there.size() - i)]);
    const List read(there.begin(), there.begin() + reads);
    List written;
    for (std::uint32_t i = between(shape.least_writes, shape.most_writes); i > 0; --i)
      written.push_back(value(graph, fmt::format("v{}", graph.operands()), bytes));
    graph.add_kernel(fmt::format("Kernel{}", k), on_device ? 1 : 0, read, written);
    there.insert(there.end(), written.begin(), written.end());
  }
  graph.want_results();
  return graph;
}

OperandGraph chain_graph(std::uint32_t kernels, double device_share, std::uint64_t seed,
                         std::uint64_t bytes) {
  OperandGraph graph;
  Places places(device_share, seed);
  std::uint32_t last = value(graph, "v0", bytes, true);
  for (std::uint32_t k = 0; k < kernels; ++k) {
    const std::uint32_t next = value(graph, fmt::format("v{}", k + 1), bytes);
    graph.add_kernel(fmt::format("Kernel{}", k), places.next(), List{last}, List{next});
    last = next;
  }
  graph.want_results();
  return graph;
}

OperandGraph tree_graph(std::uint32_t levels, bool outbound, double device_share, std::uint64_t seed,
                        std::uint64_t bytes) {
  OperandGraph graph;
  Places places(device_share, seed);
  const std::uint32_t kernels = (1u << levels) - 1;
  List front;  // what the next level reads
  for (std::uint32_t i = 0; i < (outbound ? 1 : kernels + 1); ++i)
    front.push_back(value(graph, fmt::format("v{}", i), bytes, true));
  for (std::uint32_t k = 0; k < kernels;) {
    List next;
    for (std::size_t i = 0; i < front.size(); i += outbound ? 1 : 2) {
      const List reads(front.begin() + static_cast<std::ptrdiff_t>(i),
                       front.begin() + static_cast<std::ptrdiff_t>(i + (outbound ? 1 : 2)));
      List writes;
      for (std::uint32_t w = 0; w < (outbound ? 2 : 1); ++w)
        writes.push_back(value(graph, fmt::format("v{}", graph.operands()), bytes));
      graph.add_kernel(fmt::format("Kernel{}", k++), places.next(), reads, writes);
      next.insert(next.end(), writes.begin(), writes.end());
    }
    front = std::move(next);
  }
  graph.want_results();
  return graph;
}

OperandGraph horner_graph(std::uint32_t degree, std::uint64_t bytes) {
  OperandGraph graph;
  const std::uint32_t x = value(graph, "x", bytes, true);
  List coefficients;
  for (std::uint32_t i = 0; i <= degree; ++i)
    coefficients.push_back(value(graph, fmt::format("a{}", i), bytes, true));
  std::uint32_t sum = coefficients[degree];
  for (std::uint32_t i = degree; i-- > 0;) {
    const std::uint32_t product = value(graph, fmt::format("m{}", i), bytes);
    graph.add_kernel(fmt::format("mul{}", i), 1, List{sum, x}, List{product});
    sum = value(graph, fmt::format("s{}", i), bytes);
    graph.add_kernel(fmt::format("add{}", i), 1, List{product, coefficients[i]}, List{sum});
  }
  graph.want_results();
  return graph;
}

OperandGraph cholesky_graph(std::uint32_t tiles, bool syrk_on_host, std::uint64_t bytes) {
  OperandGraph graph;
  std::vector<List> tile(tiles, List(tiles, 0));  // the newest value of each
  for (std::uint32_t i = 0; i < tiles; ++i) {
    for (std::uint32_t j = 0; j <= i; ++j) tile[i][j] = value(graph, fmt::format("A{}{}", i, j), bytes, true);
  }
  List factor;
  const auto change = [&](const char* kernel, std::uint32_t place, std::uint32_t i, std::uint32_t j,
                          List reads) {
    reads.insert(reads.begin(), tile[i][j]);
    const std::string& before = graph.operand(tile[i][j]).name;
    tile[i][j] =
        value(graph, kernel[0] == 'P' || kernel[0] == 'T' ? fmt::format("L{}{}", i, j) : before + "'", bytes);
    graph.add_kernel(fmt::format("{}{}{}", kernel, i, j), place, reads, List{tile[i][j]});
  };
  for (std::uint32_t k = 0; k < tiles; ++k) {
    for (std::uint32_t j = 0; j < k; ++j) change("SYRK", syrk_on_host ? 0 : 1, k, k, List{tile[k][j]});
    for (std::uint32_t i = k + 1; i < tiles; ++i) {
      for (std::uint32_t j = 0; j < k; ++j) change("GEMM", 1, i, k, List{tile[i][j], tile[k][j]});
    }
    change("POTRF", 0, k, k, {});
    for (std::uint32_t i = k + 1; i < tiles; ++i) change("TRSM", 1, i, k, List{tile[k][k]});
  }
  for (std::uint32_t i = 0; i < tiles; ++i) {
    for (std::uint32_t j = 0; j <= i; ++j) graph.set_on_exit(tile[i][j], true);
  }
  return graph;
}

OperandGraph matmul_graph(std::uint64_t bytes) {
  OperandGraph graph;
  std::uint32_t a[2][2], b[2][2];
  for (std::uint32_t i = 0; i < 4; ++i)
    a[i / 2][i % 2] = value(graph, fmt::format("A{}{}", i / 2, i % 2), bytes, true);
  for (std::uint32_t i = 0; i < 4; ++i)
    b[i / 2][i % 2] = value(graph, fmt::format("B{}{}", i / 2, i % 2), bytes, true);
  for (std::uint32_t i = 0; i < 2; ++i) {
    for (std::uint32_t j = 0; j < 2; ++j) {
      List products;
      for (std::uint32_t k = 0; k < 2; ++k) {
        products.push_back(value(graph, fmt::format("P{}{}{}", i, k, j), bytes));
        graph.add_kernel(fmt::format("GEMM{}{}{}", i, k, j), 1, List{a[i][k], b[k][j]},
                         List{products.back()});
      }
      const std::uint32_t sum = value(graph, fmt::format("C{}{}", i, j), bytes);
      graph.add_kernel(fmt::format("MADD{}{}", i, j), 0, products, List{sum});
    }
  }
  graph.want_results();
  return graph;
}

OperandGraph cg_graph(std::uint64_t bytes) {
  OperandGraph graph;
  constexpr std::uint64_t kScalar = sizeof(float);
  const std::uint32_t p = value(graph, "p", bytes, true), x = value(graph, "x", bytes, true),
                      r = value(graph, "r", bytes, true), rho = value(graph, "rho", kScalar, true);
  const std::uint32_t q = value(graph, "q", bytes), pq = value(graph, "pq", kScalar),
                      alpha = value(graph, "alpha", kScalar), x1 = value(graph, "x'", bytes),
                      r1 = value(graph, "r'", bytes), rho1 = value(graph, "rho'", kScalar),
                      p1 = value(graph, "p'", bytes);
  graph.add_kernel("SPMV", 0, List{p}, List{q});
  graph.add_kernel("DOT_pq", 1, List{p, q}, List{pq});
  graph.add_kernel("ALPHA", 1, List{rho, pq}, List{alpha});
  graph.add_kernel("AXPY_x", 1, List{x, alpha, p}, List{x1});
  graph.add_kernel("AXPY_r", 1, List{r, alpha, q}, List{r1});
  graph.add_kernel("DOT_rr", 1, List{r1}, List{rho1});
  graph.add_kernel("XPAY_p", 1, List{r1, rho, rho1, p}, List{p1});
  for (const std::uint32_t result : {x1, r1, rho1, p1}) graph.set_on_exit(result, true);
  return graph;
}

}  // namespace esker::transfer
