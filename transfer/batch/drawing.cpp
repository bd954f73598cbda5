// A topology as a picture, by Graphviz.
#include <esker/transfer/batch/topology.hpp>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <esker/error.hpp>
#include <esker/transfer/dot_text.hpp>

#include <fmt/format.h>

namespace esker::transfer {

namespace {

std::string quoted(const std::string& text) { return '"' + detail::dot_text(text) + '"'; }

std::string in_gigabytes(const LinkRate& rate) {
  if (!std::isfinite(rate.bytes_per_s)) return "?";
  std::string text = fmt::format("{:.3g}", rate.bytes_per_s / 1e9);
  if (rate.both_bytes_per_s > 0) text += fmt::format(" ({:.3g})", rate.both_bytes_per_s / 1e9);
  return text;
}

const char* shape_of(Topology::Kind kind) {
  switch (kind) {
    case Topology::Kind::kMemory:
      return "box, style=filled, fillcolor=\"#dfe8f5\"";
    case Topology::Kind::kProcessor:
      return "box, style=\"rounded,filled\", fillcolor=\"#f2e6cf\"";
    case Topology::Kind::kHub:
      return "hexagon";
    case Topology::Kind::kSwitch:
      return "diamond";
    case Topology::Kind::kDevice:
      return "box, style=\"rounded,filled\", fillcolor=\"#dff0d8\"";
  }
  return "box";
}

}  // namespace

std::string Topology::to_dot() const {
  std::string dot = fmt::format("digraph {} {{\n  label={};\n  rankdir=TB;\n  edge [fontsize=10];\n",
                                quoted("topology"), quoted(name_ + ": GB/s (both directions at once)"));
  for (const Node& node : nodes_) {
    dot += fmt::format("  {} [shape={}];\n", quoted(node.name), shape_of(node.kind));
  }
  for (const Link& link : links_) {
    dot += fmt::format("  {} -> {} [label={}];\n", quoted(nodes_[link.from].name),
                       quoted(nodes_[link.to].name), quoted(in_gigabytes(link.rate)));
  }
  return dot + "}\n";
}

void Topology::draw_svg(const std::string& file) const {
  const std::string text = file + ".dot.XXXXXX";
  std::vector<char> name(text.c_str(), text.c_str() + text.size() + 1);
  const auto refuse = [&](const std::string& why) {
    throw Error(Error::Kind::kTransfer, fmt::format("topology '{}': drawing '{}': {}", name_, file, why));
  };
  const int temporary = mkstemp(name.data());
  if (temporary < 0) refuse(fmt::format("a file beside it cannot be written: {}", std::strerror(errno)));
  close(temporary);
  const bool is_written = static_cast<bool>(std::ofstream(name.data()) << to_dot() << std::flush);
  char program[] = "dot", format[] = "-Tsvg", output[] = "-o";
  std::string to = file;
  char* const arguments[] = {program, format, output, to.data(), name.data(), nullptr};
  pid_t child = 0;
  int status = 0;
  const int error = is_written ? posix_spawnp(&child, program, nullptr, nullptr, arguments, environ) : 0;
  if (is_written && error == 0) {
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  }
  std::remove(name.data());
  if (!is_written) refuse("a file beside it cannot be written");
  if (error == ENOENT)
    refuse("the program dot is not there: install the package graphviz, or draw to_dot() elsewhere");
  if (error != 0) refuse(fmt::format("the program dot cannot be started: {}", std::strerror(error)));
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) refuse("the program dot failed");
}

}  // namespace esker::transfer
