// A product of two matrices by Strassen's method, beside products that are not divided: by the same tasks,
// and by a library.
#include <memory>
#include <vector>

#include "../../apps/strassen/multiplier.hpp"
#include "figures.hpp"
#include "sgemm.hpp"

namespace esker::bench {
namespace {

/// The matrices that sides multiply, and the memory in which they do.
class Product {
 public:
  Product(const Device& device, std::uint32_t n, std::uint32_t cutoff)
      : operands_{device, n, cutoff},
        a_{strassen::Matrix::random(n, side(), "reals", 1)},
        b_{strassen::Matrix::random(n, side(), "reals", 2)},
        c_{a_},
        expected_{a_, b_, "reals", operands_.tolerance(), 1} {
    operands_.put(a_, b_);
  }
  const strassen::Operands& operands() const { return operands_; }
  std::uint32_t side() const { return operands_.host_plan().side; }
  /// 1: it is what it must be.
  std::uint64_t check() {
    operands_.get(c_);
    return expected_.is(c_) ? 1 : 0;
  }

 private:
  const strassen::Operands operands_;
  const strassen::Matrix a_, b_;
  strassen::Matrix c_;
  strassen::Expected expected_;
};

class StrassenProgram final : public Program {
 public:
  StrassenProgram(std::shared_ptr<Product> product, const tasks::Options& options)
      : product_{std::move(product)}, multiplier_{product_->operands(), options} {}
  void prepare() override { product_->operands().forget(); }
  std::uint64_t run() override {
    multiplier_.run();
    return 0;
  }
  std::uint64_t check(std::uint64_t) override { return product_->check(); }
  const tasks::Report& report() const override { return multiplier_.report(); }

 private:
  const std::shared_ptr<Product> product_;
  strassen::Multiplier multiplier_;
};

std::uint32_t cutoff_of(const Device& device, std::uint32_t cutoff) {
  return cutoff != 0 ? cutoff : strassen::best_cutoff(device);
}

}  // namespace

std::unique_ptr<Program> strassen_program(const Device& device, const Problem& problem,
                                          const tasks::Options& options) {
  // Programs of one problem take turns in one memory: Figure 4-13 has one a number of processors.
  static std::weak_ptr<Product> last;
  static Problem of_last{};
  std::shared_ptr<Product> product = last.lock();
  if (product == nullptr || of_last.n != problem.n || of_last.cutoff != problem.cutoff) {
    product = std::make_shared<Product>(device, problem.n, cutoff_of(device, problem.cutoff));
    last = product;
    of_last = problem;
  }
  return std::make_unique<StrassenProgram>(product, options);
}

nlohmann::json take_strassen(const Bench& bench) {
  const Problem problem = bench.strassen(bench.sizes.strassen);
  const double n = problem.n;
  std::vector<Side> sides = {esker_side(bench, problem)};
  const auto whole = std::make_shared<Product>(bench.device, problem.n, problem.n);
  sides.push_back(side_of("esker, not divided", std::make_shared<StrassenProgram>(whole, bench.options())));
#if defined(ESKER_BENCH_CUBLAS)
  if (bench.is_on_gpu()) {
    sides.push_back({"cuBLAS", [whole, multiply = multiply_by_cublas(whole->side())] {
                       const strassen::Operands& operands = whole->operands();
                       operands.forget();
                       Outcome outcome = timed([&] {
                         multiply(operands.a(), operands.b(), operands.c());
                         return 0;
                       });
                       outcome.result = whole->check();
                       return outcome;
                     }});
  }
#endif
  nlohmann::json turns =
      take_turns(name_of(problem), expected(problem), 2 * n * n * n, sides, bench.effort, "FLOP");
  add_ratios(turns);
  return {{"cases", {turns}}};
}

}  // namespace esker::bench
