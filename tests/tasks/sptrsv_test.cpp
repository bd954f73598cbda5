// Triangular systems on the host: what is read, what is generated, and that a wrong solution is found out.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <esker/config.hpp>

#include "../../apps/sptrsv/system.hpp"
#include "../../apps/sptrsv/system_file.hpp"
#include "../apps/inputs/written_file.hpp"

namespace sptrsv {
namespace {

using Words = std::vector<std::uint32_t>;
using Numbers = std::vector<double>;

TEST(Sptrsv, TakesTheLowerTriangleOfAFile) {
  const inputs::testing::WrittenFile file(
      "%%MatrixMarket matrix coordinate real general\n"
      "4 4 7\n"
      "4 3 0.5\n1 1 2\n2 4 9\n4 1 -1\n3 3 4\n4 3 0.25\n4 4 8\n",
      ".mtx");
  const System system = read_system(file.path(), false, 1);
  EXPECT_EQ(system.starts, (Words{0, 0, 0, 0, 2}));
  EXPECT_EQ(system.columns, (Words{0, 2}));
  EXPECT_EQ(system.values, (Numbers{-1, 0.75})) << "an entry in two parts";
  EXPECT_EQ(system.diagonal, (Numbers{2, 1, 4, 8})) << "row 2 has no diagonal of its own";
  EXPECT_EQ(read_system(file.path(), true, 1).diagonal, (Numbers{1, 1, 1, 2.75}));
  EXPECT_EQ(levels_of(system), 2u);
}
TEST(Sptrsv, TakesEitherTriangleOfASymmetricFile) {
  const inputs::testing::WrittenFile file(
      "%%MatrixMarket matrix coordinate real symmetric\n"
      "3 3 4\n"
      "1 1 1\n1 2 5\n3 1 6\n3 3 2\n",
      ".mtx");
  const System system = read_system(file.path(), false, 1);
  EXPECT_EQ(system.starts, (Words{0, 0, 1, 2}));
  EXPECT_EQ(system.columns, (Words{0, 0}));
  EXPECT_EQ(system.values, (Numbers{5, 6}));
}
TEST(Sptrsv, SolvesByForwardSubstitution) {
  System system;
  system.starts = {0, 0, 1, 3};
  system.columns = {0, 0, 1};
  system.values = {2, -1, 4};
  system.diagonal = {2, 1, 0.5};
  system.right = {6, 7, 2};
  EXPECT_EQ(solve_serially(system), (Numbers{3, 1, 2}));
  const Below below = below_of(system);
  EXPECT_EQ(below.starts, (Words{0, 2, 3, 3}));
  EXPECT_EQ(below.rows, (Words{1, 2, 2}));
}
TEST(Sptrsv, HasAsManyLevelsAsTheKindSays) {
  EXPECT_EQ(levels_of(make_system("grid2", 100, 1)), 19u);
  EXPECT_EQ(levels_of(make_system("grid3", 1000, 1)), 28u);
  EXPECT_EQ(levels_of(make_system("chain", 77, 1)), 77u);
  EXPECT_EQ(make_system("random", 5000, 3).rows(), 5000u);
}
TEST(Sptrsv, FindsOutAWrongSolution) {
  for (const char* const kind : {"grid2", "grid3", "random", "chain"}) {
    const System system = make_system(kind, 1000, 7);
    Numbers x = solve_serially(system);
    EXPECT_LE(backward_error(system, x), largest_error(system)) << kind;
    const double right = x[500];
    x[500] = right * (1 + 1e-13);
    EXPECT_GT(backward_error(system, x), largest_error(system)) << kind;
    x[500] = std::numeric_limits<double>::quiet_NaN();
    EXPECT_GT(backward_error(system, x), largest_error(system)) << kind;
  }
}
TEST(Sptrsv, RefusesOtherFiles) {
  const inputs::testing::WrittenFile edges("0 1\n", ".el");
  EXPECT_THROW((void)read_system(edges.path(), false, 1), esker::UsageError);
  const inputs::testing::WrittenFile wide("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n",
                                          ".mtx");
  EXPECT_NE(inputs::testing::reason([&] { (void)read_system(wide.path(), false, 1); }), "accepted");
}

}  // namespace
}  // namespace sptrsv
