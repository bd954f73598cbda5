// What domains of a graph do, how full channels are, and whose elements they wait for: in words.
#include <esker/tasks/graph_hang.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <fmt/format.h>

namespace esker::tasks::detail {
namespace {

/// Numbers as "1, 2, 3 and 7 more".
std::string list(const std::vector<std::uint32_t>& numbers) {
  constexpr std::size_t kMost = 8;
  const auto end = numbers.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, numbers.size()));
  std::string text = fmt::format("{}", fmt::join(numbers.begin(), end, ", "));
  if (numbers.size() > kMost) text += fmt::format(" and {} more", numbers.size() - kMost);
  return text;
}
std::string quoted(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += fmt::format("{}'{}'", text.empty() ? "" : ", ", name);
  return text.empty() ? "nothing" : text;
}

class Report {
 public:
  Report(const SeenProgress& seen, const std::vector<Fullness>& fullness,
         const std::vector<GraphReport::Channel>& channels)
      : seen_{seen}, fullness_{fullness}, channels_{channels}, runners_(channels.size()) {}

  std::string text() {
    std::string text;
    std::uint32_t looking = 0, working = 0;
    for (std::uint32_t d = 0; d < seen_.domains; ++d) {
      const Progress::Line& line = seen_.lines[d];
      const auto doing = static_cast<Doing>(line.doing.load_relaxed());
      if (doing == Doing::kNothing || doing == Doing::kAsks) {
        looking += doing == Doing::kAsks ? 1 : 0;
        continue;
      }
      const std::uint32_t channel = line.what.load_relaxed();
      if (doing == Doing::kRuns) runners_[channel].push_back(d);
      if (++working > kMostNamed) continue;
      const GraphReport::Channel& of = channels_[channel];
      text += doing == Doing::kRuns
                  ? fmt::format(
                        "\n  domain {}: in a batch of at most {} elements of '{}' that has not "
                        "returned; it spawns into {}",
                        d, line.where.load_relaxed(), of.name, quoted(of.into))
                  : fmt::format("\n  domain {}: between two batches", d);
    }
    for (std::size_t c = 0; c < channels_.size(); ++c) text += describe(c);
    return fmt::format("{} of {} domains work, {} look for work{}", working, seen_.domains, looking, text);
  }

 private:
  std::string describe(std::size_t c) const {
    const GraphReport::Channel& channel = channels_[c];
    const Fullness& is = fullness_[c];
    std::string text = fmt::format("\n  {} '{}': {} of {} elements", channel.is_output ? "output" : "channel",
                                   channel.name, is.elements, channel.options.capacity);
    if (is.spill_capacity != 0) text += fmt::format(", {} of {} spilled", is.spilled, is.spill_capacity);
    if (is.seeds != 0) text += fmt::format(", {} of {} seeds left", is.seeds_left, is.seeds);
    std::uint64_t held = 0;
    std::vector<std::uint32_t> holders;
    for (std::uint32_t d = 0; d < seen_.domains; ++d) {
      const std::uint32_t n = seen_.notes[std::size_t{d} * channels_.size() + c].load_relaxed();
      if (n != 0) holders.push_back(d);
      held += n;
    }
    if (held != 0) text += fmt::format(", {} in buffers and on stacks of domains {}", held, list(holders));
    return text + source(c);
  }
  /// The domains that run what spawns into it.
  std::string source(std::size_t c) const {
    std::string text;
    for (std::size_t from = 0; from < channels_.size(); ++from) {
      const std::vector<std::string>& into = channels_[from].into;
      if (runners_[from].empty() || std::find(into.begin(), into.end(), channels_[c].name) == into.end())
        continue;
      text +=
          fmt::format("; waits for '{}', which domains {} run", channels_[from].name, list(runners_[from]));
    }
    return text;
  }

  const SeenProgress& seen_;
  const std::vector<Fullness>& fullness_;
  const std::vector<GraphReport::Channel>& channels_;
  std::vector<std::vector<std::uint32_t>> runners_;  // domains in a batch of each channel
};

}  // namespace

std::string explain_graph(const SeenProgress& seen, const std::vector<Fullness>& fullness,
                          const std::vector<GraphReport::Channel>& channels) {
  return Report(seen, fullness, channels).text();
}

}  // namespace esker::tasks::detail
