// How many teams each stage of a GPU should have, from what was measured (XeFlow, sections 5.2 and 5.3).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <esker/device/platform.hpp>

namespace esker::pipeline {

/// A stage had so many teams, and each of them took so long for a frame.
struct RoundSample {
  std::uint32_t teams;
  double seconds;
};

/// The time of a round, in which each of a stage's teams does one frame, by the number of teams:
/// theta2 n^2 + theta1 n + theta0 (equation 2).
struct ESKER_API RoundTime {
  double theta2, theta1, theta0;

  /// The least squares. The paper finds them by gradient descent; here the normal equations are solved.
  /// Errors   Error{kConfiguration}: the samples have fewer than three different numbers of teams.
  static RoundTime fit(std::span<const RoundSample> samples);
  double at(double teams) const { return (theta2 * teams + theta1) * teams + theta0; }
  /// The larger number of teams with which a round takes so long; where none does, that of the extreme time;
  /// 0 at least.
  double teams_for(double seconds) const;
};

/// Divides `teams` so that all rounds take equally long (equation 3), each stage one at least.
/// `round_seconds`: f0 of the equation, for example the mean of all samples.
/// Errors   Error{kConfiguration}: there are fewer teams than stages.
ESKER_API std::vector<std::uint32_t> divide_teams(std::span<const RoundTime> stages, std::uint32_t teams,
                                                  double round_seconds);

}  // namespace esker::pipeline
