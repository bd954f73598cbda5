// Esker's side: the problems as fork-join programs.
#include "sides.hpp"

namespace esker::bench {
namespace {

template <class Root>
class Programs final : public Program {
 public:
  Programs(const Device& device, const Root& root, const tasks::Options& options)
      : root_{root}, tasks_{device, options} {}

  std::uint64_t run() override {
    if constexpr (std::is_void_v<typename tasks::ForkJoin<Root>::Result>) {
      tasks_.run(root_);
      return tasks_.report().sum;
    } else {
      return static_cast<std::uint64_t>(tasks_.run(root_));
    }
  }
  const tasks::Report& report() const override { return tasks_.report(); }

 private:
  const Root root_;
  tasks::ForkJoin<Root> tasks_;
};

}  // namespace

std::unique_ptr<Program> fork_join(const Device& device, const Problem& problem,
                                   const tasks::Options& options) {
  switch (problem.kind) {
    case Kind::kFib:
      return std::make_unique<Programs<Fib>>(device, problem.fib(), options);
    case Kind::kFibLeaves:
      return std::make_unique<Programs<FibLeaves>>(device, problem.fib_leaves(), options);
    case Kind::kSort:
      return sort_program(device, problem, options);
    case Kind::kStrassen:
      return strassen_program(device, problem, options);
    case Kind::kQueensBase:
      return std::make_unique<Programs<QueensBase>>(device, problem.queens_base(), options);
    case Kind::kQueens:
      break;
  }
  return std::make_unique<Programs<Queens>>(device, problem.queens(), options);
}

}  // namespace esker::bench
