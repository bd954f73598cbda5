// Regression, and equation 3.
#include <esker/pipeline/division.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <esker/error.hpp>

namespace esker::pipeline {

RoundTime RoundTime::fit(std::span<const RoundSample> samples) {
  std::set<std::uint32_t> numbers;
  double mean = 0, width = 0;
  for (const RoundSample& s : samples) {
    numbers.insert(s.teams);
    mean += s.teams / static_cast<double>(samples.size());
  }
  if (numbers.size() < 3)
    throw Error(
        Error::Kind::kConfiguration,
        fmt::format(
            "pipeline: a round's time is fitted to three numbers of teams at least, and the samples have {}",
            numbers.size()));
  for (const RoundSample& s : samples) width = std::max(width, std::abs(s.teams - mean));
  // Around the mean and in units of the width, so that powers are of one size.
  double m[3][4] = {};
  for (const RoundSample& s : samples) {
    const double x = (s.teams - mean) / width, powers[3] = {1, x, x * x};
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j < 3; ++j) m[i][j] += powers[i] * powers[j];
      m[i][3] += powers[i] * s.seconds;
    }
  }
  for (int i = 0; i < 3; ++i) {  // Gauss, with pivots
    int pivot = i;
    for (int r = i + 1; r < 3; ++r) pivot = std::abs(m[r][i]) > std::abs(m[pivot][i]) ? r : pivot;
    std::swap(m[i], m[pivot]);
    for (int r = 0; r < 3; ++r) {
      if (r == i) continue;
      const double factor = m[r][i] / m[i][i];
      for (int c = i; c < 4; ++c) m[r][c] -= factor * m[i][c];
    }
  }
  const double a = m[2][3] / m[2][2] / (width * width), b = m[1][3] / m[1][1] / width, c = m[0][3] / m[0][0];
  return {a, b - 2 * a * mean, c - b * mean + a * mean * mean};
}

double RoundTime::teams_for(double seconds) const {
  const double rest = theta0 - seconds, square = theta1 * theta1 - 4 * theta2 * rest;
  double teams = 0;
  // A parabola that is all but straight has its other root far away, and loses digits there.
  if (std::abs(theta2 * rest) < 1e-9 * theta1 * theta1) {
    teams = -rest / theta1;
  } else if (square < 0) {
    teams = -theta1 / (2 * theta2);
  } else {
    teams = (std::sqrt(square) - theta1) / (2 * theta2);
  }
  return std::isfinite(teams) ? std::max(teams, 0.0) : 0.0;
}

std::vector<std::uint32_t> divide_teams(std::span<const RoundTime> stages, std::uint32_t teams,
                                        double round_seconds) {
  if (teams < stages.size())
    throw Error(Error::Kind::kConfiguration,
                fmt::format("pipeline: {} teams are not enough for {} stages", teams, stages.size()));
  if (stages.empty()) return {};
  std::vector<double> wanted;
  for (const RoundTime& stage : stages) wanted.push_back(stage.teams_for(round_seconds));
  const double all = std::accumulate(wanted.begin(), wanted.end(), 0.0);
  // One each, and of the others what the equation says; what rounding leaves goes to those that lost most.
  const auto others = static_cast<double>(teams - stages.size());
  std::vector<std::uint32_t> division;
  std::vector<std::pair<double, std::size_t>> lost;
  std::uint32_t given = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const double part = all > 0 ? wanted[i] / all : 1.0 / static_cast<double>(stages.size());
    const double its = std::clamp(part * teams - 1, 0.0, others);
    division.push_back(1 + static_cast<std::uint32_t>(its));
    lost.emplace_back(its - std::floor(its), i);
    given += division.back();
  }
  std::sort(lost.rbegin(), lost.rend());
  for (std::size_t i = 0; given < teams; i = (i + 1) % lost.size(), ++given) ++division[lost[i].second];
  for (; given > teams; --given) --*std::max_element(division.begin(), division.end());
  return division;
}

}  // namespace esker::pipeline
