// The regression and equation 3 against polynomials that are known.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include <esker/error.hpp>
#include <esker/pipeline.hpp>

namespace esker::pipeline {
namespace {

std::vector<RoundSample> samples_of(const RoundTime& f, std::initializer_list<std::uint32_t> teams) {
  std::vector<RoundSample> samples;
  for (const std::uint32_t n : teams) samples.push_back({n, f.at(n)});
  return samples;
}

TEST(Division, FindsThePolynomialThatSamplesLieOn) {
  for (const RoundTime truth :
       {RoundTime{2e-9, 3e-8, 1e-6}, RoundTime{0, 5e-8, 2e-6}, RoundTime{-1e-10, 1e-7, 0}}) {
    const RoundTime found = RoundTime::fit(samples_of(truth, {4, 8, 16, 32, 64, 264}));
    EXPECT_NEAR(found.theta2, truth.theta2, 1e-15);
    EXPECT_NEAR(found.theta1, truth.theta1, 1e-13);
    EXPECT_NEAR(found.theta0, truth.theta0, 1e-12);
  }
}

TEST(Division, FindsTheLeastSquaresOfSamplesThatDoNot) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> error(-1e-7, 1e-7);
  std::vector<RoundSample> samples;
  for (std::uint32_t n = 4; n <= 128; n += 4)
    samples.push_back({n, RoundTime{1e-9, 1e-8, 1e-6}.at(n) + error(random)});
  const auto squares = [&](const RoundTime& f) {
    double sum = 0;
    for (const RoundSample& s : samples) sum += (f.at(s.teams) - s.seconds) * (f.at(s.teams) - s.seconds);
    return sum;
  };
  const RoundTime found = RoundTime::fit(samples);
  for (const double step : {-1.0, 1.0}) {
    EXPECT_LT(squares(found), squares({found.theta2 + step * 1e-12, found.theta1, found.theta0}));
    EXPECT_LT(squares(found), squares({found.theta2, found.theta1 + step * 1e-10, found.theta0}));
    EXPECT_LT(squares(found), squares({found.theta2, found.theta1, found.theta0 + step * 1e-9}));
  }
}

TEST(Division, GivesAllStagesRoundsOfEqualTime) {
  const std::vector<RoundTime> stages{{1e-9, 1e-8, 1e-6}, {4e-9, 4e-8, 1e-6}, {0, 2e-7, 1e-6}};
  // Where the time is that of a division, the equation finds the division.
  const double seconds = stages[0].at(100);
  std::uint32_t teams = 0;
  for (const RoundTime& stage : stages)
    teams += static_cast<std::uint32_t>(std::lround(stage.teams_for(seconds)));
  const std::vector<std::uint32_t> division = divide_teams(stages, teams, seconds);
  EXPECT_EQ(std::accumulate(division.begin(), division.end(), 0u), teams);
  for (std::size_t i = 0; i < stages.size(); ++i)
    EXPECT_NEAR(stages[i].at(division[i]), seconds,
                stages[i].at(division[i] + 1) - stages[i].at(division[i] - 1));
}

TEST(Division, GivesEachStageATeamAndAllTeamsAway) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> theta(-1, 1);
  for (int i = 0; i < 1000; ++i) {
    std::vector<RoundTime> stages(1 + random() % 6);
    for (RoundTime& stage : stages) stage = {theta(random), theta(random), theta(random)};
    const auto teams = static_cast<std::uint32_t>(stages.size() + random() % 300);
    const std::vector<std::uint32_t> division = divide_teams(stages, teams, theta(random));
    EXPECT_EQ(std::accumulate(division.begin(), division.end(), 0u), teams);
    for (const std::uint32_t n : division) EXPECT_GE(n, 1u);
  }
}

TEST(Division, RefusesWhatSaysTooLittle) {
  const std::vector<RoundSample> two{{4, 1.0}, {8, 2.0}, {8, 2.5}};
  EXPECT_THROW((void)RoundTime::fit(two), Error);
  const std::vector<RoundTime> stages(3);
  EXPECT_THROW((void)divide_teams(stages, 2, 1.0), Error);
  EXPECT_TRUE(divide_teams({}, 5, 1.0).empty());
}

}  // namespace
}  // namespace esker::pipeline
