// Every operation against a serial reference, over loopback, in several shapes of the runtime.
#include "operations.hpp"

#include "pes.hpp"

namespace esker::testing {
namespace {

struct Shape {
  std::uint32_t n_pes, cpu_threads, apply_helpers, aggregators;
  friend void PrintTo(const Shape& s, std::ostream* out) {
    *out << s.n_pes << " PEs, " << s.cpu_threads << " lane threads, " << s.apply_helpers << " helpers, "
         << s.aggregators << " aggregators";
  }
};

class Operations : public ::testing::TestWithParam<Shape> {
 protected:
  void run(const Pes::Body& body) {
    Config config = tiny_config();
    config.cpu_threads = GetParam().cpu_threads;
    config.apply_helpers = GetParam().apply_helpers;
    config.aggregators = GetParam().aggregators;
    run_pes(GetParam().n_pes, config, body);
  }
};

TEST_P(Operations, PutsOfEverySizeArriveOnce) { run(check_all_puts); }

TEST_P(Operations, UpdatesOfEveryTypeMatchASerialReference) { run(check_all_numbers); }

INSTANTIATE_TEST_SUITE_P(Shapes, Operations,
                         ::testing::Values(Shape{1, 1, 0, 1}, Shape{2, 1, 0, 1}, Shape{2, 3, 1, 3},
                                           Shape{3, 2, 3, 1}, Shape{4, 1, 1, 3}));

}  // namespace
}  // namespace esker::testing
