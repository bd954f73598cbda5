// Figures 4-15 and 4-16: a scheduler whose tasks all go through one channel.
#include <fmt/format.h>

#include "figures.hpp"

namespace esker::bench {
namespace {

constexpr std::uint32_t kWidth = 32'768;  // of the thesis's Fibonacci (Table 4-3)

Side side_of(const std::string& name, const ChannelRun& channel) {
  return {name, [run = channel.run] { return timed(run); },
          [inlined = channel.inlined] {
            return nlohmann::json{{"inlined_tasks", inlined()}};
          }};
}

std::vector<Problem> problems_of(const Bench& bench) {
  return {{Kind::kFibLeaves, static_cast<std::uint32_t>(bench.sizes.channel_fib)},
          {Kind::kQueens, static_cast<std::uint32_t>(bench.sizes.channel_queens)}};
}

}  // namespace

nlohmann::json take_channels(const Bench& bench) {
  nlohmann::json cases = nlohmann::json::array();
  for (const Problem& problem : problems_of(bench)) {
    const std::uint64_t tasks = tasks_of(bench, problem);
    const auto side = [&](const std::string& name, ChannelForm form) {
      return side_of(name, one_channel(bench.device, problem, tasks, form, kWidth));
    };
    cases.push_back(take_turns(name_of(problem), expected(problem), static_cast<double>(tasks),
                               {side("a wave together", ChannelForm::kWave),
                                side("a wave together, padded", ChannelForm::kPaddedWave),
                                side("each lane alone", ChannelForm::kLane)},
                               bench.effort));
    add_ratios(cases.back());
  }
  return {{"capacity", kWidth}, {"cases", cases}};
}

nlohmann::json take_widths(const Bench& bench) {
  nlohmann::json cases = nlohmann::json::array();
  for (const Problem& problem : problems_of(bench)) {
    const std::uint64_t tasks = tasks_of(bench, problem);
    std::vector<Side> sides;
    for (std::uint32_t width = 64; width <= 1u << 18; width *= 4) {
      sides.push_back(side_of(fmt::format("{}", width),
                              one_channel(bench.device, problem, tasks, ChannelForm::kWave, width)));
    }
    cases.push_back(
        take_turns(name_of(problem), expected(problem), static_cast<double>(tasks), sides, bench.effort));
  }
  return {{"cases", cases}};
}

}  // namespace esker::bench
