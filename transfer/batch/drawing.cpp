// A topology as a picture, by Graphviz.
#include <esker/transfer/batch/topology.hpp>

#include <cmath>
#include <csignal>
#include <cstdio>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

#include <esker/error.hpp>

#include <fmt/format.h>

namespace esker::transfer {

namespace {

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

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
  const auto refuse = [&](const std::string& why) {
    throw Error(Error::Kind::kTransfer, fmt::format("topology '{}': drawing '{}': {}", name_, file, why));
  };
  if (std::ofstream probe(file, std::ios::app); !probe) refuse("the file cannot be written");
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) refuse("there is no pipe to be had");
  const pid_t child = fork();
  if (child < 0) refuse("there is no process to be had");
  if (child == 0) {
    dup2(pipe_ends[0], 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    execlp("dot", "dot", "-Tsvg", "-o", file.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(pipe_ends[0]);
  const std::string dot = to_dot();
  // A dot that is not there reads nothing, and what is written to it must not end this program.
  FILE* const out = fdopen(pipe_ends[1], "w");
  struct sigaction before {};
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &ignore, &before);
  std::fwrite(dot.data(), 1, dot.size(), out);
  std::fclose(out);
  sigaction(SIGPIPE, &before, nullptr);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 127) {
    refuse("the program dot is not there: install the package graphviz, or draw to_dot() elsewhere");
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) refuse("the program dot failed");
}

}  // namespace esker::transfer
