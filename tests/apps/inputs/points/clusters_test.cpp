// Generated points: independent of the parts, and as the options ask.
#include <esker/apps/inputs/points/clusters.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

#include "../in_parts.hpp"

namespace inputs::testing {
namespace {

TEST(Clusters, PointsAreTheSameInAnyNumberOfParts) {
  const Clusters clusters({.seed = 3, .points = 1000, .columns = 3});
  const auto of_part = [&](Part part) { return generate<float>(clusters, part).values; };
  const auto whole = generate<float>(clusters);
  EXPECT_EQ(whole.rows(), 1000u);
  EXPECT_EQ(whole.columns, 3u);
  for (const std::uint64_t parts : {2u, 3u, 7u, 2000u}) EXPECT_EQ(in_parts(of_part, parts), whole.values);
  EXPECT_NE(generate<float>(Clusters({.seed = 4, .points = 1000, .columns = 3})).values, whole.values);
}

TEST(Clusters, PointsLieAboutTheirCentres) {
  const ClusterOptions options{.points = 80'000, .columns = 2, .clusters = 4, .spread = 0.1, .box = 10};
  const Clusters clusters(options);
  const auto points = generate<double>(clusters);
  std::vector<double> count(4);
  double sum = 0;
  double squares = 0;
  double fourth_powers = 0;
  double within = 0;  // one standard deviation
  for (std::uint64_t i = 0; i < options.points; ++i) {
    const std::uint64_t cluster = clusters.cluster_of(i);
    count.at(cluster) += 1;
    for (std::uint64_t c = 0; c < 2; ++c) {
      EXPECT_LE(std::abs(clusters.centre(cluster, c)), 10);
      const double x = (points[i][c] - clusters.centre(cluster, c)) / options.spread;
      sum += x;
      squares += x * x;
      fourth_powers += x * x * x * x;
      within += std::abs(x) < 1 ? 1 : 0;
    }
  }
  for (const double n : count) EXPECT_NEAR(n, 20'000, 600);
  EXPECT_NEAR(sum / 160'000, 0, 0.01);
  EXPECT_NEAR(squares / 160'000, 1, 0.02);
  EXPECT_NEAR(fourth_powers / 160'000, 3, 0.15);
  EXPECT_NEAR(within / 160'000, 0.6827, 0.005);
}

TEST(Clusters, OptionsWithoutALegalValueAreRefused) {
  const auto said = [](const ClusterOptions& options) { return reason([&] { Clusters{options}; }); };
  EXPECT_EQ(said({.points = 0}), "generated points: there are none");
  EXPECT_EQ(said({.columns = 0}), "generated points: they have no coordinates");
  EXPECT_EQ(said({.clusters = 0}), "generated points: no cluster");
  EXPECT_EQ(said({.spread = -1}), "generated points: the spread is not a number from 0 on");
  EXPECT_EQ(said({.box = std::nan("")}), "generated points: the box is not a number from 0 on");
  EXPECT_EQ(said({.spread = 0, .box = 0}), "accepted");
}

}  // namespace
}  // namespace inputs::testing
