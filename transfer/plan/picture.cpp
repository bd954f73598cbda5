// The report and the picture of a schedule.
#include <esker/transfer/plan/picture.hpp>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <esker/transfer/dot_text.hpp>

namespace esker::transfer {

std::string report_of(const OperandGraph& graph, std::span<const Transfer> transfers,
                      const Schedule& schedule, const Layout& layout) {
  std::string text =
      "operands that may be uploaded, and downloaded, by time:\n" + diagnostic(graph, transfers);
  text += listing(graph, schedule);
  text += fmt::format("{} transfers in {} startups: {} saved; at least {}", schedule.transfers,
                      schedule.startups.size(), schedule.saved(), schedule.lower_bound);
  if (schedule.gap() != 0) text += fmt::format(", a gap of {}", schedule.gap());
  std::string disjoint;
  for (const std::uint32_t i : schedule.certificate)
    disjoint += fmt::format(" {}", name_of(graph, transfers[i].operand));
  text += disjoint.empty() ? "\n" : fmt::format(" (no two of{} can share one)\n", disjoint);
  const auto lifetimes = lifetimes_of(graph, schedule);
  for (std::uint32_t place = 0; place < graph.places(); ++place) {
    text += place == 0 ? "host" : graph.places() == 2 ? "device" : fmt::format("device {}", place - 1);
    text += fmt::format(": {} bytes", layout.bytes[place]);
    if (place != 0)
      text += fmt::format(", {} if none were used twice, at least {} alive at a time",
                          layout.separate_bytes[place], most_alive(graph, lifetimes[place]));
    text += "\n";
  }
  return text;
}

std::string to_dot(const OperandGraph& graph, const Schedule& schedule) {
  const auto lifetimes = lifetimes_of(graph, schedule);
  std::vector<std::string> copies(graph.operands());
  for (std::size_t i = 0; i < schedule.startups.size(); ++i) {
    const Startup& startup = schedule.startups[i];
    for (std::uint32_t at = startup.first; at < startup.first + startup.count; ++at) {
      copies[schedule.order[at]] += fmt::format("\\n{} {} {}", startup.to == 0 ? "down" : "up",
                                                startup.to == 0 ? "after" : "before", startup.time);
      if (graph.places() > 2)
        copies[schedule.order[at]] += startup.to == 0 ? fmt::format(" from device {}", startup.from - 1)
                                                      : fmt::format(" to device {}", startup.to - 1);
      if (startup.count > 1) copies[schedule.order[at]] += fmt::format(" (copy {})", i);
    }
  }
  std::string text = "digraph plan {\n  rankdir=TB;\n  node [style=filled, fontname=\"sans-serif\"];\n";
  for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
    const bool has_number = graph.places() > 2 && graph.place(k) != 0;
    text += fmt::format("  k{} [label=\"{}{}\", shape=ellipse, fillcolor=\"{}\"];\n", k,
                        detail::dot_text(graph.kernel_name(k)),
                        has_number ? fmt::format("\\ndevice {}", graph.place(k) - 1) : "",
                        graph.place(k) == 0 ? "khaki" : "lightblue");
  }
  for (std::uint32_t i = 0; i < graph.operands(); ++i) {
    const std::uint32_t storage = graph.storage(i);
    bool on_device = false;
    for (std::uint32_t place = 1; place < graph.places(); ++place)
      on_device = on_device || lifetimes[place][storage].is_used();
    const bool on_host = lifetimes[0][storage].is_used();
    const Operand& operand = graph.operand(i);
    text += fmt::format("  v{} [label=\"{}{}\", shape=box, fillcolor=\"{}\", color=\"{}\", penwidth={}];\n",
                        i, detail::dot_text(name_of(graph, i)), storage == i ? copies[i] : "",
                        on_device && on_host ? "palegreen"
                        : on_device          ? "cyan"
                                             : "khaki",
                        operand.on_exit ? "red" : "black", operand.on_exit || operand.on_entry ? 3 : 1);
  }
  for (std::uint32_t k = 0; k < graph.kernels(); ++k) {
    for (const std::uint32_t operand : graph.reads(k)) text += fmt::format("  v{} -> k{};\n", operand, k);
    for (const std::uint32_t operand : graph.writes(k)) text += fmt::format("  k{} -> v{};\n", k, operand);
  }
  return text + "}\n";
}

}  // namespace esker::transfer
